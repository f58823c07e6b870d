# SPDX-License-Identifier: Apache-2.0

"""The settings of a compute host, and the empty host that Nova sees with them.

A plan computes the settings (:mod:`hpcvirt.flavors.planned_settings`), or they
are those that a host has (:mod:`hpcvirt.flavors.current_settings`). The
document of a plan has them under ``host_config``. The fields have the names of
Nova's options.

All commands begin with the empty host (:func:`make_empty_host`): what a host
has left is this, less its instances.
"""

import dataclasses
import functools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Annotated

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices as device_fit
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import offered_devices
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model


def _cpu_list(value: object) -> str:
    """Check a list of CPUs, such as ``0-3,8``."""
    if not isinstance(value, str):
        raise serialization.make_error('text such as 0-3,8', value)
    try:
        cpuset.parse(value)
    except exception.InvalidInput as exc:
        raise ValueError(f'{value[:40]!r} {exc.what}') from None
    return value


_Number = Annotated[int, serialization.whole(0, 2 ** 53)]
_Ratio = Annotated[float, serialization.number(0, 1024)]
_CpuList = Annotated[str, _cpu_list]


@dataclasses.dataclass(frozen=True, slots=True)
class ReservedPages:
    """An item of Nova's ``reserved_huge_pages``; the size is in KiB."""

    node: _Number
    size: _Number
    count: _Number


def read_reserved_pages(text: str) -> ReservedPages | None:
    """Read an item of ``reserved_huge_pages``.

    :param text: such as ``node:0,size:2048,count:64``
    :returns: None if it is malformed
    """
    parts = {}
    for part in text.split(','):
        key, colon, value = part.partition(':')
        if colon:
            parts[key.strip()] = value.strip()
    size_kib = words.read_size(parts.get('size', ''))
    node = words.read_whole(parts.get('node', ''))
    count = words.read_whole(parts.get('count', ''))
    if size_kib is None or node is None or count is None:
        return None
    return ReservedPages(node, size_kib, count)


@dataclasses.dataclass(frozen=True, slots=True)
class MdevType:
    """An item of Nova's ``enabled_mdev_types``, with its ``mdev_class``."""

    name: str
    device_addresses: tuple[str, ...]
    mdev_class: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostSettings:
    """The settings of a compute host.

    :ivar reserved_host_memory_mb: the memory that the host keeps, without the
        emulators of guests
    :ivar reserved_host_cpus: the shared CPUs that Placement does not allocate
    :ivar cpu_allocation_ratio: overcommit of shared CPUs; the default is the
        ``initial_cpu_allocation_ratio`` of Nova
    :ivar ram_allocation_ratio: overcommit of memory without page size
    :ivar pages: cell -> page size in KiB -> the total that nova-compute
        reports under these settings
    :ivar device_counts: address of a device -> the virtual functions or
        vGPUs that it gives, 1 for itself
    """

    cpu_dedicated_set: _CpuList
    cpu_shared_set: _CpuList
    reserved_host_memory_mb: _Number
    reserved_host_cpus: _Number = 0
    cpu_allocation_ratio: _Ratio = 4.0
    ram_allocation_ratio: _Ratio = 1.0
    reserved_huge_pages: tuple[ReservedPages, ...] = ()
    packing_host_numa_cells_allocation_strategy: bool = False
    pages: Mapping[int, Mapping[int, _Number]]
    pci_device_spec: tuple[Mapping[str, str], ...] = ()
    mdev_types: tuple[MdevType, ...] = ()
    device_counts: Mapping[str, _Number] = dataclasses.field(
        default_factory=dict)
    pci_alias: tuple[Mapping[str, str], ...] = ()

    @functools.cached_property
    def dedicated(self) -> frozenset[int]:
        return cpuset.parse(self.cpu_dedicated_set)

    @functools.cached_property
    def shared(self) -> frozenset[int]:
        return cpuset.parse(self.cpu_shared_set)

    @property
    def has_sets(self) -> bool:
        """Whether Placement chooses devices by their places in sets."""
        return any('traits' in alias for alias in self.pci_alias)


def make_empty_host(host: host_model.Host,
                    settings: HostSettings,
                    traits: Iterable[str] | None = None,
                    ) -> placement.HostState:
    """Describe an empty host.

    :param traits: the traits of its resource provider; None if unknown
    :raises InvalidInput: if host and settings contradict each other
    """
    _check(host, settings)
    cells = tuple(_make_cell(cell, settings) for cell in host.cells)
    supply = supplies.Supply(
        cells, tuple(pool for _, pool in list_pools(host, settings)),
        cpu_ratio=settings.cpu_allocation_ratio,
        ram_ratio=settings.ram_allocation_ratio,
        packing=settings.packing_host_numa_cells_allocation_strategy)
    memory_mib = sum(cell.memory_mib for cell in cells)
    free = guests.Resources(
        len(settings.dedicated),
        int((len(settings.shared) - settings.reserved_host_cpus)
            * settings.cpu_allocation_ratio),
        int((memory_mib - settings.reserved_host_memory_mb)
            * settings.ram_allocation_ratio),
        guests.UNKNOWN_DISK_GIB)
    return placement.HostState(
        supply, free, traits=None if traits is None else frozenset(traits),
        has_smt=host.threads_per_core > 1, address_bits=host.address_bits)


def _make_cell(cell: host_model.Cell, settings: HostSettings,
               ) -> supplies.CellSupply:
    dedicated = cell.cpus & settings.dedicated
    shared = cell.cpus & settings.shared
    used = dedicated | shared
    reserved = {item.size: item.count for item in settings.reserved_huge_pages
                if item.node == cell.id}
    return supplies.CellSupply(
        id=cell.id, socket=cell.socket, dedicated=dedicated, free=dedicated,
        shared=shared,
        siblings=tuple(core & used for core in cell.siblings if core & used),
        cpu_usage=0, memory_mib=cell.memory_mib, memory_used_mib=0,
        pages=tuple(
            supplies.PageSupply(size, total, 0, total - reserved.get(size, 0))
            for size, total in settings.pages[cell.id].items()))


def list_pools(host: host_model.Host, settings: HostSettings,
               ) -> Iterator[tuple[str, device_fit.Pool]]:
    """Yield the devices for guests, each with its address on the host.

    If the settings do not say how many virtual functions a device has, it has
    all that it supports, unless the alias requests physical functions.

    :raises InvalidInput: for a device that the host does not have
    """
    for spec in settings.pci_device_spec:
        device = _find_device(host, spec.get('address', ''))
        yield device.address, _make_pool(device, spec, settings)
    for mdev in settings.mdev_types:
        for address in mdev.device_addresses:
            device = _find_device(host, address)
            if device.address not in settings.device_counts:
                raise exception.InvalidInput(
                    host.name, f'the plan does not say how many vGPUs '
                    f'{device.address} gives; plan it again')
            # Placement does not know cells, but has a provider for each card.
            yield device.address, device_fit.pool(
                None, settings.device_counts[device.address],
                resource_class=mdev.mdev_class,
                )._replace(provider=device.address)


def _make_pool(device: host_model.Device, spec: Mapping[str, str],
               settings: HostSettings) -> device_fit.Pool:
    """Make the pool of an item of ``[pci]device_spec``.

    The claim compares vendor, product and type of a device with the alias;
    Placement offers it only for aliases with one of its traits.
    """
    aliases = [alias for alias in settings.pci_alias
               if _is_product(alias, spec)
               and (device_sets.TAG in spec or _has_traits(alias, spec))]
    virtual = not aliases or (
        aliases[0].get('device_type') != offered_devices.TYPE_PF)
    count = settings.device_counts.get(
        device.address, device.total_vfs if virtual else 1)
    tags: dict[str, object] = {
        device_fit.alias_tag(alias['name']): True for alias in aliases}
    if spec.get('physical_network'):
        tags['physical_network'] = spec['physical_network']
    pool = device_fit.Pool(device.cell, count or 1, tags)
    if device_sets.TAG not in spec:
        return pool
    traits = spec.get('traits', '').split(',')
    tags[device_sets.TAG] = spec[device_sets.TAG]
    tags[device_fit.OFFERED] = device_fit.render_offered(
        alias['name'] for alias in aliases
        if alias.get('traits', traits[0]) in traits)
    return pool._replace(tags=tags, provider=device.address)


def _is_product(alias: Mapping[str, str], spec: Mapping[str, str]) -> bool:
    """Whether an alias is for the product of an item of device_spec.

    An item without a product is for all devices of a plan.
    """
    for key in ('vendor_id', 'product_id'):
        if key in alias and key in spec and alias[key] != spec[key]:
            return False
    return True


def _has_traits(alias: Mapping[str, str], spec: Mapping[str, str]) -> bool:
    """Whether Placement offers a device without sets for an alias."""
    wanted = alias.get('traits')
    return wanted is None or wanted in spec.get('traits', '').split(',')


def _find_device(host: host_model.Host, address: str) -> host_model.Device:
    for device in host.devices:
        if device.address == address.lower():
            return device
    raise exception.InvalidInput(
        host.name, f'has no device {address[:40]}, which the plan gives to '
        'guests')


def _check(host: host_model.Host,
           settings: HostSettings) -> None:
    missing = (settings.dedicated | settings.shared) - host.cpus
    if missing:
        raise exception.InvalidInput(
            host.name, f'has no CPU {cpuset.render(missing)}, which the plan '
            'gives to guests')
    for cell in host.cells:
        if cell.id not in settings.pages:
            raise exception.InvalidInput(
                host.name, f'the plan has no pages of its cell {cell.id}')
        if 0 in settings.pages[cell.id]:
            raise exception.InvalidInput(
                host.name, 'the plan names pages of 0 KiB')

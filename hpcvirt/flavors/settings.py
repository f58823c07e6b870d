# SPDX-License-Identifier: Apache-2.0

"""The settings that a host needs for its flavors.

A plan computes them, its JSON document has them under ``host_config``, and
readers of the document get the same type. The fields have the names of Nova's
options.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Annotated

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices as device_fit
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import memory
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import planned_sets
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.model import usage as usage_model


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
_CpuList = Annotated[str, _cpu_list]


@dataclasses.dataclass(frozen=True, slots=True)
class ReservedPages:
    """An item of Nova's ``reserved_huge_pages``; the size is in KiB."""

    node: _Number
    size: _Number
    count: _Number


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
    :ivar pages: cell -> page size in KiB -> the total that nova-compute
        reports under these settings
    :ivar device_counts: address of a device -> the virtual functions or
        vGPUs that it gives, 1 for itself
    """

    cpu_dedicated_set: _CpuList
    cpu_shared_set: _CpuList
    reserved_host_memory_mb: _Number
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


def make_settings(partition: cpu_partition.Partition,
                  pools: Sequence[memory.CellPool],
                  guests: Iterable[shape_model.Shape],
                  profile: profiles.Profile,
                  offered: Iterable[offered_devices.OfferedDevice],
                  types: Mapping[device_choice.Devices, str],
                  sets: planned_sets.PlannedSets = planned_sets.NONE,
                  ) -> tuple[HostSettings, dict[int, int]]:
    """Compute the settings of a host for all flavors that may run on it.

    Each cell gets the huge pages that a mix of guests can fill, and those of
    the host's own programs. The host keeps the rest in normal pages.

    :param types: the ``device_type`` of the PCI alias of devices
    :param sets: the sets of devices that these guests get
    :returns: the settings; and cell -> the MiB of it that the host keeps
    """
    small = memory.small_page_kib(partition.host)
    page_kib = pools[0].page_kib if pools else small
    parts = {part for guest in guests for part in memory.memory_parts(guest)}
    pool_of = {pool.id: pool for pool in pools}
    pages, reserved, rest = {}, [], {}
    for cell in partition.host.cells:
        pool = pool_of.get(cell.id)
        cpus = pool.cores * partition.threads if pool else 0
        count = _pages_needed(cpus, pool, parts) if pool else 0
        own = dict(profile.host_pages_per_cell) if pool else {}
        huge = {each.size_kib: 0 for each in cell.pages} | own
        if pool and page_kib != small:
            huge[page_kib] = huge.get(page_kib, 0) + count
        huge.pop(small, None)
        huge_kib = sum(size * number for size, number in huge.items())
        normal = max(0, _memory_kib(cell, small) - huge_kib) // small
        pages[cell.id] = dict(sorted({small: normal, **huge}.items()))
        reserved += [ReservedPages(cell.id, size, number)
                     for size, number in own.items() if number]
        if pool and page_kib == small:
            reserved.append(ReservedPages(cell.id, small, normal - count))
        # The most that emulators need when the cell is full.
        emulators = max((min(cpus // part.cpus, count // part.pages)
                         * memory.overhead_mib(profile, part)
                         for part in parts), default=0.0)
        guests_mib = -(-count * page_kib // 1024)
        # Rounding errors of the sum must not cost a whole MiB.
        rest[cell.id] = max(0, int(
            cell.memory_mib - guests_mib - emulators + 1e-6
            - (memory.host_pages_mib(profile) if own else 0)))
    wanted = profile.device
    vgpus = wanted is not None and wanted.kind is device_choice.DeviceKind.VGPU
    device_specs = []
    if wanted and not vgpus:
        for item in offered:
            tags = sets.write_tags(item.device.address) if sets.sets else {}
            device_specs.append(make_device_spec(item, item.wanted) | tags)
    return HostSettings(
        cpu_dedicated_set=cpuset.render(partition.dedicated),
        cpu_shared_set=cpuset.render(partition.shared),
        reserved_host_memory_mb=sum(rest.values()),
        reserved_huge_pages=tuple(reserved),
        packing_host_numa_cells_allocation_strategy=profile.pack_cells,
        pages=pages,
        pci_device_spec=tuple(device_specs),
        mdev_types=(MdevType(
            wanted.mdev_type or '', tuple(item.device.address
                                          for item in offered),
            wanted.resource_class),) if wanted and vgpus else (),
        device_counts={item.device.address: item.count for item in offered},
        # All services of Nova need it.
        pci_alias=tuple(_make_aliases(wanted, guests, types, sets))), rest


def _make_aliases(wanted: device_choice.Devices | None,
                  guests: Iterable[shape_model.Shape],
                  types: Mapping[device_choice.Devices, str],
                  sets: planned_sets.PlannedSets,
                  ) -> Iterator[Mapping[str, str]]:
    """Write ``[pci]alias``, which all services of Nova need.

    Moves ignore the policy of the flavor and apply that of the alias.
    """
    named = {device.alias: device.wanted for each in sets.sets
             for device in each.members}
    if wanted and wanted.has_alias and wanted.sets is None:
        named[wanted.alias] = wanted
    # Guests of several cells prefer their cells only.
    policies = {device.alias: device.affinity for guest in sorted(
        guests, key=lambda guest: len(guest.cells))
        for device in guest.devices} if sets.sets else {}
    for name, own in named.items():
        alias = {'name': name, 'vendor_id': own.vendor_id or '',
                 'product_id': own.product_id or '',
                 'device_type': types[own], 'numa_policy': (
                     policies.get(name) or own.affinity).value}
        if sets.sets:
            alias['traits'] = planned_sets.make_trait(name)
        yield alias


def make_device_spec(item: offered_devices.OfferedDevice,
                     wanted: device_choice.Devices) -> dict[str, str]:
    """Write an item of ``[pci]device_spec``.

    The address of a physical function also matches its virtual functions.
    With their product id, the item does not match the physical function.
    """
    spec = {'address': item.device.address}
    product = wanted.product_id or item.device.vf_product_id
    if product is not None:
        spec['vendor_id'] = item.device.vendor_id
        spec['product_id'] = product
    if wanted.ports is device_choice.Ports.NEUTRON:
        spec['physical_network'] = wanted.physical_network or ''
    return spec


def make_supply(host: host_model.Host,
                settings: HostSettings) -> supplies.Supply:
    """Describe the empty host as nova-compute reports it with its settings.

    :raises InvalidInput: if host and settings contradict each other
    """
    _check(host, settings)
    configured = dataclasses.replace(host, cells=tuple(
        dataclasses.replace(cell, pages=tuple(
            host_model.PagePool(size, total) for size, total
            in settings.pages[cell.id].items()))
        for cell in host.cells))
    usage = usage_model.Usage(tuple(
        usage_model.CellUsage(
            cell.id, cell.cpus & settings.dedicated,
            cell.cpus & settings.shared,
            pages=tuple(
                usage_model.PageUsage(item.size, reserved=item.count)
                for item in settings.reserved_huge_pages
                if item.node == cell.id))
        for cell in host.cells))
    return supplies.make_supply(
        configured, usage,
        tuple(pool for _, pool in device_pools(host, settings)),
        settings.packing_host_numa_cells_allocation_strategy)


def device_pools(host: host_model.Host, settings: HostSettings,
                 ) -> Iterator[tuple[str, device_fit.Pool]]:
    """Yield the devices for guests, each with its address on the host.

    If the settings do not say how many virtual functions a device has, it has
    all that it supports, unless the alias requests physical functions.

    :raises InvalidInput: for a device that the host does not have
    """
    for spec in settings.pci_device_spec:
        device = _device(host, spec.get('address', ''))
        aliases = [each for each in settings.pci_alias
                   if planned_sets.serves(each, spec)]
        alias: Mapping[str, str] = next(iter(aliases), {})
        virtual = alias.get('device_type') != offered_devices.TYPE_PF
        count = settings.device_counts.get(
            device.address, device.total_vfs if virtual else 1)
        pool = device_fit.pool(
            device.cell, count or 1, alias=alias.get('name'),
            physnet=spec.get('physical_network'))
        if device_sets.TAG in spec:
            pool = pool._replace(provider=device.address, tags={
                device_sets.TAG: spec[device_sets.TAG], **{
                    device_fit.alias_tag(each['name']): True
                    for each in aliases}})
        yield device.address, pool
    for mdev in settings.mdev_types:
        for address in mdev.device_addresses:
            device = _device(host, address)
            if device.address not in settings.device_counts:
                raise exception.InvalidInput(
                    host.name, f'the plan does not say how many vGPUs '
                    f'{device.address} gives; plan it again')
            # Placement does not know cells, but has a provider for each card.
            yield device.address, device_fit.pool(
                None, settings.device_counts[device.address],
                resource_class=mdev.mdev_class,
                )._replace(provider=device.address)


def _device(host: host_model.Host, address: str) -> host_model.Device:
    for device in host.devices:
        if device.address == address.lower():
            return device
    raise exception.InvalidInput(
        host.name, f'has no device {address[:40]}, which the plan gives to '
        'guests')


def _check(host: host_model.Host, settings: HostSettings) -> None:
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


def _memory_kib(cell: host_model.Cell, small_kib: int) -> int:
    """Return the memory of a cell, exact if its pages are known."""
    if cell.pool(small_kib) is None:
        return cell.memory_mib * 1024
    return sum(pool.size_kib * pool.total for pool in cell.pages)


def _pages_needed(cpus: int, pool: memory.CellPool,
                  parts: Iterable[memory.MemoryPart]) -> int:
    """Return the most pages of a cell that a mix of guests fills.

    The mix is limited by the CPUs of the cell and by its pages for guests.
    """
    fitting = {(part.cpus, part.pages) for part in parts
               if part.page_kib == pool.page_kib and part.pages <= pool.pages}
    unit = math.gcd(*(pages for _, pages in fitting)) or 1
    limit = (1 << pool.pages // unit + 1) - 1
    # sums[n]: bit s is set if guests with at most n CPUs fill s units.
    sums = [1]
    for number in range(1, cpus + 1):
        total = sums[-1]
        for own, pages in fitting:
            if own <= number:
                total |= sums[number - own] << pages // unit
        sums.append(total & limit)
    return (sums[-1].bit_length() - 1) * unit

# SPDX-License-Identifier: Apache-2.0

"""The settings that a host has now, from its topology and its nova.conf.

A topology shows the pages of each cell, but neither the CPUs for guests nor
the devices: without a nova.conf, these are as the profile plans them.
"""

import dataclasses
import fnmatch
import json
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from hpcvirt import config_file
from hpcvirt import exception
from hpcvirt.flavors import host_settings
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.topology import pci

#: Nova's default of ``reserved_host_memory_mb``.
RESERVED_MIB = 512

#: Ratios of Nova, with the options that count if the first one is not set.
_CPU_RATIO = ('cpu_allocation_ratio', 'initial_cpu_allocation_ratio')
_RAM_RATIO = ('ram_allocation_ratio', 'initial_ram_allocation_ratio')


def keep_pages(host: host_model.Host, planned: host_settings.HostSettings,
               ) -> host_settings.HostSettings:
    """Put the pages that a host has now into planned settings."""
    return dataclasses.replace(
        planned, pages=_list_pages(host), reserved_huge_pages=(),
        reserved_host_memory_mb=RESERVED_MIB)


def read_settings(host: host_model.Host, conf: 'NovaConf',
                  planned: host_settings.HostSettings,
                  ) -> host_settings.HostSettings:
    """Read the settings of a host from the nova.conf of its nova-compute.

    :param planned: what its profile plans, which says how many virtual
        functions there are of a device; the file does not
    :raises InvalidInput: naming the option that is wrong, or of a kind that
        is not understood
    """
    dedicated = conf.read_cpus('cpu_dedicated_set')
    shared = conf.read_cpus('cpu_shared_set')
    if dedicated is None and shared is None:
        # Without both, Nova lets all guests float over all CPUs.
        shared = host.cpus
    specs, counts = _expand_devices(host, conf, planned)
    return host_settings.HostSettings(
        cpu_dedicated_set=cpuset.render(dedicated or ()),
        cpu_shared_set=cpuset.render(shared or ()),
        reserved_host_memory_mb=int(conf.read_number(
            'reserved_host_memory_mb', default=RESERVED_MIB)),
        reserved_host_cpus=int(conf.read_number('reserved_host_cpus',
                                                default=0)),
        cpu_allocation_ratio=conf.read_number(*_CPU_RATIO, default=4.0),
        ram_allocation_ratio=conf.read_number(*_RAM_RATIO, default=1.0),
        reserved_huge_pages=tuple(conf.read_reserved_pages()),
        packing_host_numa_cells_allocation_strategy=conf.is_true(
            'compute', 'packing_host_numa_cells_allocation_strategy'),
        pages=_list_pages(host), pci_device_spec=specs, device_counts=counts,
        pci_alias=tuple(conf.read_objects('pci', 'alias')))


def _list_pages(host: host_model.Host) -> dict[int, dict[int, int]]:
    return {cell.id: {pool.size_kib: pool.total for pool in cell.pages}
            for cell in host.cells}


@dataclasses.dataclass(frozen=True)
class NovaConf:
    """The options of a nova.conf.

    :ivar where: the file, for errors
    :ivar options: (group, option) -> its values, in order
    """

    where: str
    options: config_file.Sections

    def get(self, group: str, name: str) -> str:
        """Return the value of an option; empty if it is not set."""
        values = self.options.get((group, name), ())
        return values[-1].strip() if values else ''

    def is_true(self, group: str, name: str) -> bool:
        """Whether a switch is on, as oslo.config reads it."""
        return config_file.is_true(self.get(group, name))

    def read_cpus(self, name: str) -> frozenset[int] | None:
        """Read a set of CPUs; None if the option is not set."""
        text = self.get('compute', name)
        if not text:
            return None
        return cpuset.parse(text, f'{self.where}: [compute]{name}')

    def read_number(self, *names: str, default: float) -> float:
        """Read the first of some numbers that is set, and not zero."""
        for name in names:
            text = self.get('DEFAULT', name)
            if not text:
                continue
            try:
                value = float(text)
            except ValueError:
                value = -1.0
            if not 0 <= value <= 2 ** 53:
                raise exception.InvalidInput(
                    f'{self.where}: [DEFAULT]{name}',
                    f'{text[:40]!r} is not a number')
            # A ratio of 0.0 stands for the default.
            if value or len(names) == 1:
                return value
        return default

    def read_reserved_pages(self) -> Iterator[host_settings.ReservedPages]:
        """Read ``reserved_huge_pages``, which may be repeated."""
        for text in self.options.get(('DEFAULT', 'reserved_huge_pages'), ()):
            item = host_settings.read_reserved_pages(text)
            if item is None:
                raise exception.InvalidInput(
                    f'{self.where}: [DEFAULT]reserved_huge_pages',
                    f'{text[:64]!r} is not node:N,size:SIZE,count:N')
            yield item

    def read_objects(self, group: str, name: str,
                     ) -> Iterator[dict[str, str]]:
        """Read JSON objects, or lists of them, of an option."""
        where = f'{self.where}: [{group}]{name}'
        for text in self.options.get((group, name), ()):
            try:
                found = json.loads(text)
            except (ValueError, RecursionError):
                found = None
            items = found if isinstance(found, list) else [found]
            for item in items:
                if not isinstance(item, dict):
                    raise exception.InvalidInput(
                        where, f'{text[:64]!r} is not a JSON object')
                yield {str(key): _plain(value, where)
                       for key, value in item.items()}


def read_conf(text: str, where: str) -> NovaConf:
    """Read a nova.conf.

    :param where: the file, for errors
    :raises InvalidInput: if oslo.config would refuse it
    """
    try:
        conf = NovaConf(where, config_file.parse(text))
    except config_file.Malformed as exc:
        raise exception.InvalidInput(where, str(exc)) from None
    for group, name, instead in (
            ('DEFAULT', 'vcpu_pin_set', 'cpu_dedicated_set'),
            ('devices', 'enabled_mdev_types', 'settings: planned')):
        if conf.get(group, name):
            raise exception.InvalidInput(
                f'{where}: [{group}]{name}',
                f'is not understood here; use {instead}')
    return conf


def _plain(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    raise exception.InvalidInput(
        where, f'{str(value)[:40]!r} is not understood here; only text is')


def _expand_devices(host: host_model.Host, conf: NovaConf,
                    planned: host_settings.HostSettings,
                    ) -> tuple[tuple[Mapping[str, str], ...], dict[str, int]]:
    """Find the devices that ``[pci]device_spec`` gives to guests.

    :returns: an item for each device; and its address -> the number of
        functions that guests get of it
    """
    where = f'{conf.where}: [pci]device_spec'
    virtual = pci.list_virtual(host.devices)
    functions = {item['address']: planned.device_counts[item['address']]
                 for item in planned.pci_device_spec}
    found: list[Mapping[str, str]] = []
    counts: dict[str, int] = {}
    for spec in conf.read_objects('pci', 'device_spec'):
        if 'devname' in spec:
            raise exception.InvalidInput(
                where, 'devname is not understood here; use the address')
        for device in host.devices:
            count, product = _find_functions(device, spec, device in virtual)
            # Nova takes the first item that matches a device.
            if not count or device.address in counts:
                continue
            if product != device.product_id:
                count = functions.get(device.address, count)
            counts[device.address] = count
            found.append({**spec, 'address': device.address,
                          'vendor_id': device.vendor_id,
                          'product_id': product})
    return tuple(found), counts


def _find_functions(device: host_model.Device, spec: Mapping[str, str],
                    is_virtual: bool) -> tuple[int, str]:
    """Find the functions of a device that an item gives to guests.

    The address of a physical function stands for its virtual functions as
    well, and their product tells them from it.

    :returns: their number, and their product
    """
    pattern = spec.get('address', '*').lower()
    if ':' in pattern and pattern.count(':') == 1:
        pattern = f'*:{pattern}'
    if not fnmatch.fnmatchcase(device.address, pattern):
        return 0, ''
    if spec.get('vendor_id', '*') not in ('*', device.vendor_id):
        return 0, ''
    product = spec.get('product_id', '*')
    gives_functions = bool(device.total_vfs) and not is_virtual
    if product == device.product_id or (product == '*'
                                        and not gives_functions):
        return 1, device.product_id
    if gives_functions and (
            product == '*' or device.vf_product_id in (None, product)):
        return device.total_vfs, device.vf_product_id or product
    return 0, ''

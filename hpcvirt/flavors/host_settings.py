# SPDX-License-Identifier: Apache-2.0

"""The settings of a compute host on which the answers about it depend.

A plan computes them (:mod:`hpcvirt.flavors.planned_settings`), or they are
those that a host has (:mod:`hpcvirt.flavors.current_settings`). The document
of a plan has them under ``host_config``. The fields have the names of Nova's
options.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Annotated

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.model import cpuset


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

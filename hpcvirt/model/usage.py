# SPDX-License-Identifier: Apache-2.0

"""The resources of a host that are available to guests, and those in use."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class PageUsage:
    """Pages of one size on one cell that are not free.

    :ivar used: pages allocated to instances
    :ivar reserved: pages kept for the host (``reserved_huge_pages``)
    """

    size_kib: int
    used: int = 0
    reserved: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class CellUsage:
    """The state of one host cell, as in Nova's NUMACell.

    :ivar cell: id of the host cell
    :ivar dedicated_cpus: its CPUs in ``cpu_dedicated_set``: the PCPUs
    :ivar shared_cpus: its CPUs in ``cpu_shared_set``
    :ivar pinned_cpus: PCPUs pinned to instances, a subset of the dedicated
    :ivar cpu_usage: shared vCPUs that float over ``shared_cpus``
    :ivar memory_used_mib: memory allocated to instances
    :ivar pages: one entry per page size of the cell; sizes left out are free
    :ivar physnets: physical networks with affinity to this cell
        (``[neutron_physnet_NAME]numa_nodes``)
    :ivar tunneled: whether tunnelled networks have affinity to this cell
    """

    cell: int
    dedicated_cpus: frozenset[int]
    shared_cpus: frozenset[int] = frozenset()
    pinned_cpus: frozenset[int] = frozenset()
    cpu_usage: int = 0
    memory_used_mib: int = 0
    pages: tuple[PageUsage, ...] = ()
    physnets: frozenset[str] = frozenset()
    tunneled: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """The state of a whole host.

    :ivar cells: one entry per host cell that Nova reports
    :ivar cpu_ratio: ``cpu_allocation_ratio``, for shared CPUs
    :ivar ram_ratio: ``ram_allocation_ratio``, for memory without page size
    """

    cells: tuple[CellUsage, ...]
    cpu_ratio: float = 1.0
    ram_ratio: float = 1.0

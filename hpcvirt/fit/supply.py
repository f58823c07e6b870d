# SPDX-License-Identifier: Apache-2.0

"""The resources that a host has left, cell by cell.

These are named tuples because the scheduler creates them for every host and
every request: they are immutable and cost half a microsecond.
"""

import dataclasses
import typing
from collections.abc import Sequence
from collections.abc import Set

from hpcvirt.fit import devices


class PageSupply(typing.NamedTuple):
    """The pages of one size on one cell; free is total - used - reserved."""

    size_kib: int
    total: int
    used: int
    free: int


class CellSupply(typing.NamedTuple):
    """One host cell.

    :ivar id: Nova's number of the cell
    :ivar socket: physical socket; None if it is unknown or if the cell
        spans several
    :ivar dedicated: all PCPUs, pinned or not
    :ivar free: PCPUs that are not pinned
    :ivar shared: CPUs over which shared vCPUs float
    :ivar siblings: SMT siblings, one set per core
    :ivar cpu_usage: shared vCPUs of instances on this cell
    :ivar memory_mib: memory, huge pages included
    :ivar memory_used_mib: memory allocated to instances
    :ivar pages: one per page size; empty if the host does not report them
    :ivar physnets: physical networks with affinity to this cell
    :ivar tunneled: whether tunnelled networks have affinity to this cell
    """

    id: int
    socket: int | None
    dedicated: Set[int]
    free: Set[int]
    shared: Set[int]
    siblings: Sequence[Set[int]]
    cpu_usage: int
    memory_mib: int
    memory_used_mib: int
    pages: Sequence[PageSupply]
    physnets: Set[str] = frozenset()
    tunneled: bool = False

    @property
    def memory_free_mib(self) -> int:
        return self.memory_mib - self.memory_used_mib

    @property
    def threads_per_core(self) -> int:
        """The most threads of a core; 0 for a cell without cores."""
        return max(map(len, self.siblings), default=0)

    @property
    def empty(self) -> bool:
        """Whether no instance uses CPUs, memory or pages of this cell."""
        return (len(self.free) == len(self.dedicated) and
                not self.cpu_usage and not self.memory_used_mib and
                not any(pool.used for pool in self.pages))


@dataclasses.dataclass(frozen=True, slots=True)
class Supply:
    """A whole host.

    :ivar cells: in the order in which the host reports them; may be a
        sequence that creates its items lazily
    :ivar pools: free PCI devices in Nova's order; None if Nova does not
        track devices on this host: it then does not check affinity, and sends
        no guest that requests devices
    :ivar cpu_ratio: overcommit of shared CPUs
    :ivar ram_ratio: overcommit of memory, for guests without dedicated CPUs
    :ivar spares_devices: whether the claim takes cells with devices last for
        a guest that requests none, as in Nova 34; Nova 32 and 33 ignore
        devices for such a guest
    :ivar packing: ``packing_host_numa_cells_allocation_strategy``: whether the
        claim takes the fullest cells first; otherwise the emptiest
    """

    cells: Sequence[CellSupply]
    pools: Sequence[devices.Pool] | None = ()
    cpu_ratio: float = 1.0
    ram_ratio: float = 1.0
    spares_devices: bool = True
    packing: bool = False

# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What a host has left to give, cell by cell.

The summaries are named tuples because the scheduler makes some for every
host and every request: they are immutable and cost half a microsecond.
"""

import dataclasses
import typing
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set

from hpcvirt.fit import devices
from hpcvirt.model import host as host_model
from hpcvirt.model import usage as usage_model


class PageSupply(typing.NamedTuple):
    """The pages of one size on one cell; free is total - used - reserved."""

    size_kib: int
    total: int
    used: int
    free: int


class CellSupply(typing.NamedTuple):
    """One host cell.

    :ivar id: Nova's number of the cell
    :ivar package: physical package, None if it is unknown or not one
    :ivar dedicated: PCPUs, taken or not
    :ivar free: PCPUs that no instance has
    :ivar shared: CPUs over which shared vCPUs float
    :ivar siblings: SMT siblings, one set per core
    :ivar cpu_usage: shared vCPUs that float here already
    :ivar memory_mib: memory, huge pages included
    :ivar memory_used_mib: memory given to instances
    :ivar pages: one per page size; empty if the host does not report them
    :ivar physnets: physical networks with affinity to this cell
    :ivar tunneled: tunnelled networks have affinity to this cell
    """

    id: int
    package: int | None
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
        """Threads of the widest core; 0 for a cell without cores."""
        return max(map(len, self.siblings), default=0)

    @property
    def empty(self) -> bool:
        """No instance has anything of this cell."""
        return (len(self.free) == len(self.dedicated) and
                not self.cpu_usage and not self.memory_used_mib and
                not any(pool.used for pool in self.pages))


@dataclasses.dataclass(frozen=True, slots=True)
class Supply:
    """A whole host.

    :ivar cells: in the order in which the host reports them; may be a
        sequence that makes its items when they are asked for
    :ivar pools: free PCI devices in Nova's order; None if Nova keeps no
        account of them on this host, and then does not look at them
    :ivar cpu_ratio: overcommit of shared CPUs
    :ivar ram_ratio: overcommit of memory, for guests without dedicated CPUs
    """

    cells: Sequence[CellSupply]
    pools: Sequence[devices.Pool] | None = ()
    cpu_ratio: float = 1.0
    ram_ratio: float = 1.0


def of_host(host: host_model.Host, usage: usage_model.Usage,
            pools: Sequence[devices.Pool] = ()) -> Supply:
    """Hold a Host against its Usage.

    Cells of the host that the usage does not name are not Nova's to give.
    """
    return Supply(
        cells=tuple(_cell(host.by_id[taken.cell], taken)
                    for taken in usage.cells),
        pools=tuple(pools),
        cpu_ratio=usage.cpu_ratio, ram_ratio=usage.ram_ratio)


def _cell(cell: host_model.Cell, taken: usage_model.CellUsage) -> CellSupply:
    ours = taken.dedicated_cpus | taken.shared_cpus
    used: Mapping[int, usage_model.PageUsage] = {
        pages.size_kib: pages for pages in taken.pages}
    return CellSupply(
        id=cell.id, package=cell.package, dedicated=taken.dedicated_cpus,
        free=taken.dedicated_cpus - taken.pinned_cpus,
        shared=taken.shared_cpus,
        siblings=tuple(core & ours for core in cell.siblings if core & ours),
        cpu_usage=taken.cpu_usage, memory_mib=cell.memory_mib,
        memory_used_mib=taken.memory_used_mib,
        pages=tuple(_pages(pool, used.get(pool.size_kib))
                    for pool in cell.pages),
        physnets=taken.physnets, tunneled=taken.tunneled)


def _pages(pool: host_model.PagePool,
           usage: usage_model.PageUsage | None) -> PageSupply:
    used = usage.used if usage else 0
    reserved = usage.reserved if usage else 0
    return PageSupply(pool.size_kib, pool.total, used,
                      pool.total - used - reserved)

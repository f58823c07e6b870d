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

"""What a guest asks of a host, compiled once per request.

A :class:`~hpcvirt.model.shape.Shape` (or, in the scheduler, a RequestSpec)
becomes a :class:`Demand`; the same Demand is then held against the
:class:`~hpcvirt.fit.supply.Supply` of one host after the other.
"""

import dataclasses
import functools

from hpcvirt.fit import devices
from hpcvirt.model import shape as shape_model

#: Page sizes by class, which Nova resolves on the first cell that it tries.
_RESOLVED_BY_NOVA = (shape_model.PageClass.SMALL, shape_model.PageClass.LARGE,
                     shape_model.PageClass.ANY)


@dataclasses.dataclass(frozen=True, slots=True)
class CellDemand:
    """What one guest cell asks of the host cell that takes it.

    :ivar policy: CPU policy; Nova's None means shared
    :ivar threads: thread policy; None is Nova's default, which is prefer
    :ivar pcpus: dedicated vCPUs
    :ivar vcpus: shared vCPUs
    :ivar memory_mib: memory
    :ivar page_kib: page size in KiB, a class of sizes, or None
    :ivar emulator_pcpus: 1 if the guest's emulator threads have a PCPU of
        their own beside this cell (guest cell 0 of an isolate guest)
    """

    policy: shape_model.CPUPolicy
    threads: shape_model.ThreadPolicy | None
    pcpus: int
    vcpus: int
    memory_mib: int
    page_kib: int | shape_model.PageClass | None = None
    emulator_pcpus: int = 0


@dataclasses.dataclass(frozen=True)
class Demand:
    """What a whole guest asks.

    :ivar cells: one per guest cell, in guest order; empty for a guest
        without NUMA topology
    :ivar requests: PCI devices, in the order in which Nova takes them
    :ivar physnets: physical networks whose cells the guest must touch
    :ivar tunneled: likewise for tunnelled networks
    :ivar numa_scope: what the host cells must have in common
    :ivar exclusive_cells: the host cells must be empty
    """

    cells: tuple[CellDemand, ...]
    requests: tuple[devices.Request, ...] = ()
    physnets: frozenset[str] = frozenset()
    tunneled: bool = False
    numa_scope: shape_model.NUMAScope = shape_model.NUMAScope.HOST
    exclusive_cells: bool = False

    @functools.cached_property
    def uniform(self) -> bool:
        """All guest cells ask the same: host cells need only be counted."""
        return all(cell == self.cells[0] for cell in self.cells)

    @functools.cached_property
    def selective(self) -> bool:
        """It matters which host cells are taken, not only how many."""
        return bool(self.requests or self.physnets or self.tunneled or
                    self.numa_scope is not shape_model.NUMAScope.HOST or
                    self.exclusive_cells)

    @functools.cached_property
    def pages_by_class(self) -> bool:
        """Some page size is a class (small, large, any), not a size."""
        return any(cell.page_kib in _RESOLVED_BY_NOVA for cell in self.cells)


def of_shape(shape: shape_model.Shape) -> Demand:
    """Compile a Shape."""
    isolated = shape.emulator_threads is shape_model.EmulatorThreads.ISOLATE
    pinned = shape.cpu_policy is not shape_model.CPUPolicy.SHARED
    cells = tuple(
        CellDemand(
            policy=shape.cpu_policy, threads=shape.thread_policy,
            pcpus=cell.pcpus, vcpus=cell.vcpus, memory_mib=cell.memory_mib,
            page_kib=cell.page_kib or None,
            emulator_pcpus=int(isolated and pinned and index == 0))
        for index, cell in enumerate(shape.cells))
    return Demand(
        cells=cells,
        requests=tuple(devices.request(r) for r in shape.devices),
        numa_scope=shape.numa_scope, exclusive_cells=shape.exclusive_cells)

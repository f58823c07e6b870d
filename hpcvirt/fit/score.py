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

"""Score a placement by the room for larger guests that it destroys.

Free CPUs are worth more together than apart: whenever a block of free CPUs
doubles, guests of one more size can use every CPU of it. A block of ``n``
CPUs is therefore worth ``n * log2(n)``. Memory is valued by the same
formula, converted to the number of CPUs that it would serve in guests like
this one. The value of a host is the sum over

* its cells: the free CPUs (weight 1) and the free memory (MEMORY);
* the host itself and, with the lower weight PACKAGE, each package of several
  cells: the free memory of all cells (GROUP_MEMORY) and, counted in cells,
  the CPUs of whole cells (WHOLE_CELLS). A cell of which the fraction ``p`` is
  free counts as ``p ** 4`` of a whole one: little, but more the closer the
  cell is to being whole again;
* its cells with free PCI devices: the free CPUs once more (DEVICE), if the
  guest requests no devices and would take the CPUs next to them.

A CPU without memory is not free: the free CPUs of a cell are limited to those
for which it has memory of the guest's page size, in the proportion of the
whole cell.

The loss is the value before minus the value after. Its unit is CPUs times
doublings of the guest size for every host, so that hosts and cells of all
sizes can be compared: guests go to small cells and hosts before large ones,
to cells that they fill, and to cells that are already fragmented; hosts with
much memory are left to guests that need it.

The idea is that of scheduling by the gradient of fragmentation (Weng et al.,
"Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent", USENIX ATC 2023), with a closed form in place of a known
workload. The weights were found by simulation, see ``benchmarks/packing.py``.
"""

import math
import typing
from collections.abc import Collection
from collections.abc import Sequence

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import placement as placements
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: Weights of the parts, against 1 for the CPUs of a cell.
MEMORY = 1.0
DEVICE = 0.3
WHOLE_CELLS = 0.25
GROUP_MEMORY = 0.8
PACKAGE = 0.25


class _Room(typing.NamedTuple):
    """The room on a cell for guests of the same kind.

    :ivar size: CPUs of the empty cell
    :ivar before: free CPUs that have memory, without the guest
    :ivar after: likewise, with the guest
    :ivar memory_before: free memory without the guest, as the number of CPUs
        that it serves
    :ivar memory_after: likewise, with the guest
    """

    size: float
    before: float
    after: float
    memory_before: float
    memory_after: float


def loss(demand: demands.Demand, supply: supplies.Supply,
         placement: placements.Placement) -> float:
    """Measure the room that a guest destroys.

    :param demand: a guest with NUMA cells
    :param placement: where it will be placed
    :returns: the loss in CPUs times doublings; less is better
    """
    taken = dict(zip(placement.cells, demand.cells, strict=True))
    page_kib = placement.pages_kib[0] if placement.pages_kib else None
    share_mib = _memory_share(demand)
    rooms: dict[int, _Room] = {}
    packages: dict[int, list[_Room]] = {}
    for cell in supply.cells:
        room = _room(cell, demand.cells[0].policy, page_kib,
                     taken.get(cell.id), share_mib, supply)
        if not room.size:
            continue
        rooms[cell.id] = room
        if cell.package is not None:
            packages.setdefault(cell.package, []).append(room)
    near = () if demand.requests else _device_cells(supply)
    destroyed = 0.0
    for number in taken.keys() & rooms.keys():
        weight = 1 + DEVICE if number in near else 1
        room = rooms[number]
        destroyed += (
            weight * (_doublings(room.before) - _doublings(room.after))
            + MEMORY * (_doublings(room.memory_before)
                        - _doublings(room.memory_after)))
    for group in packages.values():
        if len(group) < len(rooms):
            destroyed += PACKAGE * _group_loss(group)
    return destroyed + _group_loss(rooms.values())


def locality(demand: demands.Demand, supply: supplies.Supply,
             placement: placements.Placement,
             providers: devices.Providers = ()) -> float:
    """Compute the fraction of a guest's devices on its own host cells.

    :param providers: what Placement allocated to each PCI request
    :returns: 0.0 to 1.0; 0.0 if no device can be allocated
    """
    if not demand.requests or supply.pools is None:
        return 0.0
    left = devices.Allocator(
        demand.requests, supply.pools,
        {cell.id: cell.package for cell in supply.cells},
        providers).allocate(placement.cells)
    if left is None:
        return 0.0
    near = total = 0
    for pool, free in zip(supply.pools, left, strict=True):
        total += pool.free - free
        if pool.cell in placement.cells:
            near += pool.free - free
    return near / total if total else 0.0


def _room(cell: supplies.CellSupply, policy: shape_model.CPUPolicy,
          page_kib: int | None, guest: demands.CellDemand | None,
          share_mib: float, supply: supplies.Supply) -> _Room:
    size: float
    free: float
    if policy is shape_model.CPUPolicy.SHARED:
        size = len(cell.shared) * supply.cpu_ratio
        free = size - cell.cpu_usage
        wanted = guest.vcpus if guest else 0
    else:
        size = len(cell.dedicated)
        free = len(cell.free)
        wanted = guest.pcpus + guest.emulator_pcpus if guest else 0
    memory, memory_free = _memory(cell, policy, page_kib, supply.ram_ratio)
    if size <= 0 or memory <= 0:
        return _Room(0.0, 0.0, 0.0, 0.0, 0.0)
    cpus_per_mib = size / memory
    before = max(min(free, memory_free * cpus_per_mib), 0.0)
    if guest is None:
        run = memory_free / share_mib
        return _Room(size, before, before, run, run)
    memory_left = memory_free - guest.memory_mib
    return _Room(
        size, before,
        max(min(free - wanted, memory_left * cpus_per_mib), 0.0),
        memory_free / share_mib, memory_left / share_mib)


def _memory_share(demand: demands.Demand) -> float:
    """Compute the MiB for each CPU of the guest."""
    cpus = sum(cell.vcpus if cell.policy is shape_model.CPUPolicy.SHARED
               else cell.pcpus for cell in demand.cells)
    memory_mib = sum(cell.memory_mib for cell in demand.cells)
    return max(memory_mib, 1) / max(cpus, 1)


def _memory(cell: supplies.CellSupply, policy: shape_model.CPUPolicy,
            page_kib: int | None, ram_ratio: float) -> tuple[float, float]:
    """Compute the memory of a cell for guests, in total and free.

    A guest that requests no page size takes the smallest pages; without
    dedicated CPUs it overcommits them.
    """
    if page_kib is None and policy is shape_model.CPUPolicy.SHARED:
        memory = cell.memory_mib * ram_ratio
        return memory, memory - cell.memory_used_mib
    if not cell.pages:
        return cell.memory_mib, cell.memory_free_mib
    if page_kib is None:
        pool = min(cell.pages)
    else:
        for pool in cell.pages:
            if pool.size_kib == page_kib:
                break
        else:
            return 0.0, 0.0
    free = pool.free * pool.size_kib / 1024
    return free + pool.used * pool.size_kib / 1024, free


def _group_loss(rooms: Collection[_Room]) -> float:
    """Measure the loss for guests that need several cells of a group."""
    if len(rooms) < 2:
        return 0.0
    size = run_before = run_after = whole_before = whole_after = 0.0
    for room in rooms:
        size += room.size
        run_before += room.memory_before
        run_after += room.memory_after
        part = room.before / room.size
        whole_before += part * part * part * part
        if room.after != room.before:
            part = room.after / room.size
        whole_after += part * part * part * part
    whole = _doublings(whole_before) - _doublings(whole_after)
    run = _doublings(run_before) - _doublings(run_after)
    return WHOLE_CELLS * size / len(rooms) * whole + GROUP_MEMORY * run


def _doublings(amount: float) -> float:
    return amount * math.log2(amount) if amount > 1 else 0.0


def _device_cells(supply: supplies.Supply) -> Sequence[int | None]:
    return [pool.cell for pool in supply.pools or () if pool.free]

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

"""How much room for larger guests a placement destroys.

Free CPUs are worth more together than apart. The worth of a host is

* for each cell with ``a`` free CPUs ``a * log2(a)``: whenever a run of free
  CPUs doubles, guests of one more size can use every CPU of it;
* for each package of several cells, and for the host, with ``x`` whole free
  cells ``GROUP * s * x * log2(x)``, where ``s`` is the size of a cell: the
  same measure, in cells. A cell that is partly taken counts for
  ``(a / s) ** 4`` of a whole one: hardly, but more the nearer it is to being
  whole again;
* for each cell that has free PCI devices ``DEVICE * a * log2(a)`` more, when
  the guest asks for none: it would take the CPUs beside them.

A CPU without memory is not free: ``a`` is cut to the CPUs for which the cell
has memory, of the guest's page size, in the proportion of the whole cell.

The loss is the worth before less the worth after. Its unit is CPUs times
doublings of the guest's size, so hosts and cells of different sizes compare.
Small hosts are used first, guests go to cells that they fill, and what is
already broken is used up before anything else is.

The form follows the idea of scheduling by the gradient of fragmentation
(Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
Fragmentation Gradient Descent", USENIX ATC 2023), with a closed form in place
of a known workload. The constants were found by ``benchmarks/packing.py``;
the result hardly changes between half and twice their values.
"""

import math
import typing
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import placement as placements
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as model

GROUP = 0.2
DEVICE = 0.1


class _Room(typing.NamedTuple):
    """A cell as a guest of the same kind would find it.

    :ivar size: CPUs of the empty cell
    :ivar before: free CPUs that have memory, before the guest comes
    :ivar after: likewise, with the guest on it
    """

    size: float
    before: float
    after: float


def loss(demand: demands.Demand, supply: supplies.Supply,
         placed: placements.Placement) -> float:
    """Measure the room that a guest destroys.

    :param demand: a guest with NUMA cells
    :param placed: where it will sit
    :returns: the loss in CPUs times doublings; less is better
    """
    taken = dict(zip(placed.cells, demand.cells, strict=True))
    page_kib = placed.pages_kib[0] if placed.pages_kib else None
    rooms: dict[int, _Room] = {}
    packages: dict[int, list[_Room]] = {}
    for cell in supply.cells:
        room = _room(cell, demand.cells[0].policy, page_kib,
                     taken.get(cell.id), supply)
        rooms[cell.id] = room
        if cell.package is not None:
            packages.setdefault(cell.package, []).append(room)
    near = () if demand.requests else _device_cells(supply)
    destroyed = 0.0
    for number in taken:
        weight = 1 + DEVICE if number in near else 1
        room = rooms[number]
        destroyed += weight * (_doublings(room.before)
                               - _doublings(room.after))
    for group in packages.values():
        if len(group) < len(rooms):
            destroyed += GROUP * _group_loss(group)
    return destroyed + GROUP * _group_loss(rooms.values())


def locality(demand: demands.Demand, supply: supplies.Supply,
             placed: placements.Placement,
             providers: devices.Providers = ()) -> float:
    """Tell which part of the guest's devices sits on its own host cells.

    :param providers: what Placement allocated to each PCI request
    :returns: 0.0 to 1.0; 0.0 if no device can be had
    """
    if not demand.requests or supply.pools is None:
        return 0.0
    left = devices.Offer(
        demand.requests, supply.pools,
        {cell.id: cell.package for cell in supply.cells},
        providers).take(placed.cells)
    if left is None:
        return 0.0
    near = total = 0
    for pool, free in zip(supply.pools, left, strict=True):
        total += pool.free - free
        if pool.cell in placed.cells:
            near += pool.free - free
    return near / total if total else 0.0


def _room(cell: supplies.CellSupply, policy: model.CPUPolicy,
          page_kib: int | None, guest: demands.CellDemand | None,
          supply: supplies.Supply) -> _Room:
    size: float
    free: float
    if policy is model.CPUPolicy.SHARED:
        size = len(cell.shared) * supply.cpu_ratio
        free = size - cell.cpu_usage
        wanted = guest.vcpus if guest else 0
    else:
        size = len(cell.dedicated)
        free = len(cell.free)
        wanted = guest.pcpus + guest.emulator_pcpus if guest else 0
    memory, memory_free = _memory(cell, policy, page_kib, supply.ram_ratio)
    if size <= 0 or memory <= 0:
        return _Room(0.0, 0.0, 0.0)
    cpus_per_mib = size / memory
    before = max(min(free, memory_free * cpus_per_mib), 0.0)
    if guest is None:
        return _Room(size, before, before)
    memory_free -= guest.memory_mib
    return _Room(size, before, max(
        min(free - wanted, memory_free * cpus_per_mib), 0.0))


def _memory(cell: supplies.CellSupply, policy: model.CPUPolicy,
            page_kib: int | None, ram_ratio: float) -> tuple[float, float]:
    """The memory that guests can have on a cell, and what is free of it.

    A guest that names no page size takes the smallest pages; without
    dedicated CPUs it overcommits them.
    """
    if page_kib is None and policy is model.CPUPolicy.SHARED:
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


def _group_loss(rooms: Iterable[_Room]) -> float:
    """The loss of whole cells in a package or host, for GROUP 1."""
    size = before = after = 0.0
    cells = 0
    for room in rooms:
        if room.size:
            cells += 1
            size += room.size
            part = room.before / room.size
            before += part * part * part * part
            if room.after != room.before:
                part = room.after / room.size
            after += part * part * part * part
    if before <= 1:
        return 0.0
    return size / cells * (_doublings(before) - _doublings(after))


def _doublings(amount: float) -> float:
    return amount * math.log2(amount) if amount > 1 else 0.0


def _device_cells(supply: supplies.Supply) -> Sequence[int | None]:
    return [pool.cell for pool in supply.pools or () if pool.free]

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

"""Find the smallest single changes with which a guest would fit.

Each is tried: the changed guest is placed on the hosts, or the guest on the
changed host, as Nova would.
"""

import dataclasses
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import table
from hpcvirt.fleet import admission
from hpcvirt.fleet import alike
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import make_room
from hpcvirt.fleet import state
from hpcvirt.model import shape as shape_model

#: Two moves are looked for on at most this many hosts, which takes seconds.
MOST_HOSTS_FOR_TWO_MOVES = 300

_SHARED = shape_model.CPUPolicy.SHARED


@dataclasses.dataclass(frozen=True)
class Change:
    """A change with which the guest fits.

    :ivar what: in words
    :ivar host: where it fits then
    :ivar cells: on which cells
    """

    what: str
    host: str
    cells: tuple[int, ...]

    def __str__(self) -> str:
        where = f', {reasons.cells(self.cells)}' if self.cells else ''
        return f'{self.what} (then it fits on {self.host}{where})'


def nearest(guest: guests.Guest,
            hosts: tuple[state.FleetHost, ...]) -> tuple[Change, ...]:
    """Find the smallest change of each kind.

    :param guest: one that fits on none of the hosts
    """
    kinds = [group[0] for group in alike.groups(hosts)]
    found = (_fewer_cells(guest, kinds), _more_cells(guest, kinds),
             _fewer_cpus(guest, kinds), *_other_pages(guest, kinds),
             *_policies(guest, kinds), _more_pages(guest, kinds),
             _moves(guest, hosts))
    return tuple(change for change in found if change is not None)


def _try(what: str, guest: guests.Guest,
         hosts: Sequence[state.FleetHost]) -> Change | None:
    for host in hosts:
        placed = admission.admit(guest, host.state, host.packing)
        if not isinstance(placed, reasons.Misfit):
            return Change(what, host.name, placed.cells)
    return None


def _with(guest: guests.Guest, **changes: Any) -> guests.Guest:
    """Change the shape of a guest."""
    shape = dataclasses.replace(guest.shape, **changes)
    return guests.of_shape(shape, guest.sums.vcpus, shape.memory_mib
                           if shape.cells else guest.sums.memory_mib)


def _fewer_cells(guest: guests.Guest,
                 hosts: Sequence[state.FleetHost]) -> Change | None:
    return _first_division(
        guest, hosts, range(len(guest.shape.cells) - 1, 0, -1))


def _more_cells(guest: guests.Guest,
                hosts: Sequence[state.FleetHost]) -> Change | None:
    most = max((len(host.state.supply.cells) for host in hosts), default=0)
    return _first_division(
        guest, hosts, range(len(guest.shape.cells) + 1, most + 1))


def _first_division(guest: guests.Guest, hosts: Sequence[state.FleetHost],
                    numbers: range) -> Change | None:
    """Divide a guest of equal cells into another number of cells."""
    cells = guest.shape.cells
    if len(set(cells)) != 1:
        return None
    for number in numbers:
        amounts = [len(cells) * each for each in (
            cells[0].pcpus, cells[0].vcpus, cells[0].memory_mib)]
        if any(amount % number for amount in amounts):
            continue
        pcpus, vcpus, memory_mib = (amount // number for amount in amounts)
        change = _try(
            f'{table.counted(number, "guest cell")} instead of {len(cells)}',
            _with(guest, cells=(dataclasses.replace(
                cells[0], pcpus=pcpus, vcpus=vcpus,
                memory_mib=memory_mib),) * number), hosts)
        if change is not None:
            return change
    return None


def _fewer_cpus(guest: guests.Guest,
                hosts: Sequence[state.FleetHost]) -> Change | None:
    """Take CPUs away; if that is not enough, their memory with them."""
    cells = guest.shape.cells
    if len(set(cells)) != 1 or (cells[0].pcpus and cells[0].vcpus):
        return None
    bounds = [(_most_cpus(guest, host), host) for host in hosts]
    for with_memory in (False, True):
        for cpus in range(cells[0].cpus - 1, 0, -1):
            roomy = [host for bound, host in bounds if bound >= cpus]
            if not roomy:
                continue
            fewer = (cells[0].cpus - cpus) * len(cells)
            change = _try(
                f'{table.counted(fewer, "CPU")} fewer' + (
                    ' and less memory in proportion' if with_memory else ''),
                _with(guest, cells=(_smaller(cells[0], cpus, with_memory),)
                      * len(cells)), roomy)
            if change is not None:
                return change
    return None


def _smaller(cell: shape_model.GuestCell, cpus: int,
             with_memory: bool) -> shape_model.GuestCell:
    """Take CPUs from a guest cell, and memory in whole pages."""
    memory_mib = cell.memory_mib
    if with_memory:
        page_mib = max((cell.page_kib or 0) // 1024, 1)
        memory_mib = memory_mib * cpus // cell.cpus // page_mib * page_mib
    return dataclasses.replace(
        cell, pcpus=cpus if cell.pcpus else 0,
        vcpus=cpus if cell.vcpus else 0, memory_mib=memory_mib)


def _most_cpus(guest: guests.Guest, host: state.FleetHost) -> int:
    """Bound the CPUs that each guest cell can have on a host."""
    free = sorted((len(cell.free) if guest.shape.cpu_policy is not _SHARED
                   else len(cell.shared) for cell in host.state.supply.cells),
                  reverse=True)
    number = len(guest.shape.cells)
    return free[number - 1] if len(free) >= number else 0


def _other_pages(guest: guests.Guest, hosts: Sequence[state.FleetHost],
                 ) -> Iterator[Change | None]:
    cells = guest.shape.cells
    if not cells or len({cell.page_kib for cell in cells}) != 1:
        return
    sizes = {pool.size_kib for host in hosts
             for cell in host.state.supply.cells for pool in cell.pages}
    for size in sorted(sizes - {cells[0].page_kib}):
        yield _try(f'pages of {size} KiB', _with(guest, cells=tuple(
            dataclasses.replace(cell, page_kib=size) for cell in cells)),
            hosts)


def _policies(guest: guests.Guest, hosts: Sequence[state.FleetHost],
              ) -> Iterator[Change | None]:
    shape = guest.shape
    prefer = shape_model.ThreadPolicy.PREFER
    if shape.thread_policy not in (None, prefer):
        yield _try(f'the thread policy prefer instead of '
                   f'{shape.thread_policy}',
                   _with(guest, thread_policy=prefer), hosts)
    isolate = shape_model.EmulatorThreads.ISOLATE
    if shape.emulator_threads is isolate:
        yield _try('emulator threads that are not isolated',
                   _with(guest, emulator_threads=None), hosts)
    if shape.numa_scope is not shape_model.NUMAScope.HOST:
        yield _try('cells of several packages',
                   _with(guest, numa_scope=shape_model.NUMAScope.HOST), hosts)
    if shape.exclusive_cells:
        yield _try('cells that other instances use too',
                   _with(guest, exclusive_cells=False), hosts)
    preferred = shape_model.PCIAffinity.PREFERRED
    if any(item.affinity is not preferred for item in shape.devices):
        yield _try('the affinity policy preferred for its devices',
                   _with(guest, devices=tuple(
                       dataclasses.replace(item, affinity=preferred)
                       for item in shape.devices)), hosts)


def _more_pages(guest: guests.Guest,
                hosts: Sequence[state.FleetHost]) -> Change | None:
    """Give one cell more huge pages, made of its free small pages."""
    cells = guest.shape.cells
    size = cells[0].page_kib if len(set(cells)) == 1 else None
    if size is None or size < 0:
        return None
    wanted = cells[0].memory_mib * 1024 // size
    best: tuple[int, Change] | None = None
    for host in hosts:
        for cell in host.state.supply.cells:
            pool = next((item for item in cell.pages
                         if item.size_kib == size), None)
            missing = wanted - pool.free if pool else 0
            if missing <= 0 or (best and missing >= best[0]):
                continue
            change = _with_pages(guest, host, cell, size, missing)
            if change is not None:
                best = missing, change
    return best[1] if best else None


def _with_pages(guest: guests.Guest, host: state.FleetHost,
                cell: supplies.CellSupply, size: int,
                missing: int) -> Change | None:
    small = min(cell.pages)
    count = missing * size // small.size_kib
    if small.size_kib == size or small.free < count:
        return None
    pages = tuple(
        pool._replace(total=pool.total + missing, free=pool.free + missing)
        if pool.size_kib == size else
        pool._replace(total=pool.total - count, free=pool.free - count)
        if pool is small else pool for pool in cell.pages)
    supply = dataclasses.replace(host.state.supply, cells=tuple(
        other._replace(pages=pages) if other.id == cell.id else other
        for other in host.state.supply.cells))
    return _try(
        f'{missing} more pages of {size} KiB on cell {cell.id} of '
        f'{host.name}', guest, [dataclasses.replace(
            host, state=dataclasses.replace(host.state, supply=supply))])


def _moves(guest: guests.Guest,
           hosts: tuple[state.FleetHost, ...]) -> Change | None:
    plan = make_room.search(
        guest, hosts, 2 if len(hosts) <= MOST_HOSTS_FOR_TWO_MOVES else 1)
    if plan is None:
        return None
    moves = ', then '.join(
        f'{move.id} moves from {move.source} to {move.target}'
        for move in plan.moves)
    return Change(moves, plan.host, plan.cells)

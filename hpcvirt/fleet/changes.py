# SPDX-License-Identifier: Apache-2.0

"""Find the smallest single changes with which a guest would fit.

Each change is tried: the changed guest is placed on the hosts, or the guest on
the changed host, as Nova would.
"""

import dataclasses
import enum
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.fit import admission
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import codec

#: The most hosts for which two moves are searched, which takes seconds.
MAX_HOSTS_FOR_TWO_MOVES = 300

_SHARED = shape_model.CPUPolicy.SHARED


@dataclasses.dataclass(frozen=True)
class Pages:
    """More huge pages on a cell, made of its free small pages."""

    host: str
    cell: int
    size_kib: int
    more: int
    small_kib: int
    fewer_small: int


class ChangeKind(enum.StrEnum):
    """The kinds of changes that are tried."""

    GUEST_CELLS = 'guest-cells'
    FEWER_CPUS = 'fewer-cpus'
    PAGE_SIZE = 'page-size'
    POLICY = 'policy'
    MORE_PAGES = 'more-pages'
    LIVE_MIGRATIONS = 'live-migrations'
    COLD_MIGRATIONS = 'cold-migrations'


#: What is tried of each kind.
_WORDS = {
    ChangeKind.GUEST_CELLS: 'other numbers of guest cells',
    ChangeKind.FEWER_CPUS: 'fewer CPUs',
    ChangeKind.PAGE_SIZE: 'other page sizes',
    ChangeKind.POLICY: 'policies that allow more',
    ChangeKind.MORE_PAGES: 'more huge pages on one cell',
    ChangeKind.LIVE_MIGRATIONS: 'live migrations of other instances',
    ChangeKind.COLD_MIGRATIONS: 'cold migrations of other instances',
}


@dataclasses.dataclass(frozen=True)
class TriedChanges:
    """A kind of change that was tried.

    :ivar most: the most migrations that were tried together; 0 for others
    :ivar changes: those with which the guest fits
    """

    kind: ChangeKind
    changes: tuple['Change', ...]
    most: int = 0

    def __str__(self) -> str:
        words = _WORDS[self.kind]
        return f'up to {self.most} {words}' if self.most else words


@dataclasses.dataclass(frozen=True)
class Change:
    """A change with which the guest fits.

    :ivar what: the description of the change
    :ivar host: the host on which the guest then fits
    :ivar cells: its host cells there
    :ivar guest: the changed guest, if the guest changes
    :ivar pages: the pages, if a host changes
    :ivar moves: the moves, if other instances move
    """

    what: str
    host: str
    cells: tuple[int, ...]
    guest: guests.Guest | None = None
    pages: Pages | None = None
    moves: tuple[moving.Move, ...] = ()

    def __str__(self) -> str:
        where = f', {reasons.cells(self.cells)}' if self.cells else ''
        return f'{self.what} (then it fits on {self.host}{where})'


def nearest(guest: guests.Guest,
            hosts: tuple[state.FleetHost, ...]) -> tuple[Change, ...]:
    """Find the smallest changes of each kind; see :func:`try_all`."""
    found: list[Change] = []
    for trial in try_all(guest, hosts):
        found += trial.changes
    return tuple(found)


def try_all(guest: guests.Guest,
            hosts: tuple[state.FleetHost, ...]) -> tuple[TriedChanges, ...]:
    """Try the changes of each kind.

    :param guest: a guest that fits on none of the hosts
    :returns: the kinds that were tried, each with its smallest changes
    """
    alike = [group[0] for group in state.group_alike(hosts)]
    found = [
        _make_trial(ChangeKind.GUEST_CELLS, *_other_cells(guest, alike)),
        _make_trial(ChangeKind.FEWER_CPUS, _fewer_cpus(guest, alike)),
        _make_trial(ChangeKind.PAGE_SIZE, *_other_pages(guest, alike)),
        _make_trial(ChangeKind.POLICY, *_policies(guest, alike)),
        _make_trial(ChangeKind.MORE_PAGES, _more_pages(guest, alike))]
    most = 2 if len(hosts) <= MAX_HOSTS_FOR_TWO_MOVES else 1
    for kind in (ChangeKind.LIVE_MIGRATIONS, ChangeKind.COLD_MIGRATIONS):
        change = _moves(guest, hosts, most,
                        kind is ChangeKind.COLD_MIGRATIONS)
        found.append(_make_trial(kind, change, most=most))
        # Cold migrations stop instances: the last resort.
        if change is not None:
            break
    return tuple(found)


def _make_trial(kind: ChangeKind, *found: Change | None,
                most: int = 0) -> TriedChanges:
    return TriedChanges(kind, tuple(change for change in found
                                    if change is not None), most)


def _try(what: str, guest: guests.Guest,
         hosts: Iterable[state.FleetHost]) -> Change | None:
    for host in hosts:
        placed = admission.predict(guest, host.state)
        if not isinstance(placed, reasons.Misfit):
            return Change(what, host.name, placed.cells, guest) if (
                _is_flavor(guest)) else None
    return None


def _is_flavor(guest: guests.Guest) -> bool:
    """Whether a flavor can describe a guest."""
    try:
        codec.encode(dataclasses.replace(guest.shape, devices=()))
    except exception.InvalidInput:
        return False
    return True


def _with(guest: guests.Guest, **changes: Any) -> guests.Guest:
    """Change the shape of a guest; other cells drop its CPU topology."""
    shape = dataclasses.replace(guest.shape, **{
        **({'topology': None} if 'cells' in changes else {}), **changes})
    changed = guests.compile_shape(
        shape, guest.sums.vcpus,
        shape.memory_mib if shape.cells else guest.sums.memory_mib)
    # What a host must have besides cells is not changed.
    return dataclasses.replace(
        guest, shape=shape, demand=changed.demand, flavor=changed.flavor,
        sums=changed.sums._replace(disk_gib=guest.sums.disk_gib))


def _other_cells(guest: guests.Guest, hosts: Sequence[state.FleetHost],
                 ) -> Iterator[Change | None]:
    cells = guest.shape.cells
    if not cells or len({cell.page_kib for cell in cells}) != 1:
        return
    own = len(cells)
    most = max((len(host.state.supply.cells) for host in hosts), default=0)
    yield _first_division(guest, hosts, range(own - 1, 0, -1))
    if len(set(cells)) > 1:
        ordered = tuple(sorted(cells, reverse=True, key=lambda cell: (
            cell.cpus, cell.memory_mib)))
        yield None if ordered == cells else _try(
            'the largest guest cells first', _with(guest, cells=ordered),
            hosts)
        yield _first_division(guest, hosts, range(own, own + 1))
    yield _first_division(guest, hosts, range(own + 1, most + 1))


def _first_division(guest: guests.Guest, hosts: Sequence[state.FleetHost],
                    numbers: range) -> Change | None:
    """Divide a guest into a number of equal cells."""
    cells = guest.shape.cells
    amounts = [sum(amount) for amount in zip(*(
        (cell.pcpus, cell.vcpus, cell.memory_mib) for cell in cells),
        strict=True)]
    for number in numbers:
        if any(amount % number for amount in amounts):
            continue
        pcpus, vcpus, memory_mib = (amount // number for amount in amounts)
        equal = 'equal ' if len(set(cells)) > 1 else ''
        what = words.count_noun(number, f'{equal}guest cell') + (
            f' instead of {len(cells)}' if number != len(cells) else '')
        change = _try(what, _with(guest, cells=(dataclasses.replace(
            cells[0], pcpus=pcpus, vcpus=vcpus,
            memory_mib=memory_mib),) * number), hosts)
        if change is not None:
            return change
    return None


def _fewer_cpus(guest: guests.Guest,
                hosts: Sequence[state.FleetHost]) -> Change | None:
    """Take CPUs from the largest cells, and memory if that is needed."""
    cells = guest.shape.cells
    if not cells:
        return None
    free = [(_free_cpus(guest, host), host) for host in hosts]
    for with_memory in (False, True):
        for cpus in range(max(cell.cpus for cell in cells) - 1, 0, -1):
            fewer = tuple(_smaller(cell, cpus, with_memory) for cell in cells)
            if any(cell is None for cell in fewer):
                break
            smaller = _with(guest, cells=fewer)
            needed = sorted(map(_cpus, smaller.shape.cells), reverse=True)
            change = _try(
                words.count_noun(
                    sum(cell.cpus for cell in cells) - smaller.shape.cpus,
                    'CPU') + ' fewer' + (
                    ' and less memory in proportion' if with_memory else ''),
                smaller, (host for amounts, host in free
                          if _are_enough(amounts, needed)))
            if change is not None:
                return change
    return None


def _smaller(cell: shape_model.GuestCell, cpus: int,
             with_memory: bool) -> shape_model.GuestCell | None:
    """Limit the CPUs of a guest cell, and reduce its memory in whole pages.

    :param cpus: the most CPUs; dedicated CPUs are removed first
    :returns: None if it has too few CPUs of this kind
    """
    less = max(cell.cpus - cpus, 0)
    left = _cpus(cell) - less
    if left < 1:
        return None
    memory_mib = cell.memory_mib
    if with_memory and less:
        page_mib = max((cell.page_kib or 0) // 1024, 1)
        memory_mib = memory_mib * cpus // cell.cpus // page_mib * page_mib
    return dataclasses.replace(
        cell, pcpus=left if cell.pcpus else 0,
        vcpus=cell.vcpus if cell.pcpus else left, memory_mib=memory_mib)


def _cpus(cell: shape_model.GuestCell) -> int:
    """Count the dedicated CPUs of a guest cell, or its shared CPUs."""
    return cell.pcpus or cell.vcpus


def _free_cpus(guest: guests.Guest, host: state.FleetHost) -> list[int]:
    """Count the CPUs for a guest in each cell of a host, most first."""
    return sorted((len(cell.free) if guest.shape.cpu_policy is not _SHARED
                   else len(cell.shared) for cell in host.state.supply.cells),
                  reverse=True)


def _are_enough(free: Sequence[int], needed: Sequence[int]) -> bool:
    """Whether the host has a cell with enough CPUs for each guest cell."""
    return len(free) >= len(needed) and all(map(
        int.__ge__, free, needed))


def _other_pages(guest: guests.Guest, hosts: Sequence[state.FleetHost],
                 ) -> Iterator[Change | None]:
    cells = guest.shape.cells
    if not cells or len({cell.page_kib for cell in cells}) != 1:
        return
    sizes: set[int] = set()
    for host in hosts:
        for cell in host.state.supply.cells:
            sizes.update(pool.size_kib for pool in cell.pages)
    for size in sorted(sizes - {cells[0].page_kib}):
        yield _try(f'pages of {size} KiB', _with(guest, cells=tuple(
            dataclasses.replace(cell, page_kib=size) for cell in cells)),
            hosts)


def _policies(guest: guests.Guest, hosts: Sequence[state.FleetHost],
              ) -> Iterator[Change | None]:
    """Replace each strict policy by a less strict one."""
    shape = guest.shape
    prefer = shape_model.ThreadPolicy.PREFER
    preferred = shape_model.PCIAffinity.PREFERRED
    for is_strict, what, change in (
            (shape.thread_policy not in (None, prefer),
             f'the thread policy prefer instead of {shape.thread_policy}',
             {'thread_policy': prefer}),
            (shape.emulator_threads is shape_model.EmulatorThreads.ISOLATE,
             'emulator threads that are not isolated',
             {'emulator_threads': None}),
            (shape.numa_scope is not shape_model.NUMAScope.HOST,
             'cells of several sockets',
             {'numa_scope': shape_model.NUMAScope.HOST}),
            (shape.exclusive_cells, 'cells that other instances use too',
             {'exclusive_cells': False}),
            (shape.device_set is not None, 'PCI devices that form no set',
             {'device_set': None}),
            (any(item.affinity is not preferred for item in shape.devices),
             'the affinity policy preferred for its devices',
             {'devices': tuple(dataclasses.replace(item, affinity=preferred)
                               for item in shape.devices)})):
        if is_strict:
            yield _try(what, _with(guest, **change), hosts)


def _more_pages(guest: guests.Guest,
                hosts: Sequence[state.FleetHost]) -> Change | None:
    """Give one cell more huge pages, made of its free small pages."""
    sizes = {(cell.page_kib, cell.memory_mib) for cell in guest.shape.cells}
    best: Change | None = None
    for host in hosts:
        for cell in host.state.supply.cells:
            for size, memory_mib in sizes:
                if size is None or size < 0:
                    continue
                free = next((pool.free for pool in cell.pages
                             if pool.size_kib == size), None)
                missing = (memory_mib * 1024 // size - free
                           if free is not None else 0)
                if missing > 0 and (best is None or best.pages is None
                                    or missing < best.pages.more):
                    best = _with_pages(guest, host, cell, size,
                                       missing) or best
    return best


def _with_pages(guest: guests.Guest, host: state.FleetHost,
                cell: supplies.CellSupply, size: int,
                missing: int) -> Change | None:
    small = min(cell.pages)
    count = missing * size // small.size_kib
    if small.size_kib == size or small.free < count:
        return None
    pages = []
    for pool in cell.pages:
        added = 0
        if pool.size_kib == size:
            added = missing
        elif pool is small:
            added = -count
        pages.append(pool._replace(total=pool.total + added,
                                   free=pool.free + added))
    supply = dataclasses.replace(host.state.supply, cells=tuple(
        other._replace(pages=tuple(pages)) if other.id == cell.id else other
        for other in host.state.supply.cells))
    change = _try(
        f'{missing} more pages of {size} KiB on cell {cell.id} of '
        f'{host.name}', guest, [dataclasses.replace(
            host, state=dataclasses.replace(host.state, supply=supply))])
    return change and dataclasses.replace(change, guest=None, pages=Pages(
        host.name, cell.id, size, missing, small.size_kib, count))


def _moves(guest: guests.Guest, hosts: tuple[state.FleetHost, ...],
           most: int, cold: bool) -> Change | None:
    plan = make_room.search(guest, hosts, most, cold=cold)
    if plan is None:
        return None
    moves = ', then '.join(
        f'{move.id} moves {"cold " if move.cold else ""}from {move.source} '
        f'to {move.target}' for move in plan.moves)
    return Change(moves, *plan.places[0], moves=plan.moves)

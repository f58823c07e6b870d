# SPDX-License-Identifier: Apache-2.0

"""Count the guests of several kinds that hosts take, now and later.

Each kind is counted as if the host took guests of this kind only. The count is
exact for guests of equal cells without devices; for others it is an upper
bound close to the truth.

When guests leave, a host takes guests for which it has no room now. The number
of these later guests is estimated as the number of guests that the empty host
would take, times the share of CPUs that are free. A later guest is worth half
of a guest now. For guests with devices, only present room counts, because
devices do not become free in proportion to CPUs.

The cells of a fleet are in few different states, and most hosts have not
changed since the last request. The counts for each state of a cell or of a
host are therefore remembered. They do not depend on other kinds: a new kind is
a new column of the table, which is filled where it is needed.
"""

import collections
import itertools
import math
import operator
import typing
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import allocation
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import cell_room
from hpcvirt.fit import cell_table
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_room
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: The most states that are remembered; when there are more, all are forgotten.
MAX_STATES = 50_000
#: The most kinds that are remembered, including those no longer counted.
MAX_KINDS = 64
#: The most kinds of guests that are remembered as taking room.
MAX_GUESTS = 1000
#: More guests of a kind than a host ever takes.
_MANY = 1 << 20

#: The worth of a later guest in guests. In replays, 0.3 to 1 hardly differ.
LATER = 0.5
#: Later guests are rounded to such a fraction, so that sums are exact.
_PARTS = 1 << 20

Counts = cell_table.Counts
_SOCKET = shape_model.NUMAScope.SOCKET
_Number = typing.TypeVar('_Number', int, float)
#: Guests now and later.
Prospects = tuple[float, ...]
#: The numbers of the states of the cells of a host, and of its devices.
_State = tuple[tuple[int, ...], int]


class Taken(typing.NamedTuple):
    """The room that a guest takes from a host.

    :ivar before: guests of each kind that the host takes, now and later
    :ivar fewer: the number of these that it no longer takes with the guest
    :ivar left: see :func:`hpcvirt.fit.cell_room.count_left`
    """

    before: Prospects
    fewer: Prospects
    left: tuple[float, int]


class Displaced(typing.NamedTuple):
    """A host before and after it takes a guest, for :meth:`HostRoom.taken`.

    :ivar before: the number of its state without the guest
    :ivar after: the number of its state with the guest
    :ivar left: see :func:`hpcvirt.fit.cell_room.count_left`
    """

    before: int
    after: int
    left: tuple[float, int]


def _raise(_kind: object, error: Exception) -> None:
    raise error


class HostRoom:
    """Counts guests of given kinds.

    :ivar kinds: the kinds, in the order of the counts
    """

    def __init__(self, kinds: Sequence[demands.Demand],
                 forgive: Callable[[object, Exception], None] = _raise,
                 ) -> None:
        """Prepare to count guests of these kinds.

        :param forgive: called with a kind, or with a cell of its guests, and
            the error that was raised for it; the count is then 0
        """
        self._forgive = forgive
        # Whether cores matter to a kind, and whether devices do.
        self._aspects = False, False
        # The columns of the kinds; None for all columns in their order.
        self._chosen: list[int] | None = None
        self.kinds: tuple[demands.Demand, ...] = ()
        self._forget()
        self.choose(kinds)

    def choose(self, kinds: Sequence[demands.Demand]) -> bool:
        """Count guests of these kinds from now on.

        :returns: whether all states have been forgotten
        """
        keeps = max(self._cells.known, len(self._states),
                    len(self._displaced), self._devices.known) <= MAX_STATES
        keeps &= len(self._guests) <= MAX_GUESTS
        if keeps and kinds is self.kinds:
            return False
        self.kinds = tuple(kinds)
        aspects = (
            self._aspects[0] or any(
                cell.threads in cell_room.BY_CORE
                for kind in kinds for cell in kind.cells),
            self._aspects[1] or any(kind.requests for kind in kinds))
        known = {*self._places, *[kind.key for kind in kinds]}
        keeps &= aspects == self._aspects and len(known) <= MAX_KINDS
        self._aspects = aspects
        if not keeps:
            self._forget()
        for kind in kinds:
            if kind.key not in self._places:
                self._add(kind)
        chosen = [self._places[kind.key] for kind in kinds]
        self._chosen = (None if chosen == list(range(len(self._columns)))
                        else chosen)
        return not keeps

    def _forget(self) -> None:
        # The tables have a row for each state, and a column for each kind.
        self._places: dict[Hashable, int] = {}
        self._columns: list[demands.Demand] = []
        self._selective: list[tuple[int, demands.Demand]] = []
        self._needs_cpus: list[cell_room.NeedsCPUs] = []
        # Columns of the table of cells, with the number of a guest's cells.
        self._needs: list[tuple[tuple[int, int], ...]] = []
        # The numbers of all needs, and the numbers of the needs of each kind.
        self._need_numbers: dict[tuple[int, int], int] = {}
        self._needed: list[list[int]] = []
        self._later: dict[Hashable, Prospects] = {}
        self._devices = device_room.DeviceRoom()
        self._cells = cell_table.CellTable(self._aspects[0], self._forgive)
        self._states: dict[_State, int] = {}
        self._hosts: list[_State] = []
        self._on_empty: dict[tuple[int, ...], tuple[
            Counts, dict[cell_room.NeedsCPUs, float]]] = {}
        self._prospects: list[Prospects] = []
        self._demand: demands.Demand | None = None
        self._guests: dict[Hashable, int] = {}
        self._displaced: dict[Hashable, Displaced] = {}

    def _add(self, kind: demands.Demand) -> None:
        self._places[kind.key] = len(self._columns)
        self._needs_cpus.append(cell_room.needs_cpus(kind))
        needs = tuple(collections.Counter(map(
            self._cells.add, kind.cells)).items())
        self._needs.append(needs)
        self._needed.append([self._need_numbers.setdefault(
            need, len(self._need_numbers)) for need in needs])
        if kind.selective:
            self._selective.append((len(self._columns), kind))
        self._columns.append(kind)
        self._later.clear()
        self._devices.add(kind)

    def count(self, supply: supplies.Supply) -> Counts:
        """Count the guests of each kind that a host takes now."""
        return self._choose(tuple(
            self._count(self._hosts[self._number(supply)], 0)))

    def prospects(self, supply: supplies.Supply) -> Prospects:
        """Count the guests of each kind that a host takes, now and later."""
        self.choose(self.kinds)
        return self._now_and_later(self._number(supply))

    def displaced(self, demand: demands.Demand, supply: supplies.Supply,
                  placement: cell_assignments.CellAssignment,
                  providers: devices.Providers = (),
                  ) -> Taken:
        """Count the guests of each kind that a guest displaces.

        :param placement: where the guest will be placed
        :param providers: what Placement allocated to its PCI requests
        """
        self.choose(self.kinds)
        return self.taken(self.displace(demand, supply, placement, providers))

    def taken(self, displaced: Displaced) -> Taken:
        """Count the guests of each kind that were displaced."""
        before = self._now_and_later(displaced.before)
        after = self._now_and_later(displaced.after)
        fewer = tuple(map(operator.sub, before, after))
        # A single infinite value would make the sums over all hosts useless.
        if not math.isfinite(sum((*before, *fewer, *displaced.left))):
            raise ValueError('the room on the host is not finite')
        return Taken(before, fewer, displaced.left)

    def displace(self, demand: demands.Demand, supply: supplies.Supply,
                 placement: cell_assignments.CellAssignment,
                 providers: devices.Providers = ()) -> Displaced:
        """Number the states of a host before and after it takes a guest."""
        before = self._number(supply)
        if demand.requests:
            # Which devices it takes does not follow from the state. Their
            # providers differ from host to host, and would fill the memory.
            return self._displace(before, demand, supply, placement, providers)
        if demand is not self._demand:
            # Hashing the key takes long.
            self._demand = demand
            self._guest = self._guests.setdefault(demand.key,
                                                  len(self._guests))
        key = before, self._guest, placement.cells, placement.pages_kib
        known = self._displaced.get(key)
        if known is None:
            known = self._displaced[key] = self._displace(
                before, demand, supply, placement, providers)
        return known

    def _displace(self, before: int, demand: demands.Demand,
                  supply: supplies.Supply,
                  placement: cell_assignments.CellAssignment,
                  providers: devices.Providers) -> Displaced:
        rest = allocation.allocate(demand, supply, placement, providers)
        numbers, device_state = self._hosts[before]
        after = self._number_of((
            tuple([number if new is old else self._cells.number(new, rest)
                   for number, old, new in zip(
                       numbers, supply.cells, rest.cells, strict=True)]),
            device_state if rest.pools is supply.pools
            else self._device_state(rest)))
        return Displaced(before, after, cell_room.count_left(
            demand, self._cells.states(numbers)))

    def _number(self, supply: supplies.Supply) -> int:
        """Return the number of the state of a host."""
        return self._number_of((
            tuple([self._cells.number(cell, supply) for cell in supply.cells]),
            self._device_state(supply)))

    def _number_of(self, state: _State) -> int:
        number = self._states.get(state)
        if number is None:
            number = self._states[state] = len(self._hosts)
            self._hosts.append(state)
            self._prospects.append(())
        return number

    def _device_state(self, supply: supplies.Supply) -> int:
        return self._devices.number(supply.pools) if self._aspects[1] else 0

    def _count(self, state: _State, first: int) -> list[int]:
        """Count guests of the kinds from a column on."""
        numbers, device_state = state
        columns = list(zip(*self._cells.rooms(numbers), strict=True))
        kinds = self._needed[first:]
        wanted = ({*itertools.chain.from_iterable(kinds)} if first
                  else range(len(self._need_numbers)))
        spread = [
            min(_MANY, cell_room.spread(columns[column], count))
            if number in wanted else 0
            for (column, count), number in self._need_numbers.items()]
        found = [spread[needs[0]] if len(needs) == 1
                 else min([spread[need] for need in needs]) for needs in kinds]
        cells = self._cells.states(numbers) if self._selective else []
        places: dict[int | None, int] = {
            cell.id: place for place, cell in enumerate(cells)}
        for place, kind in self._selective:
            try:
                if place >= first and (guests := found[place - first]):
                    found[place - first] = self._select(
                        place, guests, cells, places, columns, device_state)
            except Exception as exc:  # noqa: BLE001
                self._forgive(kind, exc)
                found[place - first] = 0
        return found

    def _now_and_later(self, number: int) -> Prospects:
        known = self._prospects[number]
        first = len(known)
        if first < len(self._columns):
            state = self._hosts[number]
            empty = self._cells.emptied(state[0])
            then, most = self._on_empty.get(empty, ((), {}))
            if len(then) < len(self._columns):
                cells = self._cells.states(empty)
                then, most = self._on_empty[empty] = (
                    (*then, *self._count((empty, 0), len(then))),
                    {needs: cell_room.count_cpus(needs, cells)
                     for needs in {*self._needs_cpus}})
            cells = self._cells.states(state[0])
            shares = {needs: cell_room.share(
                cell_room.count_cpus(needs, cells), most[needs])
                      for needs in {*self._needs_cpus[first:]}}
            key = empty, first, *shares.values()
            later = self._later.get(key)
            if later is None:
                later = self._later[key] = tuple([
                    0.0 if kind.requests else LATER * round(
                        guests * shares[needs] * _PARTS) / _PARTS
                    for kind, needs, guests in zip(
                        self._columns[first:], self._needs_cpus[first:],
                        then[first:], strict=True)])
            known = self._prospects[number] = (*known, *map(
                operator.add, self._count(state, first), later))
        return self._choose(known)

    def _choose(self, found: tuple[_Number, ...]) -> tuple[_Number, ...]:
        return found if self._chosen is None else tuple([
            found[place] for place in self._chosen])

    def _select(self, index: int, guests: int,
                cells: Sequence[cell_room.CellState],
                places: Mapping[int | None, int], columns: Sequence[Counts],
                device_state: int) -> int:
        """Count guests for which it matters which cells they use.

        :param guests: the number of guests if it did not matter
        :param places: cell id -> index in ``cells``
        """
        demand = self._columns[index]
        needs = [(columns[place], size) for place, size in self._needs[index]]
        if demand.exclusive_cells:
            needs = [(tuple([min(room, int(cell.empty)) for room, cell in zip(
                column, cells, strict=True)]), number)
                for column, number in needs]
            guests = min(itertools.starmap(cell_room.spread, needs))
        if demand.numa_scope is _SOCKET and len(demand.cells) > 1:
            guests = cell_room.spread_in_sockets(needs, cells)
        near = needs[0][0] if len(needs) == 1 else [
            *map(max, *[column for column, _ in needs])]
        if demand.physnets or demand.tunneled:
            for affine in _affine_cells(demand, cells):
                guests = min(guests, sum(itertools.compress(near, affine)))
        return min(guests, _MANY, self._devices.limit(
            index, device_state, cells, places, near)) if guests else 0


def _affine_cells(demand: demands.Demand,
                  cells: Sequence[cell_room.CellState]) -> list[list[bool]]:
    """List for each affine network whether it has affinity to each cell."""
    near = [[physnet in cell.physnets for cell in cells]
            for physnet in demand.physnets]
    if demand.tunneled:
        near.append([cell.tunneled for cell in cells])
    return [affine for affine in near if any(affine)]

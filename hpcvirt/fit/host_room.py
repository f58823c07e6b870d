# SPDX-License-Identifier: Apache-2.0

"""Count the guests of several kinds that hosts take, now and later.

Each kind is counted as if the host took guests of this kind only. The count is
exact for guests of equal cells without devices; for others it is an upper
bound close to the truth.

When guests leave, a host takes guests for which it has no room now. The number
of these later guests is a share of the guests that the empty host would take:
the share of free CPUs in all its CPUs. A later guest is worth half of a guest
now. For guests with devices, only present room counts, because devices do not
become free in proportion to CPUs.

The cells of a fleet are in few different states, and most hosts have not
changed since the last request. The counts for each state of a cell or of a
host are therefore remembered.
"""

import collections
import dataclasses
import itertools
import math
import typing
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Sequence

from hpcvirt.fit import affinity_check
from hpcvirt.fit import allocation
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import cell_room
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_room
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: States that are remembered; then all are forgotten.
MAX_STATES = 50_000
#: More guests of a kind than a host ever takes.
_MANY = 1 << 20

#: What a guest later is worth, as part of a guest now. In replays, values from
#: 0.3 to 1 hardly differ.
LATER = 0.5
#: Later guests are rounded to such a part, so that sums are exact.
_PARTS = 1 << 20

Counts = tuple[int, ...]
#: Guests now and later.
Prospects = tuple[float, ...]
_Cells = tuple[supplies.CellSupply, ...]
#: Whether guests need PCPUs, and whether they need shared CPUs.
_NeedsCPUs = tuple[bool, bool]


class _State(typing.NamedTuple):
    """The part of a host's state that its counts depend on.

    :ivar cells: the number of the state of each cell
    :ivar places: the id and the socket of each cell, where they matter
    """

    cells: tuple[int, ...]
    places: tuple[tuple[int, int | None], ...]
    devices: device_room.State


class Taken(typing.NamedTuple):
    """The room that a guest takes from a host.

    :ivar before: guests of each kind that the host takes, now and later
    :ivar fewer: how many fewer it takes with the guest
    :ivar left: see :func:`count_left`
    """

    before: Prospects
    fewer: Prospects
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

        :param forgive: is told of the kind, or of a cell of its guests, for
            which an error was raised; then a host takes none of them
        """
        self.kinds = tuple(kinds)
        self._forgive = forgive
        numbers: dict[demands.CellDemand, int] = {}
        self._needs = [
            tuple(collections.Counter(
                numbers.setdefault(cell, len(numbers))
                for cell in demand.cells).items())
            for demand in self.kinds]
        self._guest_cells = tuple(numbers)
        self._needs_cpus = list(map(_needs_cpus, self.kinds))
        self._selective = any(demand.selective for demand in self.kinds)
        self._by_core = any(
            cell.threads in (shape_model.ThreadPolicy.REQUIRE,
                             shape_model.ThreadPolicy.ISOLATE)
            for cell in self._guest_cells)
        self._forget()

    def _forget(self) -> None:
        self._devices = device_room.DeviceRoom(self.kinds)
        self._numbers: dict[Hashable, int] = {}
        self._on_cell: list[Counts] = []
        self._on_host: dict[_State, Counts] = {}
        self._prospects: dict[_State, Prospects] = {}
        self._displaced: dict[Hashable, Taken] = {}

    def _keep_few(self) -> None:
        if max(len(self._on_cell), len(self._on_host),
               self._devices.kinds_of_pools) > MAX_STATES:
            self._forget()
        # These are for each kind of guest; the counts before are not.
        if len(self._displaced) > MAX_STATES:
            self._displaced.clear()

    def count(self, supply: supplies.Supply) -> Counts:
        """Count the guests of each kind that a host takes now."""
        cells = tuple(supply.cells)
        return self._count(cells, self._state(supply, cells))

    def prospects(self, supply: supplies.Supply) -> Prospects:
        """Count the guests of each kind that a host takes, now and later."""
        self._keep_few()
        cells = tuple(supply.cells)
        return self._now_and_later(supply, cells, self._state(supply, cells))

    def displaced(self, demand: demands.Demand, supply: supplies.Supply,
                  placement: cell_assignments.CellAssignment,
                  providers: devices.Providers = (),
                  ) -> Taken:
        """Count the guests of each kind that a guest displaces.

        :param placement: where the guest will be placed
        :param providers: what Placement allocated to its PCI requests
        """
        self._keep_few()
        cells = tuple(supply.cells)
        state = self._state(supply, cells)
        key = (state, demand.key, placement.cells, placement.pages_kib,
               tuple(map(tuple, providers)))
        known = self._displaced.get(key)
        if known is None:
            before = self._now_and_later(supply, cells, state)
            rest = allocation.allocate(demand, supply, placement, providers)
            now = tuple(rest.cells)
            after = self._now_and_later(rest, now, _State(
                tuple([number if new is old else self._number(new, rest)
                       for number, old, new in zip(
                           state.cells, cells, now, strict=True)]),
                state.places, self._devices.state(rest.pools)))
            fewer = tuple(old - new for old, new in zip(before, after,
                                                        strict=True))
            left = count_left(demand, supply)
            # One such host would make the sums over all hosts useless.
            if not math.isfinite(sum((*before, *fewer, *left))):
                raise ValueError('the room on the host is not finite')
            known = self._displaced[key] = Taken(before, fewer, left)
        return known

    def _state(self, supply: supplies.Supply, cells: _Cells) -> _State:
        return _State(
            tuple([self._number(cell, supply) for cell in cells]),
            tuple([(cell.id, cell.socket) for cell in cells])
            if self._selective else (),
            self._devices.state(supply.pools))

    def _number(self, cell: supplies.CellSupply,
                supply: supplies.Supply) -> int:
        free, size = len(cell.free), len(cell.dedicated)
        cores: Hashable = len(cell.siblings)
        if self._by_core and free and (free < size or cell.shared):
            cores = (cell.threads_per_core, cell.dedicated == cell.shared,
                     *sorted([len(core & cell.free)
                              for core in cell.siblings]))
        key = (free, size, cores, len(cell.shared), cell.cpu_usage,
               cell.memory_mib, cell.memory_used_mib, tuple(cell.pages),
               tuple(cell.physnets), cell.tunneled,
               supply.cpu_ratio, supply.ram_ratio)
        number = self._numbers.get(key)
        if number is None:
            number = len(self._on_cell)
            self._on_cell.append(tuple([
                self._isolate(guest_cell, cell_room.count, guest_cell, cell,
                              supply.cpu_ratio, supply.ram_ratio)
                for guest_cell in self._guest_cells]))
            self._numbers[key] = number
        return number

    def _count(self, cells: _Cells, state: _State) -> Counts:
        known = self._on_host.get(state)
        if known is None:
            rooms = [self._on_cell[number] for number in state.cells]
            columns = list(zip(*rooms, strict=True))
            known = self._on_host[state] = tuple([
                self._isolate(kind, self._guests, index, cells, columns,
                              state.devices)
                for index, kind in enumerate(self.kinds)])
        return known

    def _isolate(self, kind: object, count: Callable[..., int],
                 *arguments: object) -> int:
        try:
            return count(*arguments)
        except Exception as exc:  # noqa: BLE001
            self._forgive(kind, exc)
            return 0

    def _now_and_later(self, supply: supplies.Supply, cells: _Cells,
                       state: _State) -> Prospects:
        known = self._prospects.get(state)
        if known is None:
            empty = dataclasses.replace(supply, cells=tuple(map(
                _emptied, cells)))
            shares = {needs: _share(needs, supply, empty)
                      for needs in {*self._needs_cpus}}
            known = self._prospects[state] = tuple([
                now + (0.0 if kind.requests else LATER * round(
                    then * shares[needs] * _PARTS) / _PARTS)
                for kind, needs, now, then in zip(
                    self.kinds, self._needs_cpus, self._count(cells, state),
                    self.count(empty), strict=True)])
        return known

    def _guests(self, index: int, cells: _Cells,
                columns: Sequence[Counts],
                free_devices: device_room.State) -> int:
        demand = self.kinds[index]
        if not demand.selective:
            return min(_MANY, *(_spread(columns[place], number)
                                for place, number in self._needs[index]))
        needs = [(columns[place], number)
                 for place, number in self._needs[index]]
        if demand.exclusive_cells:
            needs = [(tuple(min(room, int(cell.empty)) for room, cell in zip(
                column, cells, strict=True)), number)
                for column, number in needs]
        if (demand.numa_scope is shape_model.NUMAScope.SOCKET
                and len(demand.cells) > 1):
            guests = _in_sockets(needs, cells)
        else:
            guests = min(itertools.starmap(_spread, needs))
        if not guests:
            return 0
        near = {cell.id: max(column[place] for column, _ in needs)
                for place, cell in enumerate(cells)}
        for affinity in affinity_check.find_affinities(demand, cells):
            guests = min(guests, sum(near[cell] for cell in affinity.cells))
        return min(guests, _MANY, self._devices.limit(
            index, free_devices, cells, near))


def count_left(demand: demands.Demand,
               supply: supplies.Supply) -> tuple[float, int]:
    """Return the values that decide between hosts with equal losses.

    :returns: the free CPUs of the kinds that a guest needs, and the free
        memory in MiB
    """
    return _cpus_left(_needs_cpus(demand), supply), sum(
        cell.memory_free_mib for cell in supply.cells)


def _needs_cpus(demand: demands.Demand) -> _NeedsCPUs:
    return (any(cell.pcpus for cell in demand.cells),
            any(cell.vcpus for cell in demand.cells))


def _cpus_left(needs: _NeedsCPUs, supply: supplies.Supply) -> float:
    """Count the free CPUs of the kinds that a guest needs."""
    left = 0.0
    if needs[0]:
        left += sum(len(cell.free) for cell in supply.cells)
    if needs[1]:
        left += sum(len(cell.shared) * supply.cpu_ratio - cell.cpu_usage
                    for cell in supply.cells)
    return left


def _share(needs: _NeedsCPUs, supply: supplies.Supply,
           empty: supplies.Supply) -> float:
    """Return the share of free CPUs, of the kinds that a guest needs."""
    most = _cpus_left(needs, empty)
    free = max(_cpus_left(needs, supply), 0.0)
    return min(free / most, 1.0) if most else 0.0


def _emptied(cell: supplies.CellSupply) -> supplies.CellSupply:
    """Return a cell as it is without guests."""
    return cell._replace(
        free=cell.dedicated, cpu_usage=0, memory_used_mib=0,
        pages=tuple([pool._replace(used=0, free=pool.free + pool.used)
                     for pool in cell.pages]))


def _in_sockets(needs: Sequence[tuple[Counts, int]],
                 cells: _Cells) -> int:
    sockets = [cell.socket for cell in cells]
    return sum(
        min(_spread([room for room, other in zip(
            column, sockets, strict=True) if other == socket], number)
            for column, number in needs)
        for socket in set(sockets) if socket is not None)


def _spread(room: Sequence[int], cells: int) -> int:
    """Count guests of several equal cells, each on another host cell.

    :param room: how many guest cells each host cell takes
    :param cells: the cells of a guest
    :returns: the largest number of guests n for which the host cells take
        n cells each, as far as they have room, and ``n * cells`` in total
    """
    total = sum(room)
    if cells == 1:
        return total
    guests = total // cells
    while guests:
        taken = sum(min(each, guests) for each in room)
        if taken >= guests * cells:
            return guests
        guests = taken // cells
    return 0

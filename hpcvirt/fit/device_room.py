# SPDX-License-Identifier: Apache-2.0

"""Count the guests of several kinds that the free devices of a host serve.

A guest whose devices must be near needs room on cells with free devices. The
devices of a guest of several cells may be near any of its cells.
"""

import collections
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import cell_room
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.model import shape as shape_model

#: More guests than a host ever takes.
_MANY = 1 << 20

#: The parts of the state of a host, and the characters of the tags of a kind
#: of pools, that count as one more state.
_PARTS = 2
_CHARACTERS = 16
_LEGACY = shape_model.PCIAffinity.LEGACY
_PREFERRED = shape_model.PCIAffinity.PREFERRED
_SOCKET = shape_model.PCIAffinity.SOCKET

#: The free devices of each cell and kind of tags.
_Pools = frozenset[tuple[tuple[int | None, int], int]]
#: The free devices of each cell; those near no cell have None.
_Free = Mapping[int | None, int]


class DeviceRoom:
    """Counts the guests of each kind for which there are devices."""

    def __init__(self) -> None:
        self._kinds: list[tuple[int, str | None, list[
            tuple[int, devices.DeviceRequest, int]]]] = []
        self._numbers: dict[Hashable, int] = {}
        self._tags: list[devices.Pool] = []
        self._states: dict[_Pools, int] = {frozenset(): 0}
        self._pools: list[_Pools] = [frozenset()]
        self._requests: dict[Hashable, int] = {}
        self._served: dict[tuple[int, int], bool] = {}
        self._free: dict[tuple[int, int], tuple[int, _Free]] = {}
        self._in_sets: dict[tuple[int, int], int] = {}

        #: About the number of states, and of kinds of pools, that are
        #: remembered; large ones count as several.
        self.known = 0

    def add(self, demand: demands.Demand) -> None:
        """Prepare to count guests of another kind."""
        self._kinds.append((len(demand.cells), demand.device_set, [
            (self._requests.setdefault(key, len(self._requests)),
             request, count) for key, request, count in _wanted(demand)]))

    def number(self, pools: Sequence[devices.Pool] | None) -> int:
        """Return the number of the state of a host's devices; 0 for none."""
        free: dict[tuple[int | None, int], int] = {}
        for pool in pools or ():
            place = pool.cell, self._number(pool)
            free[place] = free.get(place, 0) + pool.free
        state = frozenset(free.items())
        number = self._states.get(state)
        if number is None:
            self.known += 1 + len(state) // _PARTS
            number = self._states[state] = len(self._pools)
            self._pools.append(state)
        return number

    def _number(self, pool: devices.Pool) -> int:
        tags: Hashable = tuple([item for item in pool.tags.items()
                                if item[0] not in devices.PLACE_TAGS])
        try:
            number = self._numbers.get(tags)
        except TypeError:
            # A value is a list, which cannot be hashed.
            tags = str(tags)
            number = self._numbers.get(tags)
        if number is None:
            self.known += 1 + len(str(tags)) // _CHARACTERS
            number = self._numbers[tags] = len(self._tags)
            self._tags.append(pool)
        return number

    def limit(self, index: int, state: int,
              cells: Sequence[cell_room.CellState],
              places: Mapping[int | None, int], near: Sequence[int]) -> int:
        """Count the guests of a kind for which there are devices.

        :param index: the index of the kind, in the order of :meth:`add`
        :param state: the number of the state of the devices
        :param places: cell id -> index in ``cells``
        :param near: the number of guests of the kind that each cell takes
        """
        guest_cells, kind, wanted = self._kinds[index]
        guests = _MANY if kind is None else self._add_up_sets(index, state)
        for number, request, count in wanted:
            known = self._free.get((number, state))
            if known is None:
                known = self._free[number, state] = self._add_up(
                    number, request, state)
            served = known[0] // count
            if served and request.affinity is not _PREFERRED:
                served = _served(request.affinity, count, guest_cells,
                                 known[1], cells, places, near)
            if served < guests:
                guests = served
        return guests

    def _add_up(self, number: int, request: devices.DeviceRequest,
                state: int) -> tuple[int, _Free]:
        """Add up the free devices for a request, in all and by cell."""
        free: dict[int | None, int] = {}
        for (cell, tags), count in self._pools[state]:
            if self._serves(number, request, tags):
                free[cell] = free.get(cell, 0) + count
        return sum(free.values()), free

    def _serves(self, number: int, request: devices.DeviceRequest,
                tags: int) -> bool:
        serves = self._served.get((number, tags))
        if serves is None:
            serves = self._served[number, tags] = devices.serves(
                self._tags[tags], request)
        return serves

    def _add_up_sets(self, index: int, state: int) -> int:
        """Count the guests of a kind that each set of devices serves.

        The sum over the sets is too high if they overlap, never too low.
        """
        known = self._in_sets.get((index, state))
        if known is not None:
            return known
        _, kind, wanted = self._kinds[index]
        free: dict[device_sets.DeviceSet, list[int]] = {}
        for (_, tags), devices_left in self._pools[state]:
            for each in device_sets.sets_of(self._tags[tags]):
                if each.kind == kind:
                    counts = free.setdefault(each, [0] * len(wanted))
                    for place, (number, request, _) in enumerate(wanted):
                        if self._serves(number, request, tags):
                            counts[place] += devices_left
        found = self._in_sets[index, state] = sum(
            min([own // count for own, (_, _, count)
                 in zip(counts, wanted, strict=True)], default=_MANY)
            for counts in free.values())
        return found


def _wanted(demand: demands.Demand,
            ) -> list[tuple[Hashable, devices.DeviceRequest, int]]:
    """Add up requests for equal devices."""
    alike: dict[Hashable, tuple[devices.DeviceRequest, int]] = {}
    for request in demand.requests:
        # Nova accepts counts of zero and negative counts.
        if request.count <= 0:
            continue
        key = devices.key(request)
        _, count = alike.get(key, (request, 0))
        alike[key] = request, count + request.count
    return [(key, *each) for key, each in alike.items()]


def _served(affinity: shape_model.PCIAffinity, count: int, guest_cells: int,
            free: _Free, cells: Sequence[cell_room.CellState],
            places: Mapping[int | None, int], near: Sequence[int]) -> int:
    """Count the guests that get their devices, an equal number each.

    :param count: the devices of a guest
    :param guest_cells: the number of cells of a guest
    :param free: the free devices of each cell
    """
    if affinity is _SOCKET:
        usable = [min(number, count * room)
                  for number, room in _sockets(free, cells, near)]
    else:
        usable = [number if number < (room := count * near[places[cell]])
                  else room
                  for cell, number in free.items() if cell in places]
    anywhere = free.get(None, 0) if affinity is _LEGACY else 0
    if guest_cells == 1 and not anywhere:
        return sum([number // count for number in usable])
    if sum(sorted(usable)[-guest_cells:]) + anywhere < count:
        return 0
    return (sum(usable) + anywhere) // count


def _sockets(free: _Free, cells: Sequence[cell_room.CellState],
             near: Sequence[int]) -> list[tuple[int, int]]:
    """Add up the free devices and the guests of the cells of each socket."""
    there: collections.Counter[int] = collections.Counter()
    room: collections.Counter[int] = collections.Counter()
    for cell, guests in zip(cells, near, strict=True):
        place = cell.id if cell.socket is None else -1 - cell.socket
        there[place] += free.get(cell.id, 0)
        room[place] += guests
    return [(number, room[place]) for place, number in there.items()]

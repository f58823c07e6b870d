# SPDX-License-Identifier: Apache-2.0

"""Count the guests of several kinds that the free devices of a host serve.

A guest whose devices must be near needs room on cells near free devices. The
devices of a guest of several cells may be near any of them.
"""

import collections
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: More guests than a host ever takes.
_MANY = 1 << 20

#: Tags of Nova's pools that no request names: how many devices there are, and
#: where. Without them, the pools of a fleet are of few kinds.
_NOT_NAMED = frozenset(('count', 'numa_node', 'rp_uuid'))

#: For each pool its cell, its free devices, and the number of its tags; None
#: if Nova does not track devices on the host.
State = tuple[tuple[int | None, int, int], ...] | None


class DeviceRoom:
    """Counts guests of given kinds by their devices."""

    def __init__(self, kinds: Sequence[demands.Demand]) -> None:
        self._guest_cells = [len(demand.cells) for demand in kinds]
        self._wanted = [_wanted(demand) for demand in kinds]
        self._any = any(self._wanted)
        self._numbers: dict[Hashable, int] = {}
        self._tags: list[devices.Pool] = []
        self._served: dict[tuple[Hashable, int], bool] = {}

    @property
    def kinds_of_pools(self) -> int:
        """How many kinds of pools are remembered."""
        return len(self._tags)

    def state(self, pools: Sequence[devices.Pool] | None) -> State:
        """Return all of the devices of a host that matters."""
        if pools is None:
            return None
        if not self._any:
            return ()
        return tuple([(pool.cell, pool.free, self._number(pool))
                      for pool in pools])

    def _number(self, pool: devices.Pool) -> int:
        tags = tuple([(tag, str(value)) for tag, value in pool.tags.items()
                      if tag not in _NOT_NAMED])
        number = self._numbers.get(tags)
        if number is None:
            number = self._numbers[tags] = len(self._tags)
            self._tags.append(pool)
        return number

    def limit(self, index: int, state: State,
              cells: Sequence[supplies.CellSupply],
              near: Mapping[int, int]) -> int:
        """Count the guests of a kind for which there are devices.

        :param index: of the kind
        :param near: how many guests of the kind each cell takes
        """
        guests = _MANY
        for key, request, count in self._wanted[index]:
            free: collections.Counter[int | None] = collections.Counter()
            for cell, number, tags in state or ():
                if self._serves(key, request, tags):
                    free[cell] += number
            guests = min(guests, _served(
                request.affinity, count, self._guest_cells[index], free,
                cells, near))
        return guests

    def _serves(self, key: Hashable, request: devices.DeviceRequest,
                tags: int) -> bool:
        known = self._served.get((key, tags))
        if known is None:
            known = self._served[key, tags] = devices.serves(
                self._tags[tags], request)
        return known


def _wanted(demand: demands.Demand,
            ) -> list[tuple[Hashable, devices.DeviceRequest, int]]:
    """Add up requests for equal devices."""
    alike: dict[Hashable, tuple[devices.DeviceRequest, int]] = {}
    for request in demand.requests:
        # Nova does not forbid to request no device, or fewer than none.
        if request.count <= 0:
            continue
        key = devices.key(request)
        _, count = alike.get(key, (request, 0))
        alike[key] = request, count + request.count
    return [(key, *each) for key, each in alike.items()]


def _served(affinity: shape_model.PCIAffinity, count: int, guest_cells: int,
            free: Mapping[int | None, int],
            cells: Sequence[supplies.CellSupply],
            near: Mapping[int, int]) -> int:
    """Count the guests that get the same number of devices each.

    :param guest_cells: the cells of a guest, near which its devices are
    :param free: the free devices of each cell
    """
    total = sum(free.values()) // count
    if affinity is shape_model.PCIAffinity.PREFERRED or not total:
        return total
    if affinity is shape_model.PCIAffinity.SOCKET:
        places = _sockets(free, cells, near)
    else:
        places = [(number, near.get(cell, 0))
                  for cell, number in free.items() if cell is not None]
    usable = [min(number, count * room) for number, room in places]
    anywhere = (free.get(None, 0)
                if affinity is shape_model.PCIAffinity.LEGACY else 0)
    if guest_cells == 1 and not anywhere:
        return sum(number // count for number in usable)
    if sum(sorted(usable)[-guest_cells:]) + anywhere < count:
        return 0
    return (sum(usable) + anywhere) // count


def _sockets(free: Mapping[int | None, int],
              cells: Sequence[supplies.CellSupply],
              near: Mapping[int, int]) -> list[tuple[int, int]]:
    """Add up the free devices and the guests of the cells of each socket."""
    there: collections.Counter[int] = collections.Counter()
    room: collections.Counter[int] = collections.Counter()
    for cell in cells:
        place = cell.id if cell.socket is None else -1 - cell.socket
        there[place] += free.get(cell.id, 0)
        room[place] += near[cell.id]
    return [(number, room[place]) for place, number in there.items()]

# SPDX-License-Identifier: Apache-2.0

"""Count the guests of several kinds that a host takes, now and later.

Each kind is counted as if the host took guests of this kind only. The count is
exact for guests of equal cells without devices. For others it is an upper
bound close to the truth: the least of the counts by each resource. Physical
networks, ``hpcvirt:numa_scope`` and ``hpcvirt:exclusive_cells`` are left out:
such guests are counted as if they could use any cells.

When guests leave, a host takes guests for which it has no room now. These
later guests are estimated from those that the empty host would take by its
CPUs and memory, in two ways that are added up: times the share of its CPUs
that is free, as if room came free bit by bit, and times the chance that all
guests have left. If *p* is the chance that one has left, that is *p* to the
power of their number, on average over all *p* 1 / (guests + 1). A host with
few guests is therefore spared for guests of many cells, even if it has no room
for one now, and a host with many guests is filled. Guests with devices count
later as far as the host has free devices for them now.
"""

import collections
import dataclasses
from collections.abc import Hashable
from collections.abc import Sequence

from hpcvirt.fit import cell as cells
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: The most states of host cells that are remembered; then all are forgotten.
MAX_STATES = 20_000
#: States of cells with more page sizes or cores are not remembered, because
#: one compute host could fill the memory with them.
MAX_PARTS = 256

#: Later guests are rounded to such a fraction, so that sums are exact.
_PARTS = 1 << 20
#: More guests than a host ever takes.
_MANY = 1 << 20

_PREFERRED = shape_model.PCIAffinity.PREFERRED
_SOCKET = shape_model.PCIAffinity.SOCKET


class RoomCounter:
    """Counts guests of given kinds.

    For example, a host has two cells with 8 and 3 free PCPUs of 8. It takes
    two guests of one cell with 4 PCPUs and one guest of two cells with 2 PCPUs
    each. Empty, it would take 4 and 4. Of its CPUs 11/16 are free, and it has
    one guest, so that it has room for 2 + 4 x (11/16 + 1/2) and 1 + 4 x (11/16
    + 1/2) guests, now and later.

    :ivar kinds: the kinds, in the order of the counts
    """

    def __init__(self, kinds: Sequence[demands.Demand]) -> None:
        self.kinds = tuple(kinds)
        numbers: dict[demands.CellDemand, int] = {}
        # For each kind: the guest cells it consists of, and how many of each.
        self._needs = [
            [(numbers.setdefault(cell, len(numbers)), count)
             for cell, count in collections.Counter(kind.cells).items()]
            for kind in self.kinds]
        self._guest_cells = list(numbers)
        self._by_core = any(cell.threads in cells.BY_CORE for cell in numbers)
        self._wanted = [_merge_requests(kind) for kind in self.kinds]
        # The state of a host cell -> how many of each guest cell it takes.
        self._rooms: dict[Hashable, tuple[int, ...]] = {}

    def count(self, supply: supplies.Supply) -> list[int]:
        """Count the guests of each kind that a host takes now."""
        counts = []
        for kind, wanted, (by_cells, near) in zip(
                self.kinds, self._wanted, self._count_by_cells(supply),
                strict=True):
            bounds = [by_cells]
            if by_cells and kind.device_set is not None:
                bounds.append(_count_by_sets(kind, wanted, supply))
            if by_cells:
                bounds += [_count_by_devices(request, len(kind.cells), near,
                                             supply) for request in wanted]
            counts.append(min(bounds))
        return counts

    def count_if_empty(self, supply: supplies.Supply) -> list[int]:
        """Count the guests of each kind that the empty host takes.

        Devices are not counted, because only those that are free are known.
        """
        empty = dataclasses.replace(
            supply, cells=[_empty(cell) for cell in supply.cells])
        return [guests for guests, _ in self._count_by_cells(empty)]

    def prospects(self, supply: supplies.Supply, if_empty: Sequence[int],
                  guests: int) -> tuple[float, ...]:
        """Count the guests of each kind that a host takes, now and later.

        :param if_empty: see :meth:`count_if_empty`
        :param guests: the number of all guests on the host
        """
        share = _share_of_free_cpus(supply) + 1 / (guests + 1)
        found = []
        for wanted, now, by_cells in zip(self._wanted, self.count(supply),
                                         if_empty, strict=True):
            most = min(by_cells, _count_free_devices(wanted,
                                                     supply.pools or ()))
            found.append(now + round(most * share * _PARTS) / _PARTS)
        return tuple(found)

    def _count_by_cells(self, supply: supplies.Supply,
                        ) -> list[tuple[int, Sequence[int]]]:
        """Count the guests of each kind by CPUs and memory.

        :returns: the number of guests, and the number of guests of which each
            host cell takes a cell
        """
        columns = list(zip(*[self._find_rooms(cell, supply)
                             for cell in supply.cells], strict=True))
        pcpus = sum([len(cell.free) for cell in supply.cells])
        counts: list[tuple[int, Sequence[int]]] = []
        for kind, needs in zip(self.kinds, self._needs, strict=True):
            near: Sequence[int] = columns[needs[0][0]] if columns else ()
            guests = min([spread(columns[number], count)
                          for number, count in needs]) if columns else 0
            if guests and len(needs) > 1:
                # A host cell takes at most as many cells of a guest as of its
                # smallest. All cells of guests share the PCPUs of the host.
                near = list(map(max, *[columns[number]
                                       for number, _ in needs]))
                needed = sum([cell.pcpus + cell.emulator_pcpus
                              for cell in kind.cells])
                guests = min(guests, spread(near, len(kind.cells)),
                             pcpus // needed if needed else _MANY)
            counts.append((guests, near))
        return counts

    def _find_rooms(self, cell: supplies.CellSupply,
                    supply: supplies.Supply) -> tuple[int, ...]:
        """Count guest cells on a host cell, or recall their numbers."""
        cores: Hashable = None
        if self._by_core:
            cores = (cell.threads_per_core, cell.dedicated == cell.shared,
                     tuple([len(core & cell.free) for core in cell.siblings]))
        key = (len(cell.free), len(cell.dedicated), len(cell.shared),
               bool(cell.siblings), cell.cpu_usage, cell.memory_mib,
               cell.memory_used_mib, tuple(cell.pages), cores,
               supply.cpu_ratio, supply.ram_ratio)
        rooms = self._rooms.get(key)
        if rooms is None:
            rooms = tuple([
                min(_MANY, cells.count(guest, cell, supply.cpu_ratio,
                                       supply.ram_ratio))
                for guest in self._guest_cells])
            if len(cell.pages) + len(cell.siblings) <= MAX_PARTS:
                if len(self._rooms) >= MAX_STATES:
                    self._rooms.clear()
                self._rooms[key] = rooms
        return rooms


def _empty(cell: supplies.CellSupply) -> supplies.CellSupply:
    """Return a host cell without its guests."""
    return cell._replace(
        free=cell.dedicated, cpu_usage=0, memory_used_mib=0,
        pages=tuple([pool._replace(used=0, free=pool.used + pool.free)
                     for pool in cell.pages]))


def count_free_cpus(supply: supplies.Supply) -> float:
    """Count the CPUs of a host that guests can still get."""
    return sum([len(cell.free) + len(cell.shared) * supply.cpu_ratio
                - cell.cpu_usage for cell in supply.cells])


def _share_of_free_cpus(supply: supplies.Supply) -> float:
    most = sum([len(cell.dedicated) + len(cell.shared) * supply.cpu_ratio
                for cell in supply.cells])
    return min(max(count_free_cpus(supply), 0.0) / most, 1.0) if most else 0.0


def spread(room: Sequence[int], cells_of_guest: int) -> int:
    """Count guests of several equal cells, each on another host cell.

    :param room: the number of guest cells that each host cell takes
    :param cells_of_guest: the number of cells of a guest
    :returns: the largest n for which ``sum(min(each, n) for each in room)``
        is at least ``n * cells_of_guest``
    """
    total = sum(room)
    if cells_of_guest == 1:
        return total
    guests = total // cells_of_guest
    while guests:
        if max(room) <= guests:
            return guests
        taken = sum([min(each, guests) for each in room])
        if taken >= guests * cells_of_guest:
            return guests
        guests = taken // cells_of_guest
    return 0


def _merge_requests(kind: demands.Demand) -> list[devices.DeviceRequest]:
    """Merge requests for equal devices: ``count`` is their sum."""
    alike: dict[Hashable, devices.DeviceRequest] = {}
    for request in kind.requests:
        # Nova accepts counts of zero and negative counts.
        if request.count > 0:
            key = devices.key(dataclasses.replace(request, count=1))
            count = alike[key].count if key in alike else 0
            alike[key] = dataclasses.replace(request,
                                             count=request.count + count)
    return list(alike.values())


def _count_free_devices(wanted: Sequence[devices.DeviceRequest],
                        pools: Sequence[devices.Pool]) -> int:
    """Count the guests for which pools have devices, on whichever cells."""
    return min([sum([pool.free for pool in pools
                     if devices.serves(pool, request)]) // request.count
                for request in wanted], default=_MANY)


def _count_by_sets(kind: demands.Demand,
                   wanted: Sequence[devices.DeviceRequest],
                   supply: supplies.Supply) -> int:
    """Count the guests that the sets of devices serve, one set each.

    The sum over the sets is too high if they overlap, never too low.
    """
    if not wanted:
        return 0
    return sum([_count_free_devices(wanted, pools) for each, pools
                in device_sets.members(supply.pools or ()).items()
                if each.kind == kind.device_set])


def _count_by_devices(request: devices.DeviceRequest, guest_cells: int,
                      near: Sequence[int], supply: supplies.Supply) -> int:
    """Count the guests that get the devices of a request.

    :param guest_cells: the number of cells of a guest
    :param near: the number of guests that each host cell takes
    """
    if request.affinity is _PREFERRED:
        return _count_free_devices([request], supply.pools or ())
    free: dict[int | None, int] = {}
    for pool in supply.pools or ():
        if pool.free and devices.serves(pool, request):
            free[pool.cell] = free.get(pool.cell, 0) + pool.free
    # The free devices of each cell or socket, and the guests that it takes.
    places: dict[Hashable, list[int]] = {}
    for cell, guests in zip(supply.cells, near, strict=True):
        by_socket = request.affinity is _SOCKET and cell.socket is not None
        place = places.setdefault(
            ('socket', cell.socket) if by_socket else cell.id, [0, 0])
        place[0] += free.get(cell.id, 0)
        place[1] += guests
    usable = [min(count, guests * request.count)
              for count, guests in places.values()]
    anywhere = 0
    if request.affinity is shape_model.PCIAffinity.LEGACY:
        anywhere = free.get(None, 0)
    if guest_cells == 1 and not anywhere:
        return sum([count // request.count for count in usable])
    if sum(sorted(usable)[-guest_cells:]) + anywhere < request.count:
        return 0
    return (sum(usable) + anywhere) // request.count

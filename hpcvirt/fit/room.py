# SPDX-License-Identifier: Apache-2.0

"""Count the guests of several kinds that a host takes, now and later.

Each kind is counted as if the host took guests of this kind only. The count is
exact for guests of equal cells without devices. For others it is an upper
bound close to the truth: it is the least of the counts by each resource.

When guests leave, a host takes guests for which it has no room now. These
later guests are estimated from those that the empty host would take by its
CPUs and memory, and from the share of its CPUs that is free, in two ways that
are added up: times the share, as if cells came free one after the other, and
times the share to the power of the number of the guest's cells, which is the
chance that all are free together. A host that is nearly empty is therefore
spared for guests of many cells, even if it has no room for one now. Guests
with devices count later where the host has such devices.
"""

import collections
import dataclasses
from collections.abc import Hashable
from collections.abc import Mapping
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

_LEGACY = shape_model.PCIAffinity.LEGACY
_PREFERRED = shape_model.PCIAffinity.PREFERRED
_SOCKET = shape_model.PCIAffinity.SOCKET

#: The numbers of guest cells of each kind that a host cell takes: now, and
#: when it is empty.
_Rooms = tuple[tuple[int, ...], tuple[int, ...]]


class RoomCounter:
    """Counts guests of given kinds.

    For example, a host has two cells with 8 and 3 free PCPUs of 8. It takes
    two guests of one cell with 4 PCPUs and one guest of two cells with 2 PCPUs
    each. Empty, it would take 4 and 4. Of its CPUs 11/16 are free, so that it
    has room for 2 + 4 x (11/16 + 11/16) and 1 + 4 x (11/16 + (11/16)**2)
    guests, now and later.

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
        self._cpus = [needs_cpus(kind) for kind in self.kinds]
        # The different devices that are requested, and for each kind: their
        # numbers, with the requests for them.
        self._devices: list[devices.DeviceRequest] = []
        self._wanted = [self._add_up_requests(kind) for kind in self.kinds]
        self._rooms: dict[Hashable, _Rooms] = {}
        # Rooms of empty cells and their sockets -> the guests of each kind
        # that an empty host takes by its CPUs and memory.
        self._on_empty: dict[Hashable, list[int]] = {}

    def count(self, supply: supplies.Supply) -> tuple[int, ...]:
        """Count the guests of each kind that a host takes now."""
        return tuple(self._count_now(
            supply, [self._find_rooms(cell, supply)[0]
                     for cell in supply.cells], self._find_devices(supply)))

    def prospects(self, supply: supplies.Supply) -> tuple[float, ...]:
        """Count the guests of each kind that a host takes, now and later."""
        rooms = [self._find_rooms(cell, supply) for cell in supply.cells]
        free = self._find_devices(supply)
        now = self._count_now(supply, [each[0] for each in rooms], free)
        most = self._count_on_empty(supply, [each[1] for each in rooms])
        shares = {cpus: _share_of_free_cpus(cpus, supply)
                  for cpus in set(self._cpus)}
        prospects = []
        for kind, cpus, wanted, count, guests in zip(
                self.kinds, self._cpus, self._wanted, now, most, strict=True):
            later = 0.0
            if all(free[number] for number, _ in wanted):
                share = shares[cpus]
                later = guests * (share + share ** len(kind.cells))
            prospects.append(count + round(later * _PARTS) / _PARTS)
        return tuple(prospects)

    def _find_rooms(self, cell: supplies.CellSupply,
                    supply: supplies.Supply) -> _Rooms:
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
        if rooms is not None:
            return rooms
        now = tuple([min(_MANY, cells.count(guest, cell, supply.cpu_ratio,
                                            supply.ram_ratio))
                     for guest in self._guest_cells])
        empty = _empty(cell)
        # Most cells are equal when they are empty.
        rooms = now, (now if cell == empty
                      else self._find_rooms(empty, supply)[0])
        if len(cell.pages) + len(cell.siblings) <= MAX_PARTS:
            if len(self._rooms) >= MAX_STATES:
                self._rooms.clear()
            self._rooms[key] = rooms
        return rooms

    def _count_on_empty(self, supply: supplies.Supply,
                        rooms: Sequence[tuple[int, ...]]) -> list[int]:
        """Count the guests of each kind that the empty host takes."""
        key = tuple(rooms), tuple([cell.socket for cell in supply.cells])
        guests = self._on_empty.get(key)
        if guests is None:
            empty = [_empty(cell) for cell in supply.cells]
            pcpus = sum([len(cell.dedicated) for cell in empty])
            columns = list(zip(*rooms, strict=True))
            guests = [_count_by_cells(kind, needs, columns, empty, pcpus)[0]
                      for kind, needs in zip(self.kinds, self._needs,
                                             strict=True)]
            if len(self._on_empty) >= MAX_STATES:
                self._on_empty.clear()
            self._on_empty[key] = guests
        return guests

    def _count_now(self, supply: supplies.Supply,
                   rooms: Sequence[tuple[int, ...]],
                   free: Sequence[Mapping[int | None, int]]) -> list[int]:
        """Count guests by the room on each cell, then by devices.

        :param free: see :meth:`_find_devices`
        """
        columns = list(zip(*rooms, strict=True))
        pcpus = sum([len(cell.free) for cell in supply.cells])
        counts = []
        for kind, needs, wanted in zip(self.kinds, self._needs, self._wanted,
                                       strict=True):
            guests, near = _count_by_cells(kind, needs, columns, supply.cells,
                                           pcpus)
            if guests and (kind.physnets or kind.tunneled):
                guests = min(guests, _count_by_networks(kind, near,
                                                        supply.cells))
            if guests and kind.device_set is not None:
                guests = min(guests, _count_by_sets(kind, wanted, supply))
            for number, request in wanted if guests else ():
                guests = min(guests, _count_by_devices(
                    request, len(kind.cells), near, supply, free[number]))
            counts.append(guests)
        return counts

    def _add_up_requests(self, kind: demands.Demand,
                         ) -> list[tuple[int, devices.DeviceRequest]]:
        """Merge requests for equal devices: ``count`` is their sum.

        :returns: the number of the devices, and the request
        """
        alike: dict[Hashable, devices.DeviceRequest] = {}
        for request in kind.requests:
            # Nova accepts counts of zero and negative counts.
            if request.count > 0:
                key = request.affinity, _find_key(request)
                alike[key] = (dataclasses.replace(
                    request, count=request.count + alike[key].count)
                    if key in alike else request)
        wanted = []
        for request in alike.values():
            known = list(map(_find_key, self._devices))
            if _find_key(request) not in known:
                self._devices.append(request)
                known.append(_find_key(request))
            wanted.append((known.index(_find_key(request)), request))
        return wanted

    def _find_devices(self, supply: supplies.Supply,
                      ) -> list[Mapping[int | None, int]]:
        """Add up the free devices that are requested, by host cell."""
        found: list[Mapping[int | None, int]] = []
        for request in self._devices:
            free: dict[int | None, int] = {}
            for pool in supply.pools or ():
                if pool.free and devices.serves(pool, request):
                    free[pool.cell] = free.get(pool.cell, 0) + pool.free
            found.append(free)
        return found


def _find_key(request: devices.DeviceRequest) -> Hashable:
    """Return a key of which devices are requested, not how many or where."""
    return devices.key(dataclasses.replace(
        request, count=1, affinity=_LEGACY))


def _empty(cell: supplies.CellSupply) -> supplies.CellSupply:
    """Return a host cell without its guests."""
    return cell._replace(
        free=cell.dedicated, cpu_usage=0, memory_used_mib=0,
        pages=tuple([pool._replace(used=0, free=pool.used + pool.free)
                     for pool in cell.pages]))


def needs_cpus(demand: demands.Demand) -> tuple[bool, bool]:
    """Tell whether a guest needs PCPUs, and whether it needs shared CPUs."""
    return (any(cell.pcpus for cell in demand.cells),
            any(cell.vcpus for cell in demand.cells))


def free_cpus(needs: tuple[bool, bool], supply: supplies.Supply) -> float:
    """Count the free CPUs of a host, of the kinds that a guest needs.

    :param needs: see :func:`needs_cpus`
    """
    free = 0.0
    if needs[0]:
        free += sum([len(cell.free) for cell in supply.cells])
    if needs[1]:
        free += sum([len(cell.shared) * supply.cpu_ratio - cell.cpu_usage
                     for cell in supply.cells])
    return free


def _share_of_free_cpus(needs: tuple[bool, bool],
                        supply: supplies.Supply) -> float:
    most = 0.0
    if needs[0]:
        most += sum([len(cell.dedicated) for cell in supply.cells])
    if needs[1]:
        most += sum([len(cell.shared) for cell in supply.cells]
                    ) * supply.cpu_ratio
    if not most:
        return 0.0
    return min(max(free_cpus(needs, supply), 0.0) / most, 1.0)


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


def _count_by_cells(kind: demands.Demand, needs: Sequence[tuple[int, int]],
                    columns: Sequence[tuple[int, ...]],
                    host_cells: Sequence[supplies.CellSupply],
                    pcpus: int) -> tuple[int, Sequence[int]]:
    """Count guests by CPUs and memory.

    :param columns: for each guest cell the number that each host cell takes
    :param pcpus: the PCPUs that all host cells have for guests
    :returns: the number of guests, and the number of guests of which each host
        cell takes a cell
    """
    rooms: list[Sequence[int]] = [columns[number] for number, _ in needs]
    if kind.exclusive_cells:
        rooms = [[min(count, int(cell.empty)) for count, cell in zip(
            room, host_cells, strict=True)] for room in rooms]
    near, most = rooms[0], _MANY
    bounds = [(room, count) for room, (_, count) in zip(rooms, needs,
                                                        strict=True)]
    if len(rooms) > 1:
        # A host cell takes at most as many cells of a guest as of its
        # smallest. All cells of guests share the PCPUs of the host.
        near = [*map(max, *rooms)]
        bounds.append((near, len(kind.cells)))
        needed = sum([cell.pcpus + cell.emulator_pcpus for cell in kind.cells])
        most = pcpus // needed if needed else _MANY
    if (kind.numa_scope is not shape_model.NUMAScope.SOCKET
            or len(kind.cells) == 1):
        return min(most, *[spread(room, count)
                           for room, count in bounds]), near
    guests = 0
    for socket in {cell.socket for cell in host_cells} - {None}:
        guests += min([
            spread([own for own, cell in zip(room, host_cells, strict=True)
                    if cell.socket == socket], count)
            for room, count in bounds])
    return min(most, guests), near


def _count_by_networks(kind: demands.Demand, near: Sequence[int],
                       host_cells: Sequence[supplies.CellSupply]) -> int:
    """Count guests of which one cell is near each network with affinity."""
    affine = [[physnet in cell.physnets for cell in host_cells]
              for physnet in kind.physnets]
    if kind.tunneled:
        affine.append([cell.tunneled for cell in host_cells])
    guests = _MANY
    for network in affine:
        if any(network):
            guests = min(guests, sum([room for room, is_near in zip(
                near, network, strict=True) if is_near]))
    return guests


def _count_by_sets(kind: demands.Demand,
                   wanted: Sequence[tuple[int, devices.DeviceRequest]],
                   supply: supplies.Supply) -> int:
    """Count the guests that the sets of devices serve, one set each.

    The sum over the sets is too high if they overlap, never too low.
    """
    guests = 0
    for each, pools in device_sets.members(supply.pools or ()).items():
        if each.kind == kind.device_set:
            guests += min([
                sum([pool.free for pool in pools
                     if devices.serves(pool, request)]) // request.count
                for _, request in wanted], default=0)
    return guests


def _count_by_devices(request: devices.DeviceRequest, guest_cells: int,
                      near: Sequence[int], supply: supplies.Supply,
                      free: Mapping[int | None, int]) -> int:
    """Count the guests that get the devices of a request.

    :param guest_cells: the number of cells of a guest
    :param near: the number of guests that each host cell takes
    :param free: the free devices of each cell
    """
    if request.affinity is _PREFERRED:
        return sum(free.values()) // request.count
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
    anywhere = free.get(None, 0) if request.affinity is _LEGACY else 0
    if guest_cells == 1 and not anywhere:
        return sum([count // request.count for count in usable])
    if sum(sorted(usable)[-guest_cells:]) + anywhere < request.count:
        return 0
    return (sum(usable) + anywhere) // request.count

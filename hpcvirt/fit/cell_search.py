# SPDX-License-Identifier: Apache-2.0

"""Search for the first arrangement of a guest on the cells of a host.

A guest without devices and networks may use any cells with room, and matching
decides. For other guests the answer depends on the *set* of host cells, and
within it only on the deciding cells. Sets of deciding cells are tried,
smallest first; other cells complete the arrangement. Sizes for which no set
has enough devices are skipped. The search is exact, unless it exceeds its
limit: it then refuses the host and says so.

Which guest cells fit on which host cells is decided once
(:class:`FitMatrix`). Guest cells are matched with host cells by Kuhn's
algorithm. The graph is given as adjacency lists: for each left node, the right
nodes that it may be matched with.

Conditions of devices and networks apply to the set of host cells as a whole
(:class:`AffinityCheck`). They depend only on its deciding cells: cells with a
matching device (for socket affinity, the other cells of its socket as well)
and cells with an affine network. Adding other cells to the set does not change
the answer. If a network of the guest has affinity to cells of a host, the
guest must use at least one of them. A network without affinity on that host
sets no condition.
"""

import copy
import dataclasses
import functools
import itertools
import typing
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from collections.abc import Set

from hpcvirt.fit import cell as cells
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


class FitMatrix:
    """The result for every pair of a guest cell and a host cell.

    A host cell is identified by its rank: its position in ``ordered``.

    :ivar cells: the host cells, by rank
    :ivar fitting: for each guest cell the ranks where it fits, ascending
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 ordered: Sequence[supplies.CellSupply]) -> None:
        self.cells = ordered
        self._misfits: dict[demands.CellDemand,
                            list[reasons.Misfit | None]] = {}
        fitting: dict[demands.CellDemand, tuple[int, ...]] = {}
        for guest_cell in demand.cells:
            if guest_cell not in fitting:
                column = self._misfits[guest_cell] = [
                    cells.obstacle(guest_cell, cell, supply.cpu_ratio,
                                   supply.ram_ratio) for cell in ordered]
                fitting[guest_cell] = tuple(
                    rank for rank, misfit in enumerate(column)
                    if misfit is None)
        self._demand = demand
        self.fitting = [fitting[guest_cell] for guest_cell in demand.cells]

    def shortage(self) -> reasons.Misfit | None:
        """Say why there are too few host cells with CPUs and memory.

        :returns: None if every guest cell can have a host cell of its own
        """
        if self._demand.uniform:
            if len(self.fitting[0]) >= len(self.fitting):
                return None
            contending = list(range(len(self.fitting)))
        else:
            contending = contenders(self.fitting)
            if not contending:
                return None
        free = len(set().union(*(self.fitting[guest]
                                 for guest in contending)))
        causes = self.obstacles(contending)
        if len(contending) == len(self.fitting):
            return reasons.refuse_host(free, len(contending), causes)
        if len(contending) == 1:
            return reasons.Misfit(reasons.Code.NO_CELL_FOR,
                                  {'guest_cell': contending[0]}, causes)
        return reasons.Misfit(reasons.Code.CELLS_CONTENDED, {
            'guest_cells': ', '.join(map(str, contending)),
            'free': free, 'needed': len(contending)}, causes)

    def obstacles(self, guests: Sequence[int] | None = None,
                  ranks: Sequence[int] | None = None,
                  ) -> tuple[reasons.Misfit, ...]:
        """List why guest cells do not fit on host cells, without repetitions.

        :param guests: numbers of guest cells; None for all
        :param ranks: ranks of host cells; None for all
        """
        found: list[reasons.Misfit] = []
        numbers = range(len(self.fitting)) if guests is None else guests
        for guest_cell in dict.fromkeys(self._demand.cells[number]
                                        for number in numbers):
            column = self._misfits[guest_cell]
            for rank in range(len(column)) if ranks is None else ranks:
                misfit = column[rank]
                if misfit is not None:
                    found.append(misfit)
        return reasons.sort_by_cell(found)


def match(neighbors: Sequence[Collection[int]],
          excluded: Collection[int] = ()) -> dict[int, int] | None:
    """Match every left node with a right node of its own.

    :param neighbors: the right nodes adjacent to each left node
    :param excluded: right nodes that must not be used
    :returns: right node -> left node; None if there is no such matching
    """
    partner: dict[int, int] = {}
    for left in range(len(neighbors)):
        if not _augment(left, neighbors, partner, set(excluded)):
            return None
    return partner


def contenders(neighbors: Sequence[Collection[int]]) -> list[int]:
    """Find left nodes that have too few right nodes between them.

    :returns: their numbers, ascending; empty if all can be matched
    """
    partner: dict[int, int] = {}
    for left in range(len(neighbors)):
        seen: set[int] = set()
        if not _augment(left, neighbors, partner, seen):
            return sorted({left, *(partner[right] for right in seen)})
    return []


def _augment(left: int, neighbors: Sequence[Collection[int]],
             partner: dict[int, int], seen: set[int]) -> bool:
    for right in neighbors[left]:
        if right in seen:
            continue
        seen.add(right)
        if right not in partner or _augment(partner[right], neighbors,
                                            partner, seen):
            partner[right] = left
            return True
    return False


def device_allocator(demand: demands.Demand, supply: supplies.Supply,
                     providers: devices.Providers = (),
                     ) -> devices.ClaimAllocator | None:
    """Match the PCI requests of a guest with the pools of a host.

    :returns: None if the guest requests no devices, or if Nova does not
        track devices on this host
    """
    if not demand.requests or supply.pools is None:
        return None
    by_socket = any(request.affinity is shape_model.PCIAffinity.SOCKET
                    for request in demand.requests)
    sockets = {cell.id: cell.socket
               for cell in supply.cells} if by_socket else {}
    return devices.ClaimAllocator(demand.requests, supply.pools,
                                  sockets, providers)


class AffinityCheck:
    """Decide whether a set of host cells gives a guest its affinities.

    :ivar deciding: ids of the host cells on which the answer depends
    :ivar needed: ids of the host cells that no such set can do without
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 providers: devices.Providers = ()) -> None:
        self._networks = find_affinities(demand, supply.cells)
        self._requests = demand.requests
        self._devices = device_allocator(demand, supply, providers)
        self.deciding: frozenset[int] = frozenset().union(
            *(affinity.cells for affinity in self._networks))
        if self._devices is not None:
            self.deciding |= self._devices.deciding
        self._begin()

    def following(self, providers: devices.Providers) -> typing.Self:
        """Return the check of the same guest with another allocation.

        What does not depend on the allocation is not determined again.
        """
        twin = copy.copy(self)
        if self._devices is not None:
            twin._devices = self._devices.following(providers)
        twin._begin()
        return twin

    def _begin(self) -> None:
        self._answers: dict[frozenset[int], bool] = {}
        self.needed: frozenset[int] = frozenset().union(
            *(affinity.cells for affinity in self._networks
              if len(affinity.cells) == 1))
        if self._devices is not None:
            self.needed |= self._devices.needed

    def ruled_out(self, cells: Iterable[int], most: int,
                  taken: Collection[int] = ()) -> bool:
        """Whether counting shows that no set of cells has all that is needed.

        :param cells: the host cells that the guest can use
        :param most: the number of cells that it uses
        :param taken: the cells that it uses in any case
        """
        cells = tuple(cells)
        if (len(self.needed.union(taken)) > most
                or not self.needed.difference(taken).issubset(cells)):
            return True
        return (self._devices is not None and
                self._devices.ruled_out(cells, most, taken))

    def met(self, cells: Iterable[int]) -> bool:
        """Whether a guest on these cells gets its devices and networks."""
        deciding = self.deciding.intersection(cells)
        if not self.needed <= deciding:
            return False
        answer = self._answers.get(deciding)
        if answer is None:
            answer = self._answers[deciding] = (
                are_satisfied(self._networks, deciding) and
                (self._devices is None or
                 self._devices.allocate(deciding) is not None))
        return answer

    def second_look(self) -> reasons.Misfit | None:
        """Say why the second search for devices fails.

        Nova's claim and its PciPassthroughFilter search for the devices once
        more, without affinity. Requests may then take devices on other cells,
        so that too few are left for a later request.
        """
        if self._devices is None:
            return _too_few(self._requests[0], 0) if self._requests else None
        request = self._devices.refused()
        if request is None:
            return None
        return self._shortage() or reasons.Misfit(
            reasons.Code.DEVICES_TAKEN, {'request': request.name})

    def loss(self, cells: Collection[int]) -> reasons.Misfit | None:
        """Say why a guest would not get all its devices after its claim."""
        return self._devices.loss(cells) if self._devices else None

    def misfit(self, matrix: FitMatrix) -> reasons.Misfit:
        """Say why no set of host cells with room meets the conditions."""
        shortage = self._shortage()
        if shortage is not None:
            return shortage
        usable: set[int] = set()
        for ranks in matrix.fitting:
            for rank in ranks:
                usable.add(matrix.cells[rank].id)
        busy = [rank for rank, cell in enumerate(matrix.cells)
                if cell.id in self.deciding and cell.id not in usable]
        causes = matrix.obstacles(ranks=busy)
        for affinity in self._networks:
            if affinity.cells.isdisjoint(usable):
                return reasons.Misfit(reasons.Code.NETWORK_AFFINITY, {
                    'networks': affinity.network,
                    'cells': reasons.cells(sorted(affinity.cells))}, causes)
        if self._devices is not None:
            return reasons.Misfit(reasons.Code.DEVICE_AFFINITY, {
                'cells': reasons.cells(sorted(self._devices.deciding))},
                causes)
        return reasons.Misfit(reasons.Code.NETWORK_AFFINITY, {
            'networks': ' and '.join(affinity.network
                                     for affinity in self._networks),
            'cells': reasons.cells(sorted(self.deciding))}, causes)

    def _shortage(self) -> reasons.Misfit | None:
        shortage = self._devices.shortage() if self._devices else None
        return None if shortage is None else _too_few(*shortage)


def _too_few(request: devices.DeviceRequest, free: int) -> reasons.Misfit:
    return reasons.Misfit(reasons.Code.DEVICES, {
        'request': request.name, 'free': free, 'needed': request.count})


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkAffinity:
    """A network of the guest that has affinity to cells of the host.

    :ivar network: its name
    :ivar cells: the cells; the guest must use one of them
    """

    network: str
    cells: frozenset[int]


def find_affinities(demand: demands.Demand,
                    cells: Iterable[supplies.CellSupply],
                    ) -> tuple[NetworkAffinity, ...]:
    """Find the networks of a guest that have affinity to host cells."""
    if not demand.physnets and not demand.tunneled:
        return ()
    near: dict[str, set[int]] = {}
    for cell in cells:
        for physnet in demand.physnets & cell.physnets:
            near.setdefault(f'physical network {physnet}', set()).add(cell.id)
        if demand.tunneled and cell.tunneled:
            near.setdefault('tunnelled networks', set()).add(cell.id)
    return tuple(NetworkAffinity(network, frozenset(ids))
                 for network, ids in sorted(near.items()))


def are_satisfied(networks: Iterable[NetworkAffinity],
                  cells: Collection[int]) -> bool:
    """Whether a set of host cells has one cell of each network."""
    return all(not affinity.cells.isdisjoint(cells) for affinity in networks)


#: Sets of deciding cells that are tried before the search gives up. They
#: include all sets of up to four of 16 cells, and all sets of 12 cells. To try
#: one takes up to 0.1 ms, so that a host takes a fraction of a second at most,
#: however many allocations Placement offers on it.
MAX_SETS = 1 << 12


class Effort:
    """Counts the sets of cells that were tried for a guest on a host.

    All allocations that Placement offers on the host share one count.
    """

    def __init__(self) -> None:
        self._tried = 0

    @property
    def spent(self) -> bool:
        """Whether more sets than allowed would have had to be tried."""
        return self._tried > MAX_SETS

    def spend(self) -> bool:
        """Count one more set; return whether it may be tried."""
        self._tried += 1
        return not self.spent

    @staticmethod
    def misfit() -> reasons.Misfit:
        """Say that the search was given up."""
        return reasons.Misfit(reasons.Code.UNDECIDED, {'tried': MAX_SETS})


class CellSearch:
    """Searches for one guest on one host.

    It is asked for one allocation of Placement after another. Which cells have
    room does not depend on the allocation, and is determined once.
    """

    def __init__(self, matrix: FitMatrix, effort: Effort) -> None:
        """Prepare to search.

        :param matrix: one without shortage
        """
        self._matrix = matrix
        self._effort = effort
        self._ids = [cell.id for cell in matrix.cells]
        self._usable: frozenset[int] = frozenset().union(*matrix.fitting)
        # Deciding ranks -> whether an arrangement can use just these of them.
        self._covered: dict[frozenset[int], bool] = {}
        self._refusal: reasons.Misfit | None = None

    @functools.cached_property
    def _roomiest(self) -> tuple[int, ...]:
        """The first arrangement regardless of devices and networks."""
        fitting = self._matrix.fitting
        return _first(fitting, lambda taken: match(
            fitting[len(taken):], taken) is not None)

    def _is_enough(self, affinity: AffinityCheck) -> bool:
        return bool(self._roomiest) and affinity.met(
            self._ids[rank] for rank in self._roomiest)

    def find_misfit(self, affinity: AffinityCheck,
                    ) -> reasons.Misfit | None:
        """Say why no arrangement fits; None if one does."""
        if self._is_enough(affinity):
            return None
        if affinity.ruled_out((self._ids[rank] for rank in self._usable),
                              len(self._matrix.fitting)):
            return self._refuse(affinity)
        if self._can_complete((), affinity):
            return None
        return (self._effort.misfit() if self._effort.spent
                else self._refuse(affinity))

    def _refuse(self, affinity: AffinityCheck,
                ) -> reasons.Misfit:
        # The reason is that of the host, whatever the allocation.
        if self._refusal is None:
            self._refusal = affinity.misfit(self._matrix)
        return self._refusal

    def first_arrangement(self, affinity: AffinityCheck,
                          ) -> tuple[int, ...] | reasons.Misfit:
        """Find the first arrangement, in lexicographic order of the ranks.

        :returns: for each guest cell the rank of its host cell
        """
        misfit = self.find_misfit(affinity)
        if misfit is not None:
            return misfit
        if self._is_enough(affinity):
            return self._roomiest
        # Once a beginning can be completed, so can one of its continuations,
        # unless the search is given up.
        return _first(self._matrix.fitting, lambda taken: self._can_complete(
            taken, affinity)) or self._effort.misfit()

    def _can_complete(self, taken: Sequence[int],
                      affinity: AffinityCheck) -> bool:
        """Whether an arrangement can begin with these ranks."""
        rest = self._matrix.fitting[len(taken):]
        ids = self._ids
        deciding = {rank for rank in self._usable
                    if ids[rank] in affinity.deciding}
        other = self._usable.difference(deciding, taken)
        free = deciding.difference(taken)
        own = [ids[rank] for rank in taken]
        free_ids = [ids[rank] for rank in free]
        least = next((size for size in range(
            max(len(rest) - len(other), 0), min(len(rest), len(free)) + 1)
            if not affinity.ruled_out(free_ids, len(own) + size, own)), None)
        if least is None:
            return False
        needed = frozenset(rank for rank in free
                           if ids[rank] in affinity.needed)
        for added in _sets(free - needed, max(least - len(needed), 0),
                           len(rest) - len(needed)):
            if not self._effort.spend():
                return False
            chosen = needed | added
            if affinity.met(ids[rank] for rank in (*taken, *chosen)) and (
                    _covers(rest, chosen, other) if taken
                    else self._covers_all(chosen, other)):
                return True
        return False

    def _covers_all(self, chosen: frozenset[int], other: Set[int]) -> bool:
        covered = self._covered.get(chosen)
        if covered is None:
            covered = self._covered[chosen] = _covers(
                self._matrix.fitting, chosen, other)
        return covered


def _first(fitting: Sequence[Sequence[int]],
           can_complete: Callable[[Sequence[int]], bool],
           ) -> tuple[int, ...]:
    """Build the lexicographically first assignment; empty if none exists."""
    taken: tuple[int, ...] = ()
    for ranks in fitting:
        for rank in ranks:
            if rank not in taken and can_complete((*taken, rank)):
                taken = *taken, rank
                break
        else:
            return ()
    return taken


def _sets(ranks: Set[int], least: int, most: int) -> Iterable[frozenset[int]]:
    """Yield all subsets of ``least`` to ``most`` ranks, smallest first."""
    ordered = sorted(ranks)
    for size in range(least, min(most, len(ordered)) + 1):
        yield from map(frozenset, itertools.combinations(ordered, size))


def _covers(fitting: Sequence[Sequence[int]], must: Set[int],
            may: Set[int]) -> bool:
    """Whether all guest cells can use must and may, and all of must is used.

    By the theorem of Mendelsohn and Dulmage it is sufficient that all guest
    cells can be matched, and that all of ``must`` can be matched.
    """
    allowed = must | may
    guests = [[guest for guest, ranks in enumerate(fitting) if rank in ranks]
              for rank in must]
    return (match([[rank for rank in ranks if rank in allowed]
                   for ranks in fitting]) is not None and
            match(guests) is not None)

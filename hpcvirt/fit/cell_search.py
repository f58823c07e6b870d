# SPDX-License-Identifier: Apache-2.0

"""Search for the first arrangement of a guest on the cells of a host.

A guest without devices and networks may use any cells with room, and matching
decides. For other guests the answer depends on the *set* of host cells, and
within it only on the deciding cells (:mod:`hpcvirt.fit.affinity_check`). Sets
of deciding cells are tried, smallest first; other cells complete the
arrangement. Sizes for which no set has enough devices are skipped. The search
is exact, unless it exceeds its limit: it then refuses the host and says so.
"""

import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from collections.abc import Set

from hpcvirt.fit import affinity_check
from hpcvirt.fit import fit_matrix
from hpcvirt.fit import reasons

#: Sets of deciding cells that are tried before the search gives up. They
#: include all sets of up to four of 16 cells, and all sets of 12 cells. To try
#: one takes up to 0.1 ms, so that a host takes a fraction of a second at most.
MAX_SETS = 1 << 12


def first_arrangement(matrix: fit_matrix.FitMatrix,
                      affinity: affinity_check.AffinityCheck,
                      ) -> tuple[int, ...] | reasons.Misfit:
    """Find the first arrangement, in lexicographic order of the ranks.

    :param matrix: one without shortage
    :returns: for each guest cell the rank of its host cell
    """
    fitting = matrix.fitting
    ids = [cell.id for cell in matrix.cells]
    chosen = _first(fitting, lambda taken: fit_matrix.match(
        fitting[len(taken):], taken) is not None)
    if chosen and affinity.met(ids[rank] for rank in chosen):
        return chosen
    usable = frozenset().union(*fitting)
    if affinity.ruled_out((ids[rank] for rank in usable), len(fitting)):
        return affinity.misfit(matrix)
    search = _Search(fitting, usable, ids, affinity)
    if search.can_complete(()):
        chosen = _first(fitting, search.can_complete)
        if chosen:
            return chosen
    if search.tried > MAX_SETS:
        return reasons.Misfit(reasons.Code.UNDECIDED, {'tried': MAX_SETS})
    return affinity.misfit(matrix)


class _Search:
    """Searches the sets of deciding cells for one that meets the conditions.

    :ivar tried: number of sets tried so far; above MAX_SETS the search has
        given up
    """

    def __init__(self, fitting: Sequence[Sequence[int]],
                 usable: frozenset[int], ids: Sequence[int],
                 affinity: affinity_check.AffinityCheck) -> None:
        self._fitting = fitting
        self._ids = ids
        self._affinity = affinity
        self._deciding = {rank for rank in usable
                          if ids[rank] in affinity.deciding}
        self._other = usable - self._deciding
        self.tried = 0

    def can_complete(self, taken: Sequence[int]) -> bool:
        """Whether an arrangement can begin with these ranks."""
        rest = self._fitting[len(taken):]
        other = self._other.difference(taken)
        free = self._deciding.difference(taken)
        own = [self._ids[rank] for rank in taken]
        ids = [self._ids[rank] for rank in free]
        least = next((size for size in range(
            max(len(rest) - len(other), 0), min(len(rest), len(free)) + 1)
            if not self._affinity.ruled_out(ids, len(own) + size, own)), None)
        if least is None:
            return False
        for deciding in _sets(free, least, len(rest)):
            self.tried += 1
            if self.tried > MAX_SETS:
                return False
            if _covers(rest, deciding, other) and self._affinity.met(
                    self._ids[rank] for rank in (*taken, *deciding)):
                return True
        return False


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
    if not len(must) <= len(fitting) <= len(must) + len(may):
        return False
    if not fitting:
        return True
    allowed = must | may
    guests = [[guest for guest, ranks in enumerate(fitting) if rank in ranks]
              for rank in must]
    return (fit_matrix.match([[rank for rank in ranks if rank in allowed]
                            for ranks in fitting]) is not None and
            fit_matrix.match(guests) is not None)

# SPDX-License-Identifier: Apache-2.0

"""Search for the first arrangement of a guest on the cells of a host.

A guest without devices and networks may use any cells with room, and matching
decides. For other guests the answer depends on the *set* of host cells, and
within it only on the deciding cells (:mod:`hpcvirt.fit.affinity_check`). Sets
of deciding cells are tried, smallest first; other cells complete the
arrangement. Sizes for which no set has enough devices are skipped. The search
is exact, unless it exceeds its limit: it then refuses the host and says so.
"""

import functools
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

    def __init__(self, matrix: fit_matrix.FitMatrix, effort: Effort) -> None:
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
        return _first(fitting, lambda taken: fit_matrix.match(
            fitting[len(taken):], taken) is not None)

    def _is_enough(self, affinity: affinity_check.AffinityCheck) -> bool:
        return bool(self._roomiest) and affinity.met(
            self._ids[rank] for rank in self._roomiest)

    def find_misfit(self, affinity: affinity_check.AffinityCheck,
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

    def _refuse(self, affinity: affinity_check.AffinityCheck,
                ) -> reasons.Misfit:
        # The reason is that of the host, whatever the allocation.
        if self._refusal is None:
            self._refusal = affinity.misfit(self._matrix)
        return self._refusal

    def first_arrangement(self, affinity: affinity_check.AffinityCheck,
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
                      affinity: affinity_check.AffinityCheck) -> bool:
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

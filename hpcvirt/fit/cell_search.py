# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The choice of host cells.

Without devices and networks any cells with room will do, and matching
decides. With them the answer depends on the *set* of host cells taken, and
of that set only on the deciding cells (:mod:`hpcvirt.fit.conditions`). Sets
of these are tried, smallest first; the other cells only fill up.
"""

import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from collections.abc import Set

from hpcvirt.fit import conditions as rules
from hpcvirt.fit import fit_matrix
from hpcvirt.fit import matching
from hpcvirt.fit import reasons

#: Sets of deciding cells that are tried before the search gives up: more
#: than a host with 16 deciding cells has.
MOST_SETS = 1 << 17


def first(table: fit_matrix.Table,
          conditions: rules.Conditions) -> tuple[int, ...] | reasons.Misfit:
    """Find the first arrangement, in the order of the table's ranks.

    :param table: one without shortage
    :returns: for each guest cell the rank of its host cell
    """
    wishes = table.wishes
    ids = [cell.id for cell in table.cells]
    chosen = _first(wishes, lambda taken: matching.match(
        wishes[len(taken):], taken) is not None)
    if chosen and conditions.met(ids[rank] for rank in chosen):
        return chosen
    usable = frozenset().union(*wishes)
    if conditions.out_of_reach((ids[rank] for rank in usable), len(wishes)):
        return conditions.misfit(table)
    search = _Search(wishes, usable, ids, conditions)
    if search.completes(()):
        chosen = _first(wishes, search.completes)
        if chosen:
            return chosen
    if search.tried > MOST_SETS:
        return reasons.Misfit(reasons.Code.UNDECIDED, {'tried': MOST_SETS})
    return conditions.misfit(table)


class _Search:
    """The search for sets of deciding cells that meet the conditions.

    :ivar tried: sets tried up to now; past MOST_SETS none is found any more
    """

    def __init__(self, wishes: Sequence[Sequence[int]],
                 usable: frozenset[int],
                 ids: Sequence[int], conditions: rules.Conditions) -> None:
        self._wishes = wishes
        self._ids = ids
        self._conditions = conditions
        self._deciding = {rank for rank in usable
                          if ids[rank] in conditions.deciding}
        self._plain = usable - self._deciding
        self.tried = 0

    def completes(self, taken: Sequence[int]) -> bool:
        """Whether the first guest cells may take these ranks."""
        rest = self._wishes[len(taken):]
        plain = self._plain.difference(taken)
        for more in _sets(self._deciding.difference(taken), len(rest)):
            self.tried += 1
            if self.tried > MOST_SETS:
                return False
            if _covers(rest, more, plain) and self._conditions.met(
                    self._ids[rank] for rank in (*taken, *more)):
                return True
        return False


def _first(wishes: Sequence[Sequence[int]],
           completes: Callable[[Sequence[int]], bool]) -> tuple[int, ...]:
    """The lexicographically first assignment; empty if there is none."""
    taken: tuple[int, ...] = ()
    for wish in wishes:
        for rank in wish:
            if rank not in taken and completes((*taken, rank)):
                taken = *taken, rank
                break
        else:
            return ()
    return taken


def _sets(ranks: Set[int], most: int) -> Iterable[frozenset[int]]:
    """All subsets, smallest first."""
    ordered = sorted(ranks)
    for size in range(min(most, len(ordered)) + 1):
        yield from map(frozenset, itertools.combinations(ordered, size))


def _covers(wishes: Sequence[Sequence[int]], must: Set[int],
            may: Set[int]) -> bool:
    """Whether all guests find cells in must and may, and use all of must.

    By the theorem of Mendelsohn and Dulmage it is enough that the guests
    can be matched, and that ``must`` can be matched.
    """
    if not len(must) <= len(wishes) <= len(must) + len(may):
        return False
    if not wishes:
        return True
    allowed = must | may
    seekers = [[guest for guest, wish in enumerate(wishes) if rank in wish]
               for rank in must]
    return (matching.match([[rank for rank in wish if rank in allowed]
                            for wish in wishes]) is not None and
            matching.match(seekers) is not None)

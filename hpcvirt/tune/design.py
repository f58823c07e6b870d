# SPDX-License-Identifier: Apache-2.0

"""Choose which configurations are measured, several choices at once.

A replicate is a fractional factorial design: 2^k runs are numbered by vectors
of k bits. A choice of two values has one vector as its column: its value in a
run is the parity of the bits that the column and the run have in common. A
choice of three or four values has two columns. The interaction of two choices
looks like the sum (exclusive or) of their columns; if several interactions
have the same sum, they are confounded.

The columns of choices that need a reboot are among the first vectors, which
form a subspace. All runs with the same low bits then have the same values of
these choices: they are a *whole plot*, which needs one reboot.
"""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

#: Logarithms to base 2 of the smallest and largest number of trials.
_MIN_BITS, _MAX_BITS = 2, 6
#: How many columns are tried for one size of the design.
_TRIED = 500

_Columns = tuple[int, ...]
_Pair = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Design:
    """The configurations of one replicate.

    No main effect is confounded with an interaction of two choices.

    :ivar columns: choice that is varied -> its one or two columns
    :ivar plot_bits: logarithm to base 2 of the number of whole plots
    :ivar levels: the configuration of each run
    """

    columns: Mapping[int, _Columns]
    plot_bits: int
    levels: tuple[trial.Levels, ...]

    @property
    def count(self) -> int:
        """Number of trials."""
        return len(self.levels)

    @property
    def plots(self) -> tuple[tuple[trial.Levels, ...], ...]:
        """The whole plots, each with its configurations."""
        size = 1 << self.plot_bits
        return tuple(self.levels[plot::size] for plot in range(size))

    def split(self, *choices: int) -> dict[tuple[int, ...], list[int]]:
        """Return the runs that have the same levels of some choices."""
        runs = collections.defaultdict[tuple[int, ...], list[int]](list)
        for run, levels in enumerate(self.levels):
            runs[tuple(levels[choice] for choice in choices)].append(run)
        return runs

    def is_of_plots(self, *choices: int) -> bool:
        """Whether the effect of one or two choices is one of whole plots."""
        return any(vector >> self.plot_bits == 0
                   for vector in _add(self.columns, *choices))

    def aliases(self, pair: _Pair) -> tuple[_Pair, ...]:
        """Return the pairs of choices whose interaction looks like this one.

        :param pair: the indices of two choices that are varied, ascending
        """
        own = _add(self.columns, *pair)
        return tuple(
            other for other in itertools.combinations(sorted(self.columns), 2)
            if other != pair and own & _add(self.columns, *other))

    def fix(self, fixed: Mapping[int, int]) -> 'Design':
        """Return the same design with choices that are not varied any more.

        :param fixed: choice -> its level
        """
        return dataclasses.replace(
            self, columns={choice: columns for choice, columns
                           in self.columns.items() if choice not in fixed},
            levels=tuple(tuple(fixed.get(choice, level) for choice, level
                               in enumerate(levels))
                         for levels in self.levels))


def make(space: spaces.Space) -> Design:
    """Make the smallest design in which main effects are clear.

    Wanted interactions are not confounded with each other.

    :raises InvalidInput: if that needs more than 64 trials
    """
    return _make(
        tuple(len(choice.values) for choice in space.choices),
        tuple(choice.has_reboot for choice in space.choices),
        frozenset((min(pair), max(pair)) for pair in space.interactions))


@functools.lru_cache(maxsize=256)
def _make(sizes: tuple[int, ...], whole: tuple[bool, ...],
          wanted: frozenset[_Pair]) -> Design:
    for bits in range(_MIN_BITS, _MAX_BITS + 1):
        for plot_bits in (range(1, bits + all(whole)) if any(whole) else (0,)):
            columns = _Search(sizes, whole, wanted, bits, plot_bits).extend({})
            if columns is not None:
                return Design(columns, plot_bits, tuple(
                    tuple(_find_level(columns[choice], run, size)
                          for choice, size in enumerate(sizes))
                    for run in range(1 << bits)))
    raise exception.InvalidInput(
        'choices', f'{len(sizes)} choices with {sum(sizes)} values and '
        f'{len(wanted)} interactions cannot be told from each other in '
        f'{1 << _MAX_BITS} trials; vary some of them in an experiment of '
        'their own')


def _find_level(columns: _Columns, run: int, values: int) -> int:
    """Return the level of a choice in a run.

    The fourth level of a choice with three values is today's again.
    """
    level = sum(((column & run).bit_count() & 1) << place
                for place, column in enumerate(columns))
    return level if level < values else 0


@dataclasses.dataclass
class _Search:
    """A depth-first search for columns with few aliases."""

    sizes: tuple[int, ...]
    whole: tuple[bool, ...]
    wanted: frozenset[_Pair]
    bits: int
    plot_bits: int
    tried: int = 0

    def extend(self, chosen: dict[int, _Columns],
               ) -> dict[int, _Columns] | None:
        """Choose the columns of the other choices, None if there are none.

        Choices of whole plots are first, then those with most values.
        """
        if len(chosen) == len(self.sizes):
            return chosen
        choice = min({*range(len(self.sizes))} - chosen.keys(),
                     key=lambda each: (not self.whole[each],
                                       -self.sizes[each], each))
        mains = {vector for each in chosen for vector in _add(chosen, each)}
        sums = collections.defaultdict[int, list[_Pair]](list)
        for pair in itertools.combinations(sorted(chosen), 2):
            for vector in _add(chosen, *pair):
                sums[vector].append(pair)
        rated = [
            (cost, columns) for columns in self._find_candidates(choice, mains)
            if (cost := self._rate(choice, {**chosen, choice: columns}, mains,
                                   sums)) is not None]
        for _, columns in sorted(rated):
            self.tried += 1
            if self.tried > _TRIED:
                return None
            found = self.extend({**chosen, choice: columns})
            if found is not None:
                return found
        return None

    def _find_candidates(self, choice: int,
                         mains: set[int]) -> Iterator[_Columns]:
        """Yield columns, of new dimensions only the first: all are alike."""
        first, end = ((1, 1 << self.plot_bits) if self.whole[choice]
                      else (1 << self.plot_bits, 1 << self.bits))
        new = max(first, 1 << max(mains, default=0).bit_length())
        if self.sizes[choice] == 2:
            yield from ((column,) for column in range(first,
                                                      min(end, new + 1)))
        else:
            # The sum is a column too: count each set of three once.
            yield from (
                pair for pair in itertools.combinations(
                    range(first, min(end, 2 * new + 1)), 2)
                if pair[1] < pair[0] ^ pair[1])

    def _rate(self, choice: int, chosen: Mapping[int, _Columns],
              mains: set[int], sums: Mapping[int, list[_Pair]]) -> int | None:
        """Return the cost of the aliases of a choice, None if unsound."""
        if not (mains | sums.keys()).isdisjoint(_add(chosen, choice)):
            return None
        cost = 0
        for other in chosen.keys() - {choice}:
            pair = (min(choice, other), max(choice, other))
            for vector in _add(chosen, *pair):
                rivals = sums.get(vector, ())
                wanted = self.wanted.intersection(rivals)
                if vector in mains or (wanted and pair in self.wanted):
                    return None
                cost += len(rivals) + len(wanted)
        return cost


def _add(columns: Mapping[int, _Columns], *choices: int) -> set[int]:
    """Return the vectors of one choice, or of an interaction of two."""
    vectors = {0}
    for choice in choices:
        one, other = columns[choice][0], columns[choice][-1]
        vectors = {vector ^ own for vector in vectors
                   for own in {one, other, one ^ other} - {0}}
    return vectors

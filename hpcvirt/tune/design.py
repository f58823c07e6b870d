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

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

#: The smallest and the largest number of trials of a replicate, as powers of
#: two.
_MIN_BITS, _MAX_BITS = 2, 6
#: How many columns are tried for one size of the design.
_TRIED = 20_000
#: A wanted interaction that is confounded costs this many other ones.
_WANTED = 10

_Pair = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Design:
    """The configurations of one replicate.

    :ivar columns: choice that is varied -> its one or two columns
    :ivar bits: logarithm of the number of trials
    :ivar plot_bits: the same of the number of whole plots
    :ivar levels: the configuration of each run
    :ivar is_clear: whether no main effect is confounded with an interaction
        of two choices
    """

    columns: Mapping[int, tuple[int, ...]]
    bits: int
    plot_bits: int
    levels: tuple[trial.Levels, ...]
    is_clear: bool

    @property
    def count(self) -> int:
        """Number of trials."""
        return 1 << self.bits

    @property
    def plots(self) -> tuple[tuple[trial.Levels, ...], ...]:
        """The whole plots, each with its configurations."""
        size = 1 << self.plot_bits
        return tuple(self.levels[plot::size] for plot in range(size))

    def is_of_plots(self, *choices: int) -> bool:
        """Whether the effect of one or two choices is one of whole plots."""
        return any(vector >> self.plot_bits == 0
                   for vector in self._vectors(*choices))

    def aliases(self, pair: _Pair) -> tuple[_Pair, ...]:
        """Return the pairs of choices whose interaction looks like this one.

        :param pair: the indices of two choices that are varied, ascending
        """
        own = self._vectors(*pair)
        return tuple(
            other for other in itertools.combinations(sorted(self.columns), 2)
            if other != pair and own & self._vectors(*other))

    def _vectors(self, *choices: int) -> set[int]:
        first, *other = (_span(self.columns[choice]) for choice in choices)
        return _add(first, other[0]) if other else set(first)


def make(space: spaces.Space, fixed: Mapping[int, int] | None = None,
         least: int = 0) -> Design:
    """Make the smallest design in which effects are clear.

    Main effects are not confounded with interactions of two choices, nor
    wanted interactions with each other. If even the largest design confounds
    main effects, it is used nevertheless, and is not clear.

    :param fixed: choices that are not varied any more -> their level
    :param least: at least this number of trials, a power of two
    :raises InvalidInput: if there are too many choices
    """
    fixed = fixed or {}
    varied = [index for index in range(len(space.choices))
              if index not in fixed]
    place = {index: number for number, index in enumerate(varied)}
    columns, bits, plot_bits, is_clear = _choose(
        tuple(len(space.choices[index].values) for index in varied),
        tuple(space.choices[index].has_reboot for index in varied),
        frozenset((place[first], place[second])
                  for first, second in map(sorted, space.interactions)
                  if first in place and second in place),
        max(_MIN_BITS, (least - 1).bit_length()))
    of_choice = dict(zip(varied, columns, strict=True))
    return Design(of_choice, bits, plot_bits, tuple(
        tuple(fixed[index] if index in fixed
              else _level(of_choice[index], run, len(choice.values))
              for index, choice in enumerate(space.choices))
        for run in range(1 << bits)), is_clear)


def _level(columns: tuple[int, ...], run: int, values: int) -> int:
    """Return the level of a choice in a run.

    The fourth level of a choice with three values is today's again.
    """
    level = sum(((column & run).bit_count() & 1) << place
                for place, column in enumerate(columns))
    return level if level < values else 0


@functools.lru_cache(maxsize=256)
def _choose(sizes: tuple[int, ...], whole: tuple[bool, ...],
            wanted: frozenset[_Pair], least: int,
            ) -> tuple[tuple[tuple[int, ...], ...], int, int, bool]:
    for is_clear in (True, False):
        for bits in range(least if is_clear else _MAX_BITS, _MAX_BITS + 1):
            for plot_bits in (range(1, bits + all(whole)) if any(whole)
                              else (0,)):
                found = _Search(sizes, whole, wanted, bits, plot_bits,
                                is_clear).run()
                if found is not None:
                    return found, bits, plot_bits, is_clear
    raise exception.InvalidInput(
        'choices', f'{len(sizes)} choices with {sum(sizes)} values and '
        f'{len(wanted)} interactions need more than {1 << _MAX_BITS} trials '
        'in a replicate')


class _Search:
    """A depth-first search for the columns with the fewest aliases."""

    def __init__(self, sizes: tuple[int, ...], whole: tuple[bool, ...],
                 wanted: frozenset[_Pair], bits: int, plot_bits: int,
                 is_clear: bool) -> None:
        self._sizes, self._whole, self._wanted = sizes, whole, wanted
        self._bits, self._plot_bits = bits, plot_bits
        self._is_clear = is_clear
        #: Choices of whole plots first, then those with most values.
        self._order = sorted(range(len(sizes)), key=lambda choice: (
            not whole[choice], -sizes[choice]))
        self._tried = 0
        self._best: dict[int, tuple[int, ...]] | None = None
        self._least_cost: int | None = None

    def run(self) -> tuple[tuple[int, ...], ...] | None:
        """Return the columns of each choice, None if there are none."""
        self._extend({}, {}, 0)
        best = self._best
        return None if best is None else tuple(
            best[choice] for choice in range(len(self._sizes)))

    def _extend(self, chosen: dict[int, tuple[int, ...]],
                sums: dict[int, list[_Pair]], cost: int) -> None:
        """Choose the columns of the next choice.

        :param sums: vector -> the pairs of choices whose interaction it is
        """
        if self._least_cost is not None and cost >= self._least_cost:
            return
        if len(chosen) == len(self._sizes):
            self._best, self._least_cost = chosen, cost
            return
        choice = self._order[len(chosen)]
        mains = {vector for columns in chosen.values()
                 for vector in _span(columns)}
        found = []
        for columns in self._candidates(choice, mains):
            self._tried += 1
            added = self._add(choice, columns, chosen, mains, sums)
            if added is not None:
                found.append((*added, columns))
        for more, new, columns in sorted(found, key=lambda each: each[0]):
            if self._tried > _TRIED and self._best is not None:
                return
            if self._tried > 5 * _TRIED:
                return
            merged = {vector: sums.get(vector, []) + new.get(vector, [])
                      for vector in sums.keys() | new.keys()}
            self._extend({**chosen, choice: columns}, merged, cost + more)

    def _candidates(self, choice: int,
                    mains: set[int]) -> Iterator[tuple[int, ...]]:
        """Yield columns, of new dimensions only the first: all are alike."""
        first, end = ((1, 1 << self._plot_bits) if self._whole[choice]
                      else (1 << self._plot_bits, 1 << self._bits))
        used = max(mains, default=0).bit_length()
        for column in range(first, min(end, max(1 << used, first) + 1)):
            if self._sizes[choice] == 2:
                yield (column,)
                continue
            used_too = max(used, column.bit_length())
            for other in range(first, min(end, (1 << used_too) + 1)):
                # The sum is a column too: count each set of three once.
                if first <= column ^ other > other > column:
                    yield (column, other)

    def _add(self, choice: int, columns: tuple[int, ...],
             chosen: Mapping[int, tuple[int, ...]], mains: set[int],
             sums: Mapping[int, list[_Pair]],
             ) -> tuple[int, dict[int, list[_Pair]]] | None:
        """Return the cost and the interactions of columns, None if unsound."""
        own = _span(columns)
        if not mains.isdisjoint(own) or (
                self._is_clear and not sums.keys().isdisjoint(own)):
            return None
        cost, new = 0, dict[int, list[_Pair]]()
        for other, its in chosen.items():
            pair = (min(choice, other), max(choice, other))
            is_wanted = pair in self._wanted
            for vector in _add(own, _span(its)):
                if vector in mains and (self._is_clear or is_wanted):
                    return None
                if vector >> self._plot_bits == 0 and not (
                        self._whole[choice] and self._whole[other]):
                    if is_wanted:
                        return None
                    cost += 1
                for rival in sums.get(vector, []) + new.get(vector, []):
                    wants = is_wanted + (rival in self._wanted)
                    if wants == 2:
                        return None
                    cost += _WANTED if wants else 1
                new.setdefault(vector, []).append(pair)
        return cost, new


def _span(columns: tuple[int, ...]) -> tuple[int, ...]:
    return (columns if len(columns) == 1
            else (*columns, columns[0] ^ columns[1]))


def _add(first: tuple[int, ...], second: tuple[int, ...]) -> set[int]:
    return {one ^ other for one in first for other in second}

# SPDX-License-Identifier: Apache-2.0

"""Choose which configurations are measured, several choices at once.

A replicate is a fractional factorial design: 2^k runs are numbered by vectors
of k bits. A choice of two values has one vector as its column: its value in a
run is the parity of the bits that the column and the run have in common. A
choice of three or four values has two columns, and the sum (exclusive or) of
both. The interaction of two choices looks like the sum of their columns; if
several interactions have the same sum, they are confounded.

The columns of choices that need a reboot are among the first vectors, which
form a subspace. All runs with the same low bits then have the same values of
these choices: they are a *whole plot*, which needs one reboot.
"""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.tune import model

#: Logarithms to base 2 of the smallest and largest number of trials.
_MIN_BITS, _MAX_BITS = 2, 6

_Columns = tuple[int, ...]
#: Two choices, in ascending order.
_Pair = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Design:
    """The configurations of one replicate.

    :ivar columns: choice -> its one or three columns
    :ivar plot_bits: logarithm to base 2 of the number of whole plots
    :ivar levels: the configuration of each run
    """

    columns: Mapping[int, _Columns]
    plot_bits: int
    levels: tuple[model.Levels, ...]

    @property
    def plots(self) -> tuple[tuple[model.Levels, ...], ...]:
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
        """Return the other pairs whose interaction looks like this one."""
        own = _add(self.columns, *pair)
        return tuple(
            other for other in itertools.combinations(sorted(self.columns), 2)
            if other != pair and own & _add(self.columns, *other))


def make(space: model.Space) -> Design:
    """Make the smallest design that confounds no value with an interaction.

    :raises InvalidInput: if that needs more than 64 trials
    """
    return _make(tuple(len(choice.values) for choice in space.choices),
                 tuple(choice.has_reboot for choice in space.choices))


@functools.lru_cache(maxsize=256)
def _make(sizes: tuple[int, ...], whole: tuple[bool, ...]) -> Design:
    for bits in range(_MIN_BITS, _MAX_BITS + 1):
        for plot_bits, has_few in itertools.product(
                range(1, bits + all(whole)) if any(whole) else (0,),
                (True, False)):
            columns = _find_columns(sizes, whole, bits, plot_bits, has_few)
            if columns is not None:
                return Design(columns, plot_bits, tuple(
                    tuple(_find_level(columns[choice], run, size)
                          for choice, size in enumerate(sizes))
                    for run in range(1 << bits)))
    raise exception.InvalidInput(
        'choices', f'{len(sizes)} choices with {sum(sizes)} values cannot be '
        f'told from each other in {1 << _MAX_BITS} trials; vary some of them '
        'in an experiment of their own')


def _find_level(columns: _Columns, run: int, values: int) -> int:
    """Find a level; the fourth of a choice of three is today's again."""
    level = sum(((column & run).bit_count() & 1) << place
                for place, column in enumerate(columns[:2]))
    return level if level < values else 0


def _find_columns(sizes: tuple[int, ...], whole: tuple[bool, ...], bits: int,
                  plot_bits: int, has_few: bool) -> dict[int, _Columns] | None:
    """Choose columns, first for whole plots, then for most values.

    :param has_few: for each choice take the columns with the fewest aliases;
        otherwise the first ones, which leave place for more choices
    """
    chosen: dict[int, _Columns] = {}
    for choice in sorted(range(len(sizes)), key=lambda each: (
            not whole[each], -sizes[each])):
        mains = {*itertools.chain(*chosen.values())}
        sums = collections.Counter(itertools.chain.from_iterable(
            _add(chosen, *pair) for pair in itertools.combinations(chosen, 2)))
        own = (range(1, 1 << plot_bits) if whole[choice]
               else range(1 << plot_bits, 1 << bits))
        candidates: list[_Columns] = (
            [(one,) for one in own] if sizes[choice] == 2 else
            [(one, other, one ^ other) for one, other
             in itertools.combinations(own, 2) if other < one ^ other])
        clear: list[tuple[int, _Columns]] = []
        for columns in candidates:
            new = [one ^ other
                   for one, other in itertools.product(columns, mains)]
            if (mains.isdisjoint([*columns, *new])
                    and sums.keys().isdisjoint(columns)):
                aliases = 0
                if has_few:
                    aliases = sum(sums[vector] for vector in new)
                clear.append((aliases, columns))
        if not clear:
            return None
        chosen[choice] = min(clear)[1]
    return chosen


def _add(columns: Mapping[int, _Columns], *choices: int) -> set[int]:
    """Return the vectors of one choice, or of an interaction of two."""
    vectors = {0}
    for choice in choices:
        vectors = {vector ^ own for vector, own
                   in itertools.product(vectors, columns[choice])}
    return vectors

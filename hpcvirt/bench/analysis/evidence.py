# SPDX-License-Identifier: Apache-2.0

"""Find samples that are no evidence: copies, and figures of a coarse clock."""

import collections
import decimal
import itertools
import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats

#: If this number of samples are equal, more often than by chance, they are
#: copies of a few outputs.
_COPIES_BEYOND_CHANCE = 3
#: Figures that are all equal to more than this precision are copies.
_COPIED_PRECISION = 1e-3
#: If fewer than this part of the figures are distinct, they are coarse.
_DISTINCT_PART = 0.75


def copies(native: Sequence[float], guest: Sequence[float]) -> str | None:
    """Say why the figures are copies and not measurements; None if not.

    :param native: at least two figures, above 0
    """
    if (tuple(native) == tuple(guest)
            and len(set(native)) >= _DISTINCT_PART * len(native)):
        return 'both sides have the same figures: copies, or the same outputs'
    for name, figures in (('native', native), ('guest', guest)):
        equal = sum(count * (count - 1) // 2
                    for count in collections.Counter(figures).values())
        if not equal:
            continue
        precision = _printed_step(figures)
        spread = statistics.pstdev(math.log(figure) for figure in figures)
        if spread <= stats.EQUAL:
            is_copied = precision < _COPIED_PRECISION
        else:
            pairs = math.comb(len(figures), 2)
            expected = pairs * min(1.0, precision / (
                2 * math.sqrt(math.pi) * spread))
            is_copied = equal > _COPIES_BEYOND_CHANCE * (1 + expected)
        if is_copied:
            return (f'{len(figures)} {name} figures have only '
                    f'{len(set(figures))} different values: copies of outputs')
    return None


def step(native: Sequence[float], guest: Sequence[float]) -> float:
    """Find how finely figures are measured, from the figures themselves.

    A clock of 10 ms gives runs of 0.2 s only two or three different times.
    They may be equal where the guest is slower by almost a step.

    :returns: the smallest difference that shows, as a loss; 0 if figures vary
        by more than that, so that rounding averages out
    """
    figures = (*native, *guest)
    if len(set(figures)) >= _DISTINCT_PART * len(figures):
        return 0.0
    gaps = [math.log(upper / lower) for side in (native, guest)
            for lower, upper in itertools.pairwise(sorted(set(side)))]
    found = max(_printed_step(figures), min(gaps, default=0.0))
    spread = min(statistics.stdev(math.log(figure) for figure in side)
                 for side in (native, guest))
    return 0.0 if spread > found else found


def _printed_step(figures: Sequence[float]) -> float:
    """The last decimal of the figures, as a loss."""
    exponent = min(0, *(
        int(decimal.Decimal(repr(figure)).normalize().as_tuple().exponent)
        for figure in figures))
    return math.log1p(10.0 ** exponent / statistics.median(figures))

# SPDX-License-Identifier: Apache-2.0

"""Detect samples that are no evidence: copies, and too coarse figures."""

import collections
import decimal
import itertools
import math
import statistics
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import record

#: More equal pairs of samples than this many times the number expected by
#: chance are copies of a few outputs.
_COPIES_BEYOND_CHANCE = 3
#: Figures that are all equal are copies if they are printed more precisely
#: than this.
_COPIED_PRECISION = 1e-3
#: Samples whose figures, all together, are printed more precisely than this
#: and are equal, are copies even if their outputs differ.
_COPIED_TOGETHER = 1e-8
#: An output of at most this length may contain only a figure and its name.
_SHORT_BYTES = 500
#: Gaps between figures show the step of a clock if they are multiples of the
#: smallest gap up to this fraction of it.
_CLOCK_ERROR = 0.03
#: Figures are coarse if a smaller fraction of them is distinct.
_DISTINCT_PART = 0.75

#: The figures of a sample by name, and its longest output.
_Row = tuple[Mapping[str, float], record.RawOutput | None]


def copies(run: record.Run, metric: str,
           values: sample_pairs.MetricValues) -> str | None:
    """Return why the figures are copies and not measurements, None if not.

    Measured figures of few digits repeat as well, above all on a machine with
    a few levels, such as two states of its turbo. But then other figures
    differ from them by one or two steps of the last digit, and the samples
    differ in their other figures and outputs. Copies are equal in everything.
    Long outputs that are equal count even if close figures exist.

    :param values: the values of the metric, at least two on each side
    """
    if (values.native == values.guest and
            len(set(values.native)) >= _DISTINCT_PART * len(values.native)):
        return 'both sides have the same figures: copies, or the same outputs'
    for side, figures in ((record.Side.NATIVE, values.native),
                          (record.Side.GUEST, values.guest)):
        repeated = sum(math.comb(count, 2) for count
                       in collections.Counter(figures).values())
        if repeated > _COPIES_BEYOND_CHANCE and _are_copies(
                list(_rows(run, side, metric, values.pairs)), metric):
            return (f'{len(figures)} {side} figures have only '
                    f'{len(set(figures))} different values: copies of '
                    'outputs, or a clock that is too coarse')
    return None


def _rows(run: record.Run, side: record.Side, metric: str,
          pairs: Sequence[int]) -> Iterator[_Row]:
    names = sample_pairs.metrics(run)
    for sample in run.samples:
        if (sample.side is side and not sample.warm_up and not sample.control
                and metric in names and (not pairs or sample.pair in pairs)):
            yield ({name: sample.outcome.metrics[name].value
                    for name in names}, max(
                        sample.outputs, default=None,
                        key=lambda output: output.size_bytes))


def _are_copies(rows: Sequence[_Row], metric: str) -> bool:
    """Return whether samples are equal more often than by chance."""
    figures = [row[0][metric] for row in rows]
    names = tuple(rows[0][0])
    columns = [[row[0][name] for row in rows] for name in names]
    together = math.prod(map(_printed_step, columns))
    # The smallest difference between two values of each figure.
    steps = zip(*map(_steps, columns), strict=True)
    equal = near = 0
    for ((one, output), step), ((other, other_output), other_step) in (
            itertools.combinations(zip(rows, steps, strict=True), 2)):
        if one == other:
            # The outputs of earlier attempts are not known.
            equal += (output is None or other_output is None
                      or output.sha256 == other_output.sha256
                      or together < _COPIED_TOGETHER)
        elif output is None or output.size_bytes <= _SHORT_BYTES:
            near += all(
                abs(one[name] - other[name]) < 2.5 * max(last_digits)
                for name, *last_digits in zip(names, step, other_step,
                                              strict=True))
    precision = _printed_step(figures)
    spread = statistics.pstdev(map(math.log, figures))
    pairs = math.comb(len(figures), 2)
    if spread <= stats.EQUAL:
        expected = 0.0 if precision < _COPIED_PRECISION else pairs
    else:
        expected = pairs * min(1.0, precision / (
            2 * math.sqrt(math.pi) * spread))
    return equal > _COPIES_BEYOND_CHANCE * (1 + expected + 2 * near)


def step(native: Sequence[float], guest: Sequence[float]) -> float:
    """Find the resolution of figures from the figures themselves.

    With a clock of 10 ms, runs of 0.2 s have only two or three distinct times.
    They may be equal although the guest is slower by almost one step.

    :returns: the smallest difference that can be seen, as a loss; 0 if figures
        vary by more, so that rounding averages out
    """
    figures = (*native, *guest)
    if len(set(figures)) >= _DISTINCT_PART * len(figures):
        return 0.0
    gaps: list[float] = []
    for side in (native, guest):
        gaps += [math.log(upper / lower)
                 for lower, upper in itertools.pairwise(sorted(set(side)))]
    found = max(_printed_step(figures), min(gaps, default=0.0))
    spread = min(statistics.stdev(math.log(figure) for figure in side)
                 for side in (native, guest))
    return 0.0 if spread > found else found


def _printed_step(figures: Sequence[float]) -> float:
    """Return the last decimal of the figures, as a loss."""
    return math.log1p(10.0 ** min(map(_exponent, figures))
                      / statistics.median(figures))


def _steps(figures: Sequence[float]) -> list[float]:
    """Return the last digit of each figure, or the step of a coarse clock.

    All figures have the same number of digits or of decimals. If a clock is
    coarse, the figures, or their inverses, differ by whole steps.
    """
    for power in (1, -1):
        gaps = [after - before for before, after in itertools.pairwise(
            sorted({figure ** power for figure in figures}))]
        if len(gaps) > 1 and all(
                abs(gap / min(gaps) - round(gap / min(gaps))) < _CLOCK_ERROR
                for gap in gaps):
            return [min(gaps) * figure ** (1 - power) for figure in figures]
    exponents = [*map(_exponent, figures)]
    sizes = [math.floor(math.log10(figure)) for figure in figures]
    digits = max(size - exponent
                 for size, exponent in zip(sizes, exponents, strict=True))
    return [10.0 ** max(min(exponents), size - digits) for size in sizes]


def _exponent(figure: float) -> int:
    return min(0, int(
        decimal.Decimal(repr(figure)).normalize().as_tuple().exponent))

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

"""Find the runs from which on a figure is another one.

Every look at a growing history is a chance for a false alarm, so each must be
rarely wrong. A look compares the runs before and after each moment, and with a
line, for a figure that changes little by little. If the best of these explains
the history far better than a single level, the figure has changed, and the
search goes on after the change. This is the t statistic of the change-point
model of [Hawkins-2003], with two differences:

* A run counts at most as far from the median as a few times the noise: a
  straggler, even a few of them, cannot look like another level.
* A figure that resembles the one before it wanders by itself. How much it does
  is estimated, upwards, and so many runs count as one.

The error rates are in docs/source/benchmarks.rst.
"""

import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats

#: A level is known after so many runs.
LEAST_RUNS = 5
#: The chance of a false alarm at one look, if runs are independent. It was
#: chosen by simulation: over a hundred looks, also at runs that resemble each
#: other, it stays below 5 %.
_ALPHA = 2e-5
#: So many standard deviations at most does a run count.
_CLIP = 4.0
#: Differences within half a per cent are noise, whatever they look like.
_LEAST_NOISE = 0.005
#: From the median absolute deviation of the steps between runs to the standard
#: deviation of runs.
_NOISE = 1.4826 / math.sqrt(2)
#: The correlation of runs in a row is underestimated by about (3 + 4r) / n,
#: and known up to about 1 / sqrt(n).
_BIAS = (3.0, 4.0)
_LARGEST_CORRELATION = 0.9


@dataclasses.dataclass(frozen=True, slots=True)
class _Fit:
    """What explains some runs best: two levels, or a line.

    :ivar split: number of runs before the other level
    :ivar part: how much of the variance is explained, 0 to 1
    :ivar correlation: of a run and the one before it
    """

    split: int
    part: float
    correlation: float


def changes(values: Sequence[float]) -> tuple[int, ...]:
    """Find the first run after each change.

    :param values: logarithms of the figures, in the order of the runs
    """
    found = []
    begin = 0
    for end in range(1, len(values) + 1):
        split = _split(tuple(values[begin:end]))
        if split is not None:
            begin += split
            found.append(begin)
    return tuple(found)


# A look at a history repeats the looks before it.
@functools.lru_cache(maxsize=1024)
def _split(values: tuple[float, ...]) -> int | None:
    """Find the change in all runs but those before the last change."""
    count = len(values)
    if count < 2 * LEAST_RUNS:
        return None
    fit = _best_fit(values)
    as_one = (1 + fit.correlation) / (1 - fit.correlation)
    statistic = math.sqrt(fit.part / max(1 - fit.part, 1e-9)
                          * (count - 2) / as_one)
    # No t distribution has a lighter tail than the normal one.
    if statistics.NormalDist().cdf(-statistic) > _ALPHA:
        return None
    chance = stats.Normal(-statistic, 1.0, max((count - 2) / as_one, 1.0))
    return fit.split if chance.p_beyond(0.0) <= _ALPHA else None


def _best_fit(values: Sequence[float]) -> _Fit:
    """Compare two levels and a line."""
    middle = statistics.median(values)
    most = _CLIP * _noise(values)
    near = [_clip(value - middle, most) for value in values]
    mean = statistics.fmean(near)
    near = [value - mean for value in near]
    total = sum(value * value for value in near)
    count = len(values)
    sums = list(itertools.accumulate(near))
    split = max(range(LEAST_RUNS, count - LEAST_RUNS + 1), key=lambda size: (
        sums[size - 1] ** 2 / (size * (count - size))))
    if total <= stats.EQUAL:
        return _Fit(split, 0.0, 0.0)
    levels = [sums[split - 1] / split] * split + [
        -sums[split - 1] / (count - split)] * (count - split)
    line = [_clip(value - middle, most) for value in _line(values)]
    off = statistics.fmean(line)
    parts, correlations = [], []
    for fit in (levels, [value - off for value in line]):
        left = [value - expected
                for value, expected in zip(near, fit, strict=True)]
        rest = sum(value * value for value in left)
        parts.append(1 - rest / total)
        correlations.append(0.0 if rest <= stats.EQUAL else sum(
            value * following for value, following
            in itertools.pairwise(left)) / rest)
    found = min(correlations)
    found += (_BIAS[0] + _BIAS[1] * found) / count + 1 / math.sqrt(count)
    return _Fit(split, max(parts),
                min(max(found, 0.0), _LARGEST_CORRELATION))


def _noise(values: Sequence[float]) -> float:
    """Estimate the noise from the steps between runs.

    Changes hardly affect them.
    """
    steps = [after - before for before, after in itertools.pairwise(values)]
    typical = statistics.median(steps)
    return max(_LEAST_NOISE, _NOISE * statistics.median(
        abs(step - typical) for step in steps))


def _clip(value: float, most: float) -> float:
    return max(-most, min(value, most))


def _line(values: Sequence[float]) -> list[float]:
    """Draw Tukey's line through the medians of the first and last third."""
    count = len(values)
    third = count // 3
    slope = (statistics.median(values[-third:])
             - statistics.median(values[:third])) / (count - third)
    begin = statistics.median(value - slope * run
                              for run, value in enumerate(values))
    return [begin + slope * run for run in range(count)]

# SPDX-License-Identifier: Apache-2.0

"""Compare a host with its own past and with the other hosts.

This is continuous benchmarking: weeks of tests before a change went into
production did not show that a small part of the jobs would be ten times
slower afterwards, on hosts that looked healthy [CERN-HEPiX-2015]. So figures
are collected host by host and over time, and fixed rules name those that
stand out: sudden changes, slow declines, and hosts behind the others.

Every look at a growing history is a chance for a false alarm, so each must be
rarely wrong. A look compares the runs before and after each moment, and with a
line, for a figure that changes little by little. If the best of these explains
the history far better than a single level, the figure has changed, and the
search goes on after the change. This is the t statistic of the change-point
model of [Hawkins-2003], with two differences:

* A run counts at most as far from the median as a few times the noise: a
  straggler, even a few of them, cannot look like another level.
* A figure that resembles the one before it drifts by itself. The number of
  runs that tell no more than one is estimated, upwards, and they count as one.

The error rates are in doc/source/reference/history-rates.rst.
"""

import dataclasses
import functools
import itertools
import math
import operator
import statistics
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

#: The number of runs after which a level is known.
MIN_RUNS = 5
#: The chance of a false alarm at one look, if runs are independent. It was
#: chosen by simulation: over a hundred looks, also at runs that resemble each
#: other, it stays below 5 %.
_CHANGE_ALPHA = 2e-5
#: A run counts at most this number of standard deviations.
_CLIP = 4.0
#: Differences within half a per cent are noise, whatever they look like.
_MIN_NOISE = 0.005
#: The correlation of runs in a row is known up to about 1 / sqrt(n), and
#: underestimated by (a + b r) / n: the best of all levels and lines has been
#: taken away from the runs. These figures were chosen by simulation, for
#: correlations up to 0.9 (benchmarks/history.py).
_BIAS = (7.0, 4.0)
_LARGEST_CORRELATION = 0.98


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
    if count < 2 * MIN_RUNS:
        return None
    split, part, correlation = _best_fit(values)
    as_one = (1 + correlation) / (1 - correlation)
    statistic = math.sqrt(part / max(1 - part, 1e-12) * (count - 2) / as_one)
    chance = stats.Normal(-statistic, 1.0, max((count - 2) / as_one, 1.0))
    # No t distribution has a lighter tail than the normal one.
    return split if (
        statistics.NormalDist().cdf(-statistic) <= _CHANGE_ALPHA
        and chance.p_beyond(0.0) <= _CHANGE_ALPHA) else None


def _best_fit(values: Sequence[float]) -> tuple[int, float, float]:
    """Find whether two levels or a line explain some runs best.

    :returns: the number of runs before the other level, how much of the
        variance is explained, 0 to 1, and the correlation of a run and the one
        before it
    """
    middle = statistics.median(values)
    # Changes hardly affect the steps between runs.
    most = _CLIP * max(_MIN_NOISE, stats.robust_deviation([
        *map(operator.sub, values[1:], values)]) / math.sqrt(2))
    near, line = ([max(-most, min(value - middle, most)) for value in side]
                  for side in (values, _line(values)))
    mean = statistics.fmean(near)
    near = [value - mean for value in near]
    total = sum(value * value for value in near)
    count = len(values)
    sums = list(itertools.accumulate(near))
    split = max(range(MIN_RUNS, count - MIN_RUNS + 1), key=lambda size: (
        sums[size - 1] ** 2 / (size * (count - size))))
    if total <= stats.EQUAL:
        return split, 0.0, 0.0
    levels = [sums[split - 1] / split] * split + [
        -sums[split - 1] / (count - split)] * (count - split)
    off = statistics.fmean(line)
    parts, correlations = [], []
    for fit in (levels, [value - off for value in line]):
        left = [value - expected
                for value, expected in zip(near, fit, strict=True)]
        rest = sum(value * value for value in left)
        parts.append(1 - rest / total)
        correlations.append(0.0 if rest <= stats.EQUAL else sum(
            map(operator.mul, left, left[1:])) / rest)
    found = min(correlations)
    found += (_BIAS[0] + _BIAS[1] * found) / count + 1 / math.sqrt(count)
    return split, max(parts), min(max(found, 0.0), _LARGEST_CORRELATION)


def _line(values: Sequence[float]) -> list[float]:
    """Draw Tukey's line through the medians of the first and last third."""
    count = len(values)
    third = count // 3
    slope = (statistics.median(values[-third:])
             - statistics.median(values[:third])) / (count - third)
    begin = statistics.median(value - slope * run
                              for run, value in enumerate(values))
    return [begin + slope * run for run in range(count)]


#: A smaller change is never reported: the figures of a healthy host repeat
#: within 1 to 3 per cent, and the score of a whole host within 4.5 (357 +/-
#: 16 HS06 in [CERN-HEPiX-2015]).
MIN_CHANGE = 0.05
#: With fewer hosts, none is behind.
MIN_HOSTS = 3
#: The chance that one of several equal hosts looks behind, at one look. Looks
#: at growing histories are alike: over all of them it stays below 5 %.
_ALPHA = 0.01


@dataclasses.dataclass(frozen=True, slots=True)
class FigureKey:
    """Identifies figures that can be compared over time on one host."""

    host: str
    label: str
    metric: str
    side: record.Side
    parameters: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class TimeSeries:
    """A figure of one host over time.

    :ivar times: ISO 8601, ascending
    :ivar values: geometric means of the samples of each run
    :ivar drift: loss of the present level against the first one (0.1 is 10 %
        worse); None if the figure did not change, or is near the first level
        again
    :ivar changed_at: when the first level ended; None if there is no drift
    :ivar behind: loss of the present level against that of the other hosts;
        None if it does not stand out
    """

    key: FigureKey
    unit: str
    direction: outcome.Direction
    times: tuple[str, ...]
    values: tuple[float, ...]
    drift: float | None = None
    changed_at: str | None = None
    behind: float | None = None


@dataclasses.dataclass(frozen=True)
class _Level:
    """What a figure of a host is like since its last change.

    :ivar loss: median of the logarithms, more is worse
    :ivar error: standard error of it
    """

    loss: float
    error: float


def time_series(results: Iterable[record.Result]) -> tuple[TimeSeries, ...]:
    """Group all figures by host.

    :returns: in the order of label, metric, side, host; without warm-ups and
        samples that failed their own check
    """
    points: dict[FigureKey, dict[str, list[outcome.Metric]]] = {}
    for run in itertools.chain.from_iterable(
            result.runs for result in results):
        for sample in run.samples:
            if sample.warm_up or not sample.outcome.valid:
                continue
            for name, metric in sample.outcome.metrics.items():
                key = FigureKey(run.host, run.label, name, sample.side,
                                tuple(sorted(run.parameters.items())))
                points.setdefault(key, {}).setdefault(
                    run.started_at, []).append(metric)
    series: list[TimeSeries] = []
    levels: dict[FigureKey, dict[str, _Level]] = {}
    for key in sorted(points, key=lambda key: (
            key.label, key.metric, key.side, key.host)):
        found, level = _of_host(key, points[key])
        series.append(found)
        if level is not None:
            levels.setdefault(_of_all_hosts(key), {})[key.host] = level
    return tuple(
        dataclasses.replace(each, behind=_behind(
            each.key.host, levels.get(_of_all_hosts(each.key), {})))
        for each in series)


def _of_host(key: FigureKey, points: dict[str, list[outcome.Metric]],
             ) -> tuple[TimeSeries, _Level | None]:
    """Make the series of a host, and its present level if that is known."""
    times = tuple(sorted(points))
    values = tuple(statistics.geometric_mean(
        metric.value for metric in points[time]) for time in times)
    metric = points[times[-1]][-1]
    losses = [stats.loss_of_ratio(value, metric.direction)
              for value in values]
    starts = changes(losses)
    present = losses[starts[-1]:] if starts else losses
    level = None
    if len(present) >= MIN_RUNS:
        level = _Level(
            statistics.median(present),
            stats.robust_deviation(present) / math.sqrt(len(present)))
    found = TimeSeries(key, metric.unit, metric.direction, times, values)
    if starts:
        drift = math.expm1(statistics.median(present)
                           - statistics.median(losses[:starts[0]]))
        if abs(drift) >= MIN_CHANGE:
            found = dataclasses.replace(found, drift=drift,
                                        changed_at=times[starts[0]])
    return found, level


def _of_all_hosts(key: FigureKey) -> FigureKey:
    return dataclasses.replace(key, host='')


def _behind(host: str, levels: Mapping[str, _Level]) -> float | None:
    """Compare a level with what the others let expect of another host.

    :param levels: of one figure, by host
    """
    others = [level for other, level in levels.items() if other != host]
    if host not in levels or len(others) < MIN_HOSTS - 1:
        return None
    losses = [level.loss for level in others]
    loss = levels[host].loss - statistics.fmean(losses)
    if math.expm1(loss) < MIN_CHANGE:
        return None
    # Two hosts may be alike by chance.
    spread = max(statistics.stdev(losses), levels[host].error,
                 *(level.error for level in others))
    expected = stats.Normal(loss, spread * math.sqrt(1 + 1 / len(losses)),
                            len(losses) - 1)
    return (math.expm1(loss) if expected.p_within(0.0)
            < _ALPHA / (len(losses) + 1) else None)

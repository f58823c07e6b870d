# SPDX-License-Identifier: Apache-2.0

"""Compare a host with its own past and with the other hosts.

This is continuous benchmarking. At one site, weeks of tests before a change
did not show that a small part of the jobs would be ten times slower in
production, on hosts that looked healthy [CERN-HEPiX-2015]. Therefore figures
are collected for each host over time, and fixed rules report sudden changes,
slow declines, and hosts behind the others.

Every look at a growing history is a chance for a false alarm, so each look
must rarely be wrong. A look compares the runs before each moment with those
after it, and all runs with a line, for gradual changes. If the best of these
explains the history far better than a single level does, the figure has
changed, and the search continues after the change. This is the t statistic of
the change-point model of [Hawkins-2003], with two differences:

* The distance of a run from the median is limited to a few times the noise, so
  that a few stragglers cannot look like another level.
* Correlated figures drift by themselves. The number of runs with the
  information of one is estimated conservatively, and they count as one.

The error rates are in benchmarks/README.rst.
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
#: chosen by simulation: over a hundred looks, the chance stays below 5 %, even
#: if runs are correlated.
_CHANGE_ALPHA = 2e-5
#: The distance of a run is limited to this number of standard deviations.
_CLIP = 4.0
#: Differences within half a percent are always noise.
_MIN_NOISE = 0.005
#: The correlation of successive runs is known up to about 1 / sqrt(n), and
#: underestimated by (a + b r) / n, because the best of all levels and lines
#: has been subtracted. These figures were chosen by simulation for
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


# A look at a history repeats all earlier looks.
@functools.lru_cache(maxsize=1024)
def _split(values: tuple[float, ...]) -> int | None:
    """Find a change in the runs since the last change, None if none."""
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
    """Fit two levels and a line to runs.

    :returns: the number of runs before the other level, the explained part of
        the variance, and the correlation of successive runs
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
#: within 1 to 3 percent, and the score of a whole host within 4.5 percent (357
#: +/- 16 HS06 in [CERN-HEPiX-2015]).
MIN_CHANGE = 0.05
#: With fewer hosts, no host is reported as behind: one of three would have to
#: be behind by more than 100 standard deviations of the other two.
MIN_HOSTS = 4
#: The chance that one of several equal hosts looks behind at one look. Looks
#: at a growing history are correlated: over all of them, it is below 5 %.
_ALPHA = 0.01


@dataclasses.dataclass(frozen=True, slots=True)
class FigureKey:
    """What figures of one host must share to be compared over time.

    :ivar program: what the user named, without the folder, which may change
        with its version
    """

    host: str
    label: str
    metric: str
    side: record.Side
    parameters: tuple[tuple[str, str], ...]
    program: str = ''


@dataclasses.dataclass(frozen=True)
class TimeSeries:
    """A figure of one host over time.

    :ivar times: when the runs started, ISO 8601, ascending
    :ivar values: geometric means of the samples of each run
    :ivar drift: loss of the present level against the first one (0.1 is 10 %
        worse); None if the figure did not change, or has returned to the first
        level
    :ivar changed_at: when the first level ended, None if there is no drift
    :ivar behind: loss of the present level against that of the other hosts,
        None if it is not reported
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
    """The level of a figure of a host since its last change.

    :ivar loss: median of the losses
    :ivar error: standard error of the median
    """

    loss: float
    error: float


def time_series(results: Iterable[record.Result]) -> tuple[TimeSeries, ...]:
    """Make the series of each figure of each host.

    Warm-ups and samples that failed their own check are left out.

    :returns: the series, sorted by label, metric, side and host
    """
    points: dict[FigureKey, dict[str, list[outcome.Metric]]] = {}
    for run in itertools.chain.from_iterable(
            result.runs for result in results):
        for sample in run.samples:
            if sample.warm_up or not sample.outcome.valid:
                continue
            for name, metric in sample.outcome.metrics.items():
                key = FigureKey(run.host, run.label, name, sample.side,
                                tuple(sorted(run.parameters.items())),
                                run.program)
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
    """Make the series of a host and its present level, None if unknown."""
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
    """Return how far a host is behind the others, None if it is not.

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

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

"""Compare a host with its own past and with the other hosts.

This is continuous benchmarking: weeks of tests before a change went into
production did not show that a small part of the jobs would be ten times
slower afterwards, on hosts that looked healthy [CERN-HEPiX-2015]. So figures
are collected host by host and over time, and fixed rules name those that
stand out: sudden changes, slow declines, and hosts behind the others. The
rules may be applied after every run (see :mod:`.changes`).
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt.bench.analysis import changes
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

#: A smaller change is never reported: the figures of a healthy host repeat
#: within 1 to 3 per cent, and the score of a whole host within 4.5 (357 +/-
#: 16 HS06 in [CERN-HEPiX-2015]).
LEAST_CHANGE = 0.05
#: With fewer hosts, none is behind.
LEAST_HOSTS = 3
#: The chance that one of several equal hosts looks behind, at one look. Looks
#: at growing histories are alike: over all of them it stays below 5 %.
_ALPHA = 0.01


@dataclasses.dataclass(frozen=True, slots=True)
class FigureKey:
    """Identifies figures that can be compared over time on one host."""

    host: str
    label: str
    metric: str
    arm: record.Arm
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

    :returns: in the order of label, metric, arm, host; without warm-ups and
        samples that failed their own check
    """
    points: dict[FigureKey, dict[str, list[float]]] = {}
    metrics: dict[FigureKey, outcome.Metric] = {}
    for result in results:
        for run in result.runs:
            for sample in run.samples:
                if sample.warm_up or not sample.outcome.valid:
                    continue
                for name, metric in sample.outcome.metrics.items():
                    key = FigureKey(run.host, run.label, name, sample.arm,
                                    tuple(sorted(run.parameters.items())))
                    metrics[key] = metric
                    points.setdefault(key, {}).setdefault(
                        run.started_at, []).append(metric.value)
    series: dict[FigureKey, TimeSeries] = {}
    levels: dict[FigureKey, dict[str, _Level]] = {}
    for key, metric in metrics.items():
        series[key], level = _of_host(key, metric, points[key])
        if level is not None:
            levels.setdefault(_of_all_hosts(key), {})[key.host] = level
    return tuple(
        dataclasses.replace(series[key], behind=_behind(
            key.host, levels.get(_of_all_hosts(key), {})))
        for key in sorted(series, key=lambda key: (
            key.label, key.metric, key.arm, key.host)))


def _of_host(key: FigureKey, metric: outcome.Metric,
             points: dict[str, list[float]],
             ) -> tuple[TimeSeries, _Level | None]:
    """Make the series of a host, and its present level if that is known."""
    times = tuple(sorted(points))
    values = tuple(statistics.geometric_mean(points[time]) for time in times)
    losses = [stats.loss_of_ratio(value, metric.direction)
              for value in values]
    starts = changes.changes(losses)
    present = losses[starts[-1]:] if starts else losses
    level = None
    if len(present) >= changes.LEAST_RUNS:
        level = _Level(
            statistics.median(present),
            stats.robust_deviation(present) / math.sqrt(len(present)))
    found = TimeSeries(key, metric.unit, metric.direction, times, values)
    if starts:
        drift = math.expm1(statistics.median(present)
                           - statistics.median(losses[:starts[0]]))
        if abs(drift) >= LEAST_CHANGE:
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
    if host not in levels or len(others) < LEAST_HOSTS - 1:
        return None
    losses = [level.loss for level in others]
    loss = levels[host].loss - statistics.fmean(losses)
    if math.expm1(loss) < LEAST_CHANGE:
        return None
    # Two hosts may be alike by chance.
    spread = max(statistics.stdev(losses), levels[host].error,
                 *(level.error for level in others))
    expected = stats.Normal(loss, spread * math.sqrt(1 + 1 / len(losses)),
                            len(losses) - 1)
    p_equal = 1 - expected.p_beyond(0.0)
    return math.expm1(loss) if p_equal < _ALPHA / (len(losses) + 1) else None

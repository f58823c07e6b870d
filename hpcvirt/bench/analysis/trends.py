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
stand out.
"""

import dataclasses
import statistics
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

#: A smaller change is never reported: the figures of a healthy host repeat
#: within 1 to 3 per cent, and the score of a whole host within 4.5 (357 +/-
#: 16 HS06 in [CERN-HEPiX-2015]).
LEAST_CHANGE = 0.05
#: A change must exceed this many robust standard deviations of the figures
#: that it is compared with.
DEVIATIONS = 3.0
#: With fewer earlier figures, or fewer hosts, nothing is reported.
LEAST_EARLIER = 3
LEAST_HOSTS = 3


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
    :ivar drift: change of the last value from the median of the earlier
        ones, as a loss (0.1 is 10 % worse); None if it does not stand out
    :ivar behind: loss of the median against that of the other hosts; None if
        it does not stand out
    """

    key: FigureKey
    unit: str
    direction: outcome.Direction
    times: tuple[str, ...]
    values: tuple[float, ...]
    drift: float | None = None
    behind: float | None = None


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
    series = [_of_host(key, metrics[key], points[key]) for key in points]
    return tuple(
        dataclasses.replace(one_host, behind=_behind(one_host, series))
        for one_host in sorted(series, key=lambda one_host: (
            one_host.key.label, one_host.key.metric, one_host.key.arm,
            one_host.key.host)))


def loss(value: float, reference: float,
         direction: outcome.Direction) -> float:
    """How much worse a value is than a reference, as a fraction."""
    worse = reference / value if direction is outcome.Direction.UP else (
        value / reference)
    return worse - 1


def _of_host(key: FigureKey, metric: outcome.Metric,
             points: dict[str, list[float]]) -> TimeSeries:
    times = tuple(sorted(points))
    values = tuple(statistics.geometric_mean(points[time]) for time in times)
    return TimeSeries(key, metric.unit, metric.direction, times, values,
                      drift=_drift(values, metric.direction))


def _drift(values: Sequence[float],
           direction: outcome.Direction) -> float | None:
    *earlier, last = values
    if len(earlier) < LEAST_EARLIER:
        return None
    change = loss(last, statistics.median(earlier), direction)
    return change if _stands_out(change, last, earlier) else None


def _behind(one_host: TimeSeries,
            series: Iterable[TimeSeries]) -> float | None:
    key = one_host.key
    others = [statistics.median(other.values) for other in series
              if other.key != key
              and dataclasses.replace(other.key, host=key.host) == key]
    if len(others) < LEAST_HOSTS - 1:
        return None
    value = statistics.median(one_host.values)
    change = loss(value, statistics.median(others), one_host.direction)
    if change <= 0 or not _stands_out(change, value, others):
        return None
    return change


def _stands_out(change: float, value: float,
                others: Sequence[float]) -> bool:
    return (abs(change) >= LEAST_CHANGE
            and abs(value - statistics.median(others))
            > DEVIATIONS * stats.robust_deviation(others))

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

"""Hosts over time: one card for each figure of a host."""

import dataclasses
import itertools
import statistics
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import trends
from hpcvirt.bench.model import record
from hpcvirt.bench.report import charts
from hpcvirt.bench.report import text


def cards(results: Sequence[record.Result]) -> list[dict[str, Any]]:
    """Return a card for each figure that has a bound or an alarm.

    A figure over message sizes has one card, of the mean of all sizes.
    """
    bounded = {(run.label, metric) for result in results
               for run in result.runs for metric in run.bounds}
    groups: dict[trends.FigureKey, list[trends.TimeSeries]] = {}
    for series in trends.time_series(results):
        key = series.key
        if (key.label, key.metric) in bounded or _alarm(series):
            name, _ = bounds.split(key.metric)
            groups.setdefault(dataclasses.replace(key, metric=name),
                              []).append(series)
    found = [_card(key, group) for key, group in groups.items()]
    return sorted(found, key=lambda card: (
        not card['alarm'], card['label'], card['metric'], card['arm'],
        card['host']))


def _card(key: trends.FigureKey,
          group: Sequence[trends.TimeSeries]) -> dict[str, Any]:
    alarms = [alarm for series in group if (alarm := _alarm(series))]
    alarm = alarms[0] if alarms else ''
    if alarms and len(group) > 1:
        alarm = f'{len(alarms)} of {len(group)} message sizes: {alarm}'
    times, values = _mean(group)
    return {
        'host': key.host, 'label': key.label, 'metric': key.metric,
        'arm': key.arm.value, 'unit': group[0].unit, 'points': len(values),
        'mean': f'mean of {len(group)} message sizes' if len(group) > 1
        else '', 'last': text.figure(values[-1]), 'time': times[-1][:10],
        'alarm': alarm, 'chart': charts.history(times, values, bool(alarm))}


def _mean(group: Iterable[trends.TimeSeries],
          ) -> tuple[list[str], list[float]]:
    """Return the geometric mean of all series at each time."""
    points = sorted(point for series in group for point in zip(
        series.times, series.values, strict=True))
    means = {time: statistics.geometric_mean(value for _, value in values)
             for time, values in itertools.groupby(
                 points, key=lambda point: point[0])}
    return list(means), list(means.values())


def _alarm(series: trends.TimeSeries) -> str:
    alarms = []
    if series.drift is not None:
        worse = 'worse' if series.drift > 0 else 'better'
        alarms.append(f'{abs(series.drift):.1%} {worse} than before '
                      f'{str(series.changed_at)[:10]}')
    if series.behind is not None:
        alarms.append(f'{series.behind:.1%} behind the other hosts')
    return ', '.join(alarms)

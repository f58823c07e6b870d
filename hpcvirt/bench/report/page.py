# SPDX-License-Identifier: Apache-2.0

"""Write results as one self-contained HTML page."""

import dataclasses
import itertools
import math
import statistics
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from hpcvirt.bench.analysis import trends
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import record
from hpcvirt.bench.report import charts
from hpcvirt.bench.report import curves
from hpcvirt.bench.report import study
from hpcvirt.bench.report import summary
from hpcvirt.bench.report import text
from hpcvirt.page import templates


def make_cards(results: Sequence[record.Result]) -> list[dict[str, Any]]:
    """Return a card for each figure that has a bound or an alarm.

    A figure over message sizes has one card, with the mean over all sizes.
    """
    bounded: set[tuple[str, str]] = set()
    for result in results:
        for run in result.runs:
            bounded.update((run.label, metric) for metric in run.bounds)
    groups: dict[trends.FigureKey, list[trends.TimeSeries]] = {}
    for series in trends.time_series(results):
        key = series.key
        if (key.label, key.metric) in bounded or _alarm(series):
            name, _ = metric_definition.split(key.metric)
            groups.setdefault(dataclasses.replace(key, metric=name),
                              []).append(series)
    found = [_card(key, group) for key, group in groups.items()]
    return sorted(found, key=lambda card: (
        not card['alarm'], card['label'], card['metric'], card['side'],
        card['host']))


def _card(key: trends.FigureKey,
          group: Sequence[trends.TimeSeries]) -> dict[str, Any]:
    alarms = [alarm for series in group if (alarm := _alarm(series))]
    alarm = alarms[0] if alarms else ''
    if alarms and len(group) > 1:
        alarm = f'{len(alarms)} of {len(group)} message sizes: {alarm}'
    times, values = _mean(group)
    return {
        'host': key.host, 'metric': key.metric,
        'label': ' '.join(filter(None, (key.label, key.program))),
        'side': key.side.value, 'unit': group[0].unit, 'points': len(values),
        'mean': f'mean of {len(group)} message sizes' if len(group) > 1
        else '', 'last': text.figure(values[-1]), 'time': times[-1][:10],
        'alarm': alarm, 'chart': charts.history(times, values, bool(alarm))}


def _mean(group: Iterable[trends.TimeSeries],
          ) -> tuple[list[str], list[float]]:
    """Return the geometric mean of all series at each time."""
    points: list[tuple[str, float]] = []
    for series in group:
        points += zip(series.times, series.values, strict=True)
    points.sort()
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


#: If more results than this passed, their lines in the summary are folded.
MAX_PASSED = 10
#: If more cards than this have no alarm, they are folded.
MAX_CARDS = 24


def page(shown: Sequence[summary.Shown], title: str) -> str:
    """Return the page: the summary, then the results, the newest first."""
    environment = templates.environment('hpcvirt.bench.report')
    newest = sorted(shown, key=lambda each: each.started_at, reverse=True)
    software = newest[0].result.software if newest else {}
    lines = summary.lines(shown)
    last = [line for line in lines if not line.continued]
    passed = [line for line in last if line.word == 'PASS']
    folded = passed if len(passed) > MAX_PASSED else []
    cards = make_cards([each.result for each in shown])
    html: str = environment.get_template('report.html.j2').render(
        title=title, marks=MARKS, minute=summary.minute,
        software=', '.join(f'{name} {version}'
                           for name, version in sorted(software.items())),
        count=summary.count(lines),
        selection=summary.describe_selection(lines),
        not_judged=summary.NOT_JUDGED,
        summary=[line for line in last if line not in folded],
        passed=folded,
        continued=[line for line in lines if line.continued],
        results=[_result(each) for each in newest],
        studies=study.studies([each.result for each in shown]),
        least=f'{trends.MIN_CHANGE:.0%}', cards=cards,
        alarms=[card for card in cards if card['alarm']],
        most_cards=MAX_CARDS)
    return html + '\n'


#: Marks tell verdicts apart for readers who cannot tell the colours.
MARKS = {'PASS': '✓', 'FAIL': '✗', 'INCONCLUSIVE': '?', 'INVALID': '!'}


def _result(shown: summary.Shown) -> dict[str, Any]:
    result = shown.result
    judgements = text.select_judgements(result)
    # Figures without a bound may vary widely, so they do not set the scale.
    ends: list[float] = []
    for judged in judgements:
        if judged.interval and judged.limit:
            ends += (judged.interval.low, judged.interval.high)
    span = charts.span_of(ends)
    known = text.find_default_bounds(result)
    labels: dict[str, list[judgement.Judgement]] = {}
    for judged in judgements:
        labels.setdefault(judged.label, []).append(judged)
    return {
        'shown': shown,
        'scope': result.verdict.scope if result.verdict else '',
        'named': verdict.name_result(result.verdict) if result.verdict else '',
        'differences': result.verdict.differences if result.verdict else (),
        'groups': {label: make_rows(group, known, span)
                   for label, group in labels.items()},
        'scale': f'{1 / span:.2g} … 1 … {span:.3g}',
        'notes': text.notes(judgements),
        'sides': text.sides(result),
        'unpaired': [_unpaired(run) for run in result.runs
                     if run.purpose is record.Purpose.UNPAIRED],
        'sources': [f'{names}: {source}' for names, source in text.sources(
            (metric, bound) for (_, metric), bound in known.items())],
    }


def _unpaired(run: record.Run) -> dict[str, Any]:
    sized: dict[str, list[dict[str, Any]]] = {}
    for name, found in text.list_samples(run).items():
        metrics = [metric for metric in found if metric is not None]
        logs = [math.log(metric.value) for metric in metrics]
        spread = statistics.stdev(logs) if len(logs) > 1 else None
        base, size = metric_definition.split(name)
        mean = math.exp(statistics.fmean(logs))
        sized.setdefault(base, []).append({
            'metric': name, 'unit': metrics[0].unit, 'count': len(metrics),
            'value': mean, 'mean': text.figure(mean),
            'size': size, 'cv': '-' if spread is None else f'{spread:.1%}'})
    rows: list[dict[str, Any]] = []
    drawn: list[dict[str, Any]] = []
    for base, group in sized.items():
        if len(group) == 1:
            rows += group
        else:
            drawn.append(_unpaired_curve(base, group))
    return {'label': run.label, 'rows': rows, 'curves': drawn}


def _unpaired_curve(name: str, group: list[dict[str, Any]]) -> dict[str, Any]:
    group = sorted(group, key=lambda row: int(row['size']))
    return {'name': name, 'unit': group[0]['unit'], 'rows': group,
            'drawing': curves.draw(
                [curves.Point(row['size'], None, row['value'])
                 for row in group], f'{name}, {group[0]["unit"]}')}


_WORST = (judgement.VerdictResult.INVALID, judgement.VerdictResult.FAIL,
          judgement.VerdictResult.INCONCLUSIVE, judgement.VerdictResult.PASS)


def make_rows(judgements: Sequence[judgement.Judgement],
              known: text.DefaultBounds,
              span: float) -> dict[str, Any]:
    """Return the rows of a table, and a curve for each figure over sizes.

    :param judgements: judgements on one run
    :param known: the default bounds
    :param span: scale of the drawings; see :func:`charts.interval`
    """
    rows: list[dict[str, Any]] = []
    drawn = []
    sized: dict[str, list[judgement.Judgement]] = {}
    for judged in judgements:
        name, size = metric_definition.split(judged.metric)
        sized.setdefault(name if size is not None else judged.metric,
                         []).append(judged)
    for name, found in sized.items():
        if len(found) == 1:
            rows.append(row(found[0], known, span))
            continue
        group = sorted(found, key=_size)
        rows += [_range(name, each, known, span)
                 for each in _ranges(group, known)]
        drawn.append(curve(name, group, known))
    return {'rows': rows, 'curves': drawn}


def row(judged: judgement.Judgement, known: text.DefaultBounds,
        span: float) -> dict[str, Any]:
    """Return the row of one figure."""
    bound = known.get((judged.label, judged.metric))
    chart = ''
    if judged.interval is not None:
        chart = charts.interval(judged.interval, span, judged.limit,
                                text.find_published_ratio(bound))
    return {
        'metric': judged.metric, 'unit': judged.unit,
        'native': text.figure(judged.native),
        'guest': text.figure(judged.guest),
        'ratio': text.interval(judged.interval), 'bound': text.bound(judged),
        'published': text.write_published(bound), 'chart': chart,
        'word': '' if judged.result is None else judged.result.value,
        'sizes': '', 'part': '', 'worst': '',
    }


def curve(name: str, group: Sequence[judgement.Judgement],
          known: text.DefaultBounds) -> dict[str, Any]:
    """Return the drawing of a figure over message sizes, and a row per size.

    :param group: in ascending order of size
    """
    points = []
    for judged in group:
        bound = known.get((judged.label, judged.metric))
        points.append(curves.Point(
            _size(judged), judged.native, judged.guest, judged.interval,
            text.find_published_ratio(bound), judged.limit))
    measured = any(point.native or point.guest for point in points)
    return {'name': name, 'unit': group[0].unit,
            'drawing': curves.draw(points, f'{name}, {group[0].unit}')
            if measured else '',
            'rows': [{**row(judged, known, 1.25),
                      'size': curves.size_text(_size(judged))}
                     for judged in group]}


def _ranges(group: Iterable[judgement.Judgement],
            known: text.DefaultBounds) -> list[list[judgement.Judgement]]:
    """Split the sizes where their bounds change."""
    found: list[list[judgement.Judgement]] = []
    before: object = None
    for judged in group:
        bound = known.get((judged.label, judged.metric))
        here = (judged.limit, text.write_published(bound))
        if not found or here != before:
            found.append([])
        found[-1].append(judged)
        before = here
    return found


def _range(name: str, group: Sequence[judgement.Judgement],
           known: text.DefaultBounds, span: float) -> dict[str, Any]:
    """Return the row of a range of sizes: that of the size with most loss."""
    words = [judged.result for judged in group]
    word = next((word for word in _WORST if word in words), None)
    worst = max((judged for judged in group if judged.result is word),
                key=summary.slowdown)
    found = row(worst, known, span)
    sizes = [curves.size_text(_size(judged)) for judged in group]
    count = words.count(word)
    found['metric'] = name
    found['sizes'] = (f'{sizes[0]} to {sizes[-1]}' if len(sizes) > 1
                      else sizes[0])
    if word and count < len(group):
        found['part'] = f'{count} of {len(group)} sizes'
    if len(group) > 1 and worst.interval:
        found['worst'] = f'worst: {curves.size_text(_size(worst))}'
    return found


def _size(judged: judgement.Judgement) -> int:
    return metric_definition.split(judged.metric)[1] or 0

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

"""Results as one HTML page that needs no other file."""

import dataclasses
import importlib.resources
import math
import statistics
from collections.abc import Sequence
from typing import Any

import jinja2
import markupsafe

from hpcvirt import printable
from hpcvirt.bench.analysis import trends
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.report import charts
from hpcvirt.bench.report import published
from hpcvirt.bench.report import study
from hpcvirt.bench.report import text


@dataclasses.dataclass(frozen=True)
class Shown:
    """One judged result on the page.

    :ivar finished: False while samples are missing
    """

    result: record.Result
    started_at: str
    finished: bool


def page(shown: Sequence[Shown], title: str) -> str:
    """Write the page, with the newest result first."""
    folder = importlib.resources.files('hpcvirt.bench.report')
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined,
        finalize=_printable)
    template = environment.from_string(
        (folder / 'report.html.j2').read_text(encoding='utf-8'))
    newest = sorted(shown, key=lambda each: each.started_at, reverse=True)
    software = newest[0].result.software if newest else {}
    html: str = template.render(
        title=title, words=[word.value for word in judgement.Word],
        software=', '.join(f'{name} {version}'
                           for name, version in sorted(software.items())),
        results=[_result(each) for each in newest],
        studies=study.studies([each.result for each in shown]),
        least=f'{trends.LEAST_CHANGE:.0%}',
        hosts=_hosts([each.result for each in shown]))
    return html + '\n'


def _printable(value: object) -> object:
    """Escape what reorders or hides text in a browser."""
    if isinstance(value, str) and not isinstance(value, markupsafe.Markup):
        return printable.escaped(value)
    return value


def _result(shown: Shown) -> dict[str, Any]:
    result = shown.result
    judgements = text.shown(result)
    # Figures without a bound may vary widely; they do not set the scale.
    span = charts.span_of([
        end for judged in judgements if judged.interval and judged.limit
        for end in (judged.interval.low, judged.interval.high)])
    known = published.of_result(result)
    groups: dict[str, list[dict[str, Any]]] = {}
    for judged in judgements:
        groups.setdefault(judged.label, []).append(
            _row(judged, known.get((judged.label, judged.metric)), span))
    verdict = result.verdict
    unpaired = [run for run in result.runs
                if run.purpose is record.Purpose.UNPAIRED]
    no_verdict = len(unpaired) == len(result.runs)
    return {
        'started_at': shown.started_at[:16].replace('T', ' '),
        'finished': shown.finished,
        'host': ', '.join(dict.fromkeys(run.host for run in result.runs)),
        'word': '' if no_verdict or verdict is None else verdict.word.value,
        'reason': None if no_verdict or verdict is None else verdict.reason,
        'groups': groups,
        'scale': f'{1 / span:.2g} … 1 … {span:.2g}',
        'arms': text.arms(result),
        'unpaired': [_unpaired(run) for run in unpaired],
        'sources': [f'{names} {source}' for names, source in text.sources(
            (metric, bound) for (_, metric), bound in known.items())],
    }


def _row(judged: judgement.Judgement, bound: judgement.Bound | None,
         span: float) -> dict[str, Any]:
    chart = ''
    if judged.interval is not None:
        # Only numbers go into the drawing: there is nothing to escape.
        chart = markupsafe.Markup(charts.interval(  # noqa: S704
            judged.interval.ratio, judged.interval.low,
            judged.interval.high, span, judged.limit,
            published.ratio(bound)))
    notes = [note for note in (judged.reason, *judged.remarks) if note]
    return {
        'metric': judged.metric, 'unit': judged.unit,
        'native': text.figure(judged.native),
        'guest': text.figure(judged.guest),
        'ratio': text.ratio(judged), 'bound': text.bound(judged),
        'published': published.word(bound),
        'source': published.source(bound) if bound else '',
        'chart': chart, 'why': '; '.join(notes),
        'word': '' if judged.word is None else judged.word.value,
    }


def _unpaired(run: record.Run) -> dict[str, Any]:
    samples = [sample for sample in run.samples
               if not sample.warm_up and sample.outcome.valid]
    names = dict.fromkeys(name for sample in samples
                          for name in sample.outcome.metrics)
    rows = []
    for name in names:
        metrics = [sample.outcome.metrics[name] for sample in samples
                   if name in sample.outcome.metrics]
        logs = [math.log(metric.value) for metric in metrics]
        spread = statistics.stdev(logs) if len(logs) > 1 else None
        rows.append({
            'metric': name, 'unit': metrics[0].unit, 'count': len(metrics),
            'mean': text.figure(math.exp(statistics.fmean(logs))),
            'cv': '-' if spread is None else f'{spread:.1%}'})
    return {'label': run.label, 'rows': rows}


def _hosts(results: Sequence[record.Result]) -> list[dict[str, Any]]:
    """Return a card for each figure that has a bound or an alarm."""
    bounded = {(run.label, metric) for result in results
               for run in result.runs for metric in run.bounds}
    cards = []
    for series in trends.time_series(results):
        key = series.key
        alarms = []
        if series.drift is not None:
            worse = 'worse' if series.drift > 0 else 'better'
            alarms.append(f'{abs(series.drift):.1%} {worse} than before')
        if series.behind is not None:
            alarms.append(f'{series.behind:.1%} behind the other hosts')
        if (key.label, key.metric) in bounded or alarms:
            cards.append({
                'host': key.host, 'label': key.label, 'metric': key.metric,
                'arm': key.arm.value, 'unit': series.unit,
                'last': text.figure(series.values[-1]),
                'alarm': ', '.join(alarms),
                'chart': markupsafe.Markup(charts.history(  # noqa: S704
                    series.values, bool(alarms)))})
    return sorted(cards, key=lambda card: (not card['alarm'], card['label'],
                                           card['metric'], card['host']))

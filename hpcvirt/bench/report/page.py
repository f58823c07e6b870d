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

"""Results as one page that needs no network: HTML with everything inside."""

import dataclasses
import importlib.resources
import math
import statistics
from collections.abc import Sequence
from typing import Any

import jinja2
import markupsafe

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import trends
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.report import charts
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
    """Make the page, the newest result first.

    :param shown: judged results
    """
    folder = importlib.resources.files('hpcvirt.bench.report')
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(
        (folder / 'report.html.j2').read_text(encoding='utf-8'))
    newest = sorted(shown, key=lambda one: one.started_at, reverse=True)
    software = newest[0].result.software if newest else {}
    text: str = template.render(
        title=title, words=[word.value for word in judgement.Word],
        software=', '.join(f'{name} {version}'
                           for name, version in sorted(software.items())),
        results=[_result(one) for one in newest],
        studies=study.studies([one.result for one in shown]),
        least=f'{trends.LEAST_CHANGE:.0%}',
        hosts=_hosts([one.result for one in shown]))
    return text + '\n'


def _result(one: Shown) -> dict[str, Any]:
    result = one.result
    judgements = text.shown(result)
    # What is not judged may be as wild as it likes: it sets no scale.
    span = charts.span_of([
        end for made in judgements if made.interval and made.limit
        for end in (made.interval.low, made.interval.high)])
    known = {(run.label, metric): bound for run in result.runs
             for metric, bound in bounds.of_run(run).items()}
    groups: dict[str, list[dict[str, Any]]] = {}
    for made in judgements:
        groups.setdefault(made.label, []).append(
            _row(made, known.get((made.label, made.metric)), span))
    verdict = result.verdict
    unpaired = [run for run in result.runs
                if run.purpose is record.Purpose.UNPAIRED]
    alone = len(unpaired) == len(result.runs)
    return {
        'started_at': one.started_at[:16].replace('T', ' '),
        'finished': one.finished,
        'host': ', '.join(dict.fromkeys(run.host for run in result.runs)),
        'word': '' if alone or verdict is None else verdict.word.value,
        'reason': None if alone or verdict is None else verdict.reason,
        'groups': groups,
        'scale': f'{1 / span:.2g} … 1 … {span:.2g}',
        'arms': text.arms(result),
        'unpaired': [_alone(run) for run in unpaired],
        'sources': [f'{names} {text}' for names, text in text.sources(
            (metric, bound) for (_, metric), bound in known.items())],
    }


def _row(made: judgement.Judgement, bound: judgement.Bound | None,
         span: float) -> dict[str, Any]:
    chart = ''
    if made.interval is not None:
        # Numbers alone go into the drawing: nothing to escape.
        chart = markupsafe.Markup(charts.interval(  # noqa: S704
            made.interval.ratio, made.interval.low, made.interval.high, span,
            made.limit, bound.ratio if bound else None))
    said = [text for text in (made.reason, *made.remarks)
            if text and text != 'no bound']
    return {
        'metric': made.metric, 'unit': made.unit,
        'native': text.figure(made.native),
        'guest': text.figure(made.guest),
        'ratio': text.ratio(made), 'bound': text.bound(made),
        'published': f'{bound.ratio:.3f}' if bound else '-',
        'source': bound.source if bound else '',
        'chart': chart, 'why': '; '.join(said),
        'word': '' if made.reason == 'no bound' else made.word.value,
    }


def _alone(run: record.Run) -> dict[str, Any]:
    samples = [sample for sample in run.samples
               if not sample.warm_up and sample.outcome.valid]
    names = dict.fromkeys(name for sample in samples
                          for name in sample.outcome.metrics)
    rows = []
    for name in names:
        found = [sample.outcome.metrics[name] for sample in samples
                 if name in sample.outcome.metrics]
        logs = [math.log(metric.value) for metric in found]
        spread = statistics.stdev(logs) if len(logs) > 1 else None
        rows.append({
            'metric': name, 'unit': found[0].unit, 'count': len(found),
            'mean': text.figure(math.exp(statistics.fmean(logs))),
            'cv': '-' if spread is None else f'{spread:.1%}'})
    return {'label': run.label, 'rows': rows}


def _hosts(results: Sequence[record.Result]) -> list[dict[str, Any]]:
    """A card for each figure that has a bound, or that stands out."""
    bounded = {(run.label, metric) for result in results
               for run in result.runs for metric in run.bounds}
    cards = []
    for one in trends.time_series(results):
        key = one.key
        alarms = []
        if one.drift is not None:
            worse = 'worse' if one.drift > 0 else 'better'
            alarms.append(f'{abs(one.drift):.1%} {worse} than before')
        if one.behind is not None:
            alarms.append(f'{one.behind:.1%} behind the other hosts')
        if (key.label, key.metric) in bounded or alarms:
            cards.append({
                'host': key.host, 'label': key.label, 'metric': key.metric,
                'arm': key.arm.value, 'unit': one.unit,
                'last': text.figure(one.values[-1]),
                'alarm': ', '.join(alarms),
                'chart': markupsafe.Markup(charts.history(  # noqa: S704
                    one.values, bool(alarms)))})
    return sorted(cards, key=lambda card: (not card['alarm'], card['label'],
                                           card['metric'], card['host']))

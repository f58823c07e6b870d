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

import math
import statistics
from collections.abc import Sequence
from typing import Any

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import trends
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.report import charts
from hpcvirt.bench.report import curves
from hpcvirt.bench.report import history
from hpcvirt.bench.report import published
from hpcvirt.bench.report import rows
from hpcvirt.bench.report import study
from hpcvirt.bench.report import subject
from hpcvirt.bench.report import summary
from hpcvirt.bench.report import templates
from hpcvirt.bench.report import text

#: More lines of the summary than this are folded away, where all passed.
MOST_PASSED = 10
#: So many hosts that do not stand out are shown; more are folded away.
MOST_CARDS = 24


def page(shown: Sequence[summary.Shown], title: str) -> str:
    """Write the page: the summary, then the results, the newest first."""
    environment = templates.environment()
    newest = sorted(shown, key=lambda each: each.started_at, reverse=True)
    software = newest[0].result.software if newest else {}
    lines = summary.lines(shown)
    last = [line for line in lines if not line.continued]
    passed = [line for line in last if line.word == 'PASS']
    folded = passed if len(passed) > MOST_PASSED else []
    cards = history.cards([each.result for each in shown])
    html: str = environment.get_template('report.html.j2').render(
        title=title, marks=MARKS, minute=summary.minute,
        software=', '.join(f'{name} {version}'
                           for name, version in sorted(software.items())),
        count=summary.count(lines), not_judged=summary.NOT_JUDGED,
        states=summary.states,
        summary=[line for line in last if line not in folded],
        passed=folded,
        continued=[line for line in lines if line.continued],
        results=[_result(each) for each in newest],
        studies=study.studies([each.result for each in shown]),
        least=f'{trends.LEAST_CHANGE:.0%}', cards=cards,
        alarms=[card for card in cards if card['alarm']],
        most_cards=MOST_CARDS)
    return html + '\n'


#: Colours are not the only difference between verdicts.
MARKS = {'PASS': '✓', 'FAIL': '✗', 'INCONCLUSIVE': '?', 'INVALID': '!'}


def _result(shown: summary.Shown) -> dict[str, Any]:
    result = shown.result
    judgements = text.shown(result)
    # Figures without a bound may vary widely; they do not set the scale.
    span = charts.span_of([
        end for judged in judgements if judged.interval and judged.limit
        for end in (judged.interval.low, judged.interval.high)])
    known = published.of_result(result)
    labels: dict[str, list[judgement.Judgement]] = {}
    for judged in judgements:
        labels.setdefault(judged.label, []).append(judged)
    return {
        'id': shown.id, 'started_at': shown.started_at,
        'finished': shown.finished, 'subject': subject.of_result(result),
        'word': summary.word(result),
        'scope': result.verdict.scope if result.verdict else '',
        'differences': result.verdict.differences if result.verdict else (),
        'groups': {label: rows.of_run(group, known, span)
                   for label, group in labels.items()},
        'scale': f'{1 / span:.2g} … 1 … {span:.3g}',
        'notes': text.notes(judgements),
        'attempt': summary.attempt(result),
        'steps': next(line.steps for line in summary.lines([shown])),
        'arms': text.arms(result),
        'unpaired': [_unpaired(run) for run in result.runs
                     if run.purpose is record.Purpose.UNPAIRED],
        'sources': [f'{names}: {source}' for names, source in text.sources(
            (metric, bound) for (_, metric), bound in known.items())],
    }


def _unpaired(run: record.Run) -> dict[str, Any]:
    samples = [sample for sample in run.samples
               if not sample.warm_up and sample.outcome.valid]
    names = dict.fromkeys(name for sample in samples
                          for name in sample.outcome.metrics)
    sized: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        metrics = [sample.outcome.metrics[name] for sample in samples
                   if name in sample.outcome.metrics]
        logs = [math.log(metric.value) for metric in metrics]
        spread = statistics.stdev(logs) if len(logs) > 1 else None
        base, size = bounds.split(name)
        mean = math.exp(statistics.fmean(logs))
        sized.setdefault(base, []).append({
            'metric': name, 'unit': metrics[0].unit, 'count': len(metrics),
            'value': mean, 'mean': text.figure(mean),
            'size': size, 'cv': '-' if spread is None else f'{spread:.1%}'})
    return {
        'label': run.label,
        'rows': [row for group in sized.values() if len(group) == 1
                 for row in group],
        'curves': [_unpaired_curve(base, group)
                   for base, group in sized.items() if len(group) > 1]}


def _unpaired_curve(name: str, group: list[dict[str, Any]]) -> dict[str, Any]:
    group = sorted(group, key=lambda row: int(row['size']))
    return {'name': name, 'unit': group[0]['unit'], 'rows': group,
            'drawing': curves.draw(
                [curves.Point(row['size'], None, row['value'])
                 for row in group], f'{name}, {group[0]["unit"]}')}

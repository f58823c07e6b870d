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

"""The studies that a site ran again, for the page."""

from collections.abc import Sequence
from typing import Any

import markupsafe

from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.report import charts
from hpcvirt.bench.report import text
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import study


def studies(results: Sequence[record.Result]) -> list[dict[str, Any]]:
    """Return the section of every study of which a case was run."""
    runs = [run for result in results for run in result.runs]
    return [_study(study_, comparison.compare(study_, runs))
            for study_ in study_catalogue.studies()
            if any(run.study == study_.id for run in runs)]


def _study(study_: study.Study,
           comparisons: Sequence[comparison.Comparison]) -> dict[str, Any]:
    span = charts.span_of(
        [end for each in comparisons for result in each.results
         if result.interval
         for end in (result.interval.low, result.interval.high)]
        + [each.row.ratio for each in comparisons if each.row])
    return {'id': study_.id, 'title': study_.title,
            'document': study_.document,
            'scale': f'{1 / span:.2g} … 1 … {span:.2g}',
            'rows': [_row(each, span) for each in comparisons]}


def _row(compared: comparison.Comparison, span: float) -> dict[str, Any]:
    row = compared.row
    native, guest, ratio = row.figures if row else ('-', '-', '-')
    return {'case': compared.case.id,
            'title': row.title if row else 'no figure', 'native': native,
            'guest': guest, 'ratio': ratio,
            'place': row.place if row else '',
            'unit': row.unit if row and row.guest is not None else '',
            'better': (_better(row.direction) if row
                       else 'not in the document'),
            'results': [_result(result, row, span)
                        for result in compared.results]}


def _result(result: comparison.SiteResult, row: study.Row | None,
            span: float) -> dict[str, Any]:
    chart, published = '', row.ratio if row else None
    if result.interval is not None:
        # Only numbers go into the drawings: there is nothing to escape.
        chart = markupsafe.Markup(charts.interval(  # noqa: S704
            result.interval.ratio, result.interval.low, result.interval.high,
            span, None, published))
    benchmark = result.benchmark + (', a stand-in' if result.stand_in else '')
    return {'host': result.host, 'native': text.figure(result.native),
            'guest': text.figure(result.guest),
            'unit': '' if result.guest is None else result.unit,
            'ratio': text.interval(result.interval), 'chart': chart,
            'pairs': result.pairs,
            'why': '; '.join(filter(None, (result.reason, *result.unmet))),
            'with': f'{benchmark} {result.shape}'.rstrip(),
            'curve': _curve(result, published),
            'components': [_component(each) for each in result.components]}


def _component(component: comparison.Component) -> dict[str, Any]:
    return {'name': component.name, 'native': text.figure(component.native),
            'guest': text.figure(component.guest), 'unit': component.unit,
            'ratio': text.interval(component.interval),
            'better': _better(component.direction)}


def _better(direction: outcome.Direction) -> str:
    return f'{text.BETTER[direction]} is better'


def _curve(result: comparison.SiteResult, published: float | None) -> str:
    """Draw the ratio over the message size, if sizes were measured."""
    points = sorted(
        (each.size_bytes, each.interval.ratio, each.interval.low,
         each.interval.high) for each in result.components
        if each.size_bytes is not None and each.interval is not None)
    if len(points) < 2:
        return ''
    return markupsafe.Markup(charts.curve(points, published))  # noqa: S704

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

"""The studies that a site reran, for the page: published figures and ours."""

from collections.abc import Sequence
from typing import Any

import markupsafe

from hpcvirt.bench.model import record
from hpcvirt.bench.report import charts
from hpcvirt.bench.report import text
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import study

_BETTER = {'up': 'more is better', 'down': 'less is better'}


def studies(results: Sequence[record.Result]) -> list[dict[str, Any]]:
    """Every study of which something was run."""
    runs = [run for result in results for run in result.runs]
    return [_study(made, comparison.compare(made, runs))
            for made in study_catalogue.every()
            if any(run.study == made.id for run in runs)]


def _study(made: study.Study,
           found: Sequence[comparison.Beside]) -> dict[str, Any]:
    span = charts.span_of(
        [end for one in found for own in one.own if own.interval
         for end in (own.interval.low, own.interval.high)]
        + [one.row.ratio for one in found if one.row])
    return {'id': made.id, 'title': made.title, 'document': made.document,
            'source': made.source,
            'scale': f'{1 / span:.2g} … 1 … {span:.2g}',
            'rows': [_row(one, span) for one in found]}


def _row(one: comparison.Beside, span: float) -> dict[str, Any]:
    row = one.row
    native, guest, ratio = row.figures if row else ('-', '-', '-')
    return {'case': one.case.id,
            'title': row.title if row else 'no figure', 'native': native,
            'guest': guest, 'ratio': ratio,
            'unit': row.unit if row and row.guest is not None else '',
            'better': _BETTER[row.direction] if row else 'not in the text',
            'own': [_own(own, row, span) for own in one.own]}


def _own(own: comparison.Own, row: study.Row | None,
         span: float) -> dict[str, Any]:
    chart, published = '', row.ratio if row else None
    if own.interval is not None:
        # Numbers alone go into the drawings: nothing to escape.
        chart = markupsafe.Markup(charts.interval(  # noqa: S704
            own.interval.ratio, own.interval.low, own.interval.high, span,
            None, published))
    with_what = own.benchmark + (', a stand-in' if own.stand_in else '')
    return {'host': own.host, 'native': text.figure(own.native),
            'guest': text.figure(own.guest),
            'unit': '' if own.guest is None else own.unit,
            'ratio': text.interval(own.interval), 'chart': chart,
            'pairs': own.pairs,
            'why': '; '.join(filter(None, (own.reason, *own.unmet))),
            'with': f'{with_what} {own.shape}'.rstrip(),
            'curve': _curve(own, published),
            'parts': [_part(part) for part in own.parts]}


def _part(part: comparison.Part) -> dict[str, Any]:
    return {'name': part.name, 'native': text.figure(part.native),
            'guest': text.figure(part.guest), 'unit': part.unit,
            'ratio': text.interval(part.interval),
            'better': _BETTER[part.direction]}


def _curve(own: comparison.Own, published: float | None) -> str:
    """The ratio over the message size, if that is what was measured."""
    points = sorted(
        (part.size_bytes, part.interval.ratio, part.interval.low,
         part.interval.high) for part in own.parts
        if part.size_bytes is not None and part.interval is not None)
    if len(points) < 2:
        return ''
    return markupsafe.Markup(charts.curve(points, published))  # noqa: S704

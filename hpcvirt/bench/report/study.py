# SPDX-License-Identifier: Apache-2.0

"""The studies that a site ran again, for the page."""

import collections
from collections.abc import Sequence
from typing import Any

import markupsafe

from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.report import charts
from hpcvirt.bench.report import curves
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
           comparisons: Sequence[comparison.SiteComparison]) -> dict[str, Any]:
    cases = collections.Counter(each.case.id for each in comparisons)
    drawn = [(_name(each, cases[each.case.id]),
              each.row.ratio if each.row else None,
              [result.interval for result in each.results if result.interval])
             for each in comparisons]
    drawn = [line for line in drawn if line[1] is not None or line[2]]
    return {'id': study_.id, 'title': study_.title,
            'document': study_.document, 'statements': study_.statements,
            'drawing': charts.study(drawn) if drawn else '',
            'rows': [_row(each) for each in comparisons if each.results],
            'not_run': [_row(each) for each in comparisons
                        if not each.results]}


def _name(compared: comparison.SiteComparison, figures: int) -> str:
    """Name a line of the drawing by its case, and one of several apart."""
    if figures == 1 or compared.row is None:
        return compared.case.id
    return f'{compared.case.id} {compared.row.title}'


def _row(compared: comparison.SiteComparison) -> dict[str, Any]:
    row = compared.row
    native, guest, ratio = row.figures if row else ('-', '-', '-')
    return {'case': compared.case.id,
            'title': row.title if row else 'no figure', 'native': native,
            'guest': guest, 'ratio': ratio,
            'place': row.place if row else '',
            'unit': row.unit if row and row.guest is not None else '',
            'better': (_better(row.direction) if row
                       else 'not in the document'),
            'results': [_result(result, row) for result in compared.results]}


def _result(result: comparison.SiteResult,
            row: study.PublishedComparison | None) -> dict[str, Any]:
    benchmark = result.benchmark + (', a stand-in' if result.stand_in else '')
    components = result.components
    sized = [each for each in components if each.size_bytes is not None]
    curve = ''
    if len(sized) > 1:
        curve = _curve(sized, row.ratio if row else None)
    return {'host': result.host, 'native': text.figure(result.native),
            'guest': text.figure(result.guest),
            'unit': '' if result.guest is None else result.unit,
            'ratio': text.interval(result.interval), 'pairs': result.pairs,
            'why': '; '.join(filter(None, (result.reason, *result.unmet))),
            'with': f'{benchmark} {result.shape}'.rstrip(), 'curve': curve,
            'components': [_component(each) for each in components]}


def _component(component: comparison.Component) -> dict[str, Any]:
    return {'name': component.name, 'native': text.figure(component.native),
            'guest': text.figure(component.guest), 'unit': component.unit,
            'ratio': text.interval(component.interval),
            'better': _better(component.direction)}


def _better(direction: outcome.Direction) -> str:
    return f'{text.BETTER[direction]} is better'


def _curve(sized: Sequence[comparison.Component],
           published: float | None) -> markupsafe.Markup:
    """Draw a figure over message sizes."""
    unit = sized[0].unit
    return curves.draw([curves.Point(
        each.size_bytes or 0, each.native, each.guest, each.interval,
        published) for each in sorted(
            sized, key=lambda each: each.size_bytes or 0)], unit)

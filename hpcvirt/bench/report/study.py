# SPDX-License-Identifier: Apache-2.0

"""Describe the studies that a site reproduced, for the page."""

import collections
from collections.abc import Sequence
from typing import Any

from hpcvirt.bench.model import record
from hpcvirt.bench.report import charts
from hpcvirt.bench.report import curves
from hpcvirt.bench.report import study_text
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import study


def studies(results: Sequence[record.Result]) -> list[dict[str, Any]]:
    """Return the section of each study with a case that was run."""
    runs: list[record.Run] = []
    for result in results:
        runs += result.runs
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
    """Name a line of the drawing: its case, and its figure if ambiguous."""
    if figures == 1 or compared.row is None:
        return compared.case.id
    return f'{compared.case.id} {compared.row.title}'


def _row(compared: comparison.SiteComparison) -> dict[str, Any]:
    """Describe a figure, with a curve if it is over message sizes."""
    row = study_text.describe_comparison(compared)
    published = compared.row.ratio if compared.row else None
    for shown, result in zip(row['results'], compared.results, strict=True):
        points = [curves.Point(each.size_bytes, each.native, each.guest,
                               each.interval, published)
                  for each in result.components if each.size_bytes is not None]
        points.sort(key=lambda point: point.size)
        shown['curve'] = '' if len(points) < 2 else curves.draw(
            points, result.components[0].unit)
    return row

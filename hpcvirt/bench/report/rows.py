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

"""The figures of a result, one table row each or one drawing over sizes."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.model import judgement
from hpcvirt.bench.report import charts
from hpcvirt.bench.report import curves
from hpcvirt.bench.report import published
from hpcvirt.bench.report import summary
from hpcvirt.bench.report import text

_WORST = (judgement.Word.INVALID, judgement.Word.FAIL,
          judgement.Word.INCONCLUSIVE, judgement.Word.PASS)


def of_run(judgements: Sequence[judgement.Judgement], known: published.Bounds,
           span: float) -> dict[str, Any]:
    """Return the rows of a table, and a curve for each figure over sizes.

    :param judgements: of one run
    :param known: the default bounds
    :param span: scale of the drawings in the table
    """
    rows: list[dict[str, Any]] = []
    drawn = []
    sized: dict[str, list[judgement.Judgement]] = {}
    for judged in judgements:
        name, size = bounds.split(judged.metric)
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


def row(judged: judgement.Judgement, known: published.Bounds,
        span: float) -> dict[str, Any]:
    """Return the row of one figure."""
    bound = known.get((judged.label, judged.metric))
    chart = ''
    if judged.interval is not None:
        chart = charts.interval(judged.interval, span, judged.limit,
                                published.ratio(bound))
    return {
        'metric': judged.metric, 'unit': judged.unit,
        'native': text.figure(judged.native),
        'guest': text.figure(judged.guest), 'ratio': text.ratio(judged),
        'bound': text.bound(judged),
        'published': published.word(bound), 'chart': chart,
        'word': '' if judged.word is None else judged.word.value,
        'sizes': '', 'part': '', 'worst': '',
    }


def curve(name: str, group: Sequence[judgement.Judgement],
          known: published.Bounds) -> dict[str, Any]:
    """Draw a figure over message sizes, with a row for each size.

    :param group: in ascending order of size
    """
    points = []
    for judged in group:
        bound = known.get((judged.label, judged.metric))
        points.append(curves.Point(
            _size(judged), judged.native, judged.guest, judged.interval,
            published.ratio(bound), judged.limit))
    measured = any(point.native or point.guest for point in points)
    return {'name': name, 'unit': group[0].unit,
            'drawing': curves.draw(points, f'{name}, {group[0].unit}')
            if measured else '',
            'rows': [{**row(judged, known, 1.25),
                      'size': curves.size_text(_size(judged))}
                     for judged in group]}


def _ranges(group: Iterable[judgement.Judgement],
            known: published.Bounds) -> list[list[judgement.Judgement]]:
    """Divide sizes where their bounds change."""
    found: list[list[judgement.Judgement]] = []
    before: object = None
    for judged in group:
        bound = known.get((judged.label, judged.metric))
        here = (judged.limit, published.word(bound))
        if not found or here != before:
            found.append([])
        found[-1].append(judged)
        before = here
    return found


def _range(name: str, group: Sequence[judgement.Judgement],
           known: published.Bounds, span: float) -> dict[str, Any]:
    """Return the row of the size that loses most, for a range of sizes."""
    words = [judged.word for judged in group]
    word = next((word for word in _WORST if word in words), None)
    worst = max((judged for judged in group if judged.word is word),
                key=summary.loss)
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
    return bounds.split(judged.metric)[1] or 0

# SPDX-License-Identifier: Apache-2.0

"""Draw the small charts of the page: intervals, studies, figures over time."""

import math
from collections.abc import Sequence

import markupsafe

from hpcvirt.bench.model import judgement
from hpcvirt.bench.report import text
from hpcvirt.page import svg

_WIDTH, _HEIGHT = 150, 22
#: Margin between the ends of the scale and the edges of a drawing.
_EDGE = 6


def interval(shown: judgement.Interval, span: float, bound: float | None,
             published: float | None) -> markupsafe.Markup:
    """Draw a ratio with its interval on a log scale, with 1 in the middle.

    :param span: the scale goes from 1 / span to span; values beyond it are
        drawn at the edge
    """
    def x(ratio: float) -> float:
        return _across(ratio, span, 0, _WIDTH)
    middle = _HEIGHT / 2
    parts = [svg.line('axis', 0, middle, _WIDTH, middle),
             svg.line('native', x(1), 2, x(1), _HEIGHT - 2)]
    label = _words(shown)
    if bound is not None:
        parts.append(svg.line('bound', x(bound), 0, x(bound), _HEIGHT))
        label += f', bound {bound:.3f}'
    if published is not None:
        parts.append(svg.dot('published', x(published), middle, 5))
        label += f', published {published:.3f}'
    parts += [svg.line('bar', x(shown.low), middle, x(shown.high), middle),
              svg.dot('dot', x(shown.ratio), middle, 3.5)]
    return svg.drawing(_WIDTH, _HEIGHT, parts, label)


def study(rows: Sequence[tuple[str, float | None,
                               Sequence[judgement.Interval]]],
          ) -> markupsafe.Markup:
    """Draw the ratios of a study and those of a site, a line for each figure.

    :param rows: label, published ratio, intervals of the site
    """
    ends: list[float] = []
    for _, published, found in rows:
        ends.append(published or 1.0)
        for each in found:
            ends += (each.low, each.high)
    span = span_of(ends)
    labels = [_short(label) for label, _, _ in rows]
    # A letter is at most 7 wide on average.
    left = 7 * max(map(len, labels)) + 12
    width, step = left + 240, 20
    height = step * len(rows) + 26

    def x(ratio: float) -> float:
        return _across(ratio, span, left, width)
    parts = []
    for ratio, anchor in ((1 / span, 'start'), (1.0, 'middle'),
                          (span, 'end')):
        parts.append(svg.text(x(ratio), 10, f'{ratio:.3g}', anchor))
    parts.append(svg.line('native', x(1), 14, x(1), height))
    words = []
    for number, (label, published, found) in enumerate(rows):
        y = 26 + step * number
        parts += [svg.text(left - 8, y + 4, labels[number], 'end'),
                  svg.line('axis', left, y, width, y)]
        for each in found:
            parts += [svg.line('bar', x(each.low), y, x(each.high), y),
                      svg.dot('dot', x(each.ratio), y, 3.5)]
        if published is not None:
            parts.append(svg.dot('published', x(published), y, 5))
        words.append(f'{label}: published ' + (
            '-' if published is None else f'{published:.3f}')
            + ''.join(f', {_words(each)}' for each in found))
    return svg.drawing(width, height, parts, '; '.join(words))


def history(times: Sequence[str], values: Sequence[float],
            alarm: bool) -> markupsafe.Markup:
    """Draw a figure over time.

    :param times: times of the values, in ISO 8601
    :param alarm: whether to mark the last point
    """
    width, height, top, bottom, right = 280, 84, 8, 62, 62
    least, most = min(values), max(values)
    # The scale covers at least 10 %, so that noise of 1 % looks flat.
    room = max(most - least, 0.1 * most)
    base = (most + least - room) / 2
    step = (width - right - 2 * _EDGE) / max(1, len(values) - 1)
    points = [(round(_EDGE + step * number, 1),
               round(bottom - (value - base) / room * (bottom - top), 1))
              for number, value in enumerate(values)]
    end = width - right
    parts = [svg.line('axis', 0, bottom + 6, end, bottom + 6),
             svg.text(_EDGE, height - 2, times[0][:10]),
             svg.text(end, height - 2, times[-1][:10], 'end'),
             svg.path('path', points)]
    for value in dict.fromkeys((most, least)) if (
            most - least >= 0.2 * room) else (values[-1],):
        y = bottom - (value - base) / room * (bottom - top)
        parts.append(svg.text(end + 6, round(y + 4, 1), text.figure(value)))
    parts += [svg.dot('dot', x, y, 2) for x, y in points[:-1]]
    last = points[-1]
    if alarm:
        parts.append(svg.dot('ring', *last, 7))
    parts.append(svg.dot('out' if alarm else 'dot', *last, 3.5))
    return svg.drawing(width, height, parts, 'values ' + ', '.join(
        text.figure(value) for value in values))


def span_of(ratios: Sequence[float]) -> float:
    """Return the scale for these ratios, from 1.25 to 100."""
    farthest = max((abs(math.log(ratio)) for ratio in ratios), default=0.0)
    return min(100.0, max(1.25, math.exp(farthest * 1.1)))


def _across(ratio: float, span: float, start: float, end: float) -> float:
    return svg.logarithmic(ratio, 1 / span, span, start + _EDGE, end - _EDGE)


def _words(shown: judgement.Interval) -> str:
    return (f'ratio {shown.ratio:.3f}, from {shown.low:.3f} to '
            f'{shown.high:.3f}')


def _short(label: str, most: int = 26) -> str:
    return label if len(label) <= most else f'{label[:most - 1]}…'

# SPDX-License-Identifier: Apache-2.0

"""Write the results of a replay as one self-contained HTML page.

It draws losses, differences, and a fleet over time. The style sheet tells
parts apart by patterns as well as by colours.
"""

import itertools
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import markupsafe

from hpcvirt.page import svg
from hpcvirt.page import templates
from hpcvirt.simulate import outcome
from hpcvirt.simulate import report

TITLE = 'A workload replayed over a fleet'

_CAUSES = tuple(cause.value for cause in outcome.Cause)
_BAR, _BAR_HEIGHT = 320, 16
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 340, 120, 44, 18, 8


def page(found: Mapping[str, Any]) -> str:
    """Return the page of a document of :mod:`hpcvirt.simulate.report`."""
    environment = templates.environment('hpcvirt.cmd.simulate')
    html: str = environment.get_template('simulate.html.j2').render(
        found=found, title=TITLE, marks={},
        introduction=[*report.describe_input(found)],
        notes=[*report.list_notes(found)],
        heading=report.first_heading(found), causes=_CAUSES,
        lost=dict(_draw_lost(found)), refused=dict(_draw_refused(found)),
        paired=[*_paired(found)],
        intervals=report.describe_intervals(found) if found['paired'] else '',
        time=[*_over_time(found)],
        first='the first seed' if found['workload']['replays'] > 1 else '')
    return html + '\n'


def _draw_lost(found: Mapping[str, Any],
               ) -> Iterator[tuple[str, markupsafe.Markup]]:
    most = max(each['lost_percent'] for each in found['strategies'])
    for each in found['strategies']:
        hours = each['core_hours']
        # The core-hours of a few milliseconds are rounded to 0.
        parts = {cause: 100 * hours[f'lost_to_{cause}']
                 / (hours['offered'] or 1) for cause in _CAUSES}
        yield each['name'], _draw_stack(
            parts, most, f'{each["name"]} loses {each["lost_percent"]:.2f} % '
            'of the core-hours: ' + ', '.join(
                f'{size:.2f} to {cause}' for cause, size in parts.items()))


def _draw_refused(found: Mapping[str, Any],
                  ) -> Iterator[tuple[str, markupsafe.Markup]]:
    most = max(sum(each['refused'].values())
               for each in found['strategies'])
    for each in found['strategies']:
        yield each['name'], _draw_stack(
            each['refused'], most, f'{each["name"]} refuses ' + ', '.join(
                f'{number} for {cause}'
                for cause, number in each['refused'].items()))


def _paired(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    numbers: list[float] = []
    for each in found['paired']:
        numbers.append(each['difference_percent'])
        numbers += each['interval_percent'] or ()
    reach = max(map(abs, numbers), default=0.0)
    for each in found['paired']:
        words = report.format_interval(each)
        yield {**each, 'interval': words, 'drawing': _draw_interval(
            each['difference_percent'], each['interval_percent'], reach,
            f'{each["strategy"]} loses {each["difference_percent"]:+.2f} '
            f'points more than {each["reference"]}, interval {words}')}


def _over_time(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    points = list(itertools.chain.from_iterable(
        each['over_time'] for each in found['strategies']))
    pages_gib = max((point['stranded_pages_mib'] for point in points),
                    default=0) / 1024
    across = max((100 * _across(point) for point in points), default=0)
    for each in found['strategies']:
        used = (f'{each["utilisation_percent"]:.1f} % of the CPUs used, '
                f'{each["stranded_cpus_percent"]:.1f} % stranded')
        pages = f'{each["stranded_pages_mib"] / 1024:.0f} GiB stranded'
        guests = (f'{each["across_sockets_percent"]:.1f} % of the guests '
                  'across sockets')
        charts = (
            (used, {
                'stranded': lambda point: (point['busy_cpus']
                                           + point['stranded_cpus']),
                'busy': lambda point: point['busy_cpus'],
            }, each['cpus'], f'{each["cpus"]}'),
            (pages, {
                'path': lambda point: point['stranded_pages_mib'] / 1024,
            }, pages_gib, f'{pages_gib:.0f}'),
            (guests, {'path': lambda point: 100 * _across(point)}, across,
             f'{across:.0f} %'))
        yield {'name': each['name'], 'charts': [
            {'caption': caption, 'drawing': _draw_curves(
                each['over_time'], curves, most, words,
                f'{each["name"]} over time: {caption}')}
            for caption, curves, most, words in charts]}


def _across(point: Mapping[str, Any]) -> float:
    return (point['across_sockets'] / point['guests'] if point['guests']
            else 0.0)


_Points = Sequence[Mapping[str, Any]]


def _draw_stack(parts: Mapping[str, float], whole: float,
                label: str) -> markupsafe.Markup:
    """Draw the parts of a whole in a bar.

    :param parts: kind to size
    """
    drawn = [svg.rectangle('outline', 0.5, 0.5, _BAR - 1, _BAR_HEIGHT - 1)]
    at = 0.0
    for kind, size in parts.items():
        width = _BAR * size / whole if whole else 0.0
        if width:
            drawn.append(svg.rectangle(kind, round(at, 1), 1,
                                       round(width, 1), _BAR_HEIGHT - 2))
        at += width
    return svg.drawing(_BAR, _BAR_HEIGHT, drawn, label)


def _draw_interval(value: float, ends: Sequence[float] | None,
                   reach: float, label: str) -> markupsafe.Markup:
    """Draw a difference and its interval around zero.

    :param reach: the ends of the scale are -reach and reach
    """
    def place(number: float) -> float:
        return round(_BAR / 2 + (_BAR / 2 - 6) * number / (reach or 1), 1)

    middle = _BAR_HEIGHT / 2
    drawn = [svg.line('zero', place(0), 0, place(0), _BAR_HEIGHT)]
    if ends is not None:
        drawn.append(svg.line('bar', place(ends[0]), middle, place(ends[1]),
                              middle))
        drawn += [svg.line('bar', place(end), middle - 4, place(end),
                           middle + 4) for end in ends]
    drawn.append(svg.dot('dot', place(value), middle, 4))
    return svg.drawing(_BAR, _BAR_HEIGHT, drawn, label)


def _draw_curves(points: _Points, curves: Mapping[
        str, Callable[[Mapping[str, Any]], float]], most: float,
        most_words: str, label: str) -> markupsafe.Markup:
    """Draw values over time.

    :param curves: kind to the value of a point; ``path`` is a line, and the
        others are areas
    :param most: the upper end of the scale
    :param most_words: its label
    """
    across, up = _scales(points, most)
    drawn = [svg.line('axis', _LEFT, up(0), _WIDTH, up(0))]
    for kind, value in curves.items():
        curve = _steps(points, across, up, value)
        if kind != 'path' and curve:
            curve = [(curve[0][0], up(0)), *curve, (curve[-1][0], up(0))]
        drawn.append(svg.path(kind, curve))
    if 'path' not in curves:
        drawn.append(svg.line('axis', _LEFT, up(most), _WIDTH, up(most)))
    return svg.drawing(_WIDTH, _HEIGHT, [
        *drawn, *_words(points, across, up, most, most_words)], label)


_Scale = Callable[[float], float]


def _scales(points: _Points, most: float) -> tuple[_Scale, _Scale]:
    first = points[0]['hours'] if points else 0.0
    span = (points[-1]['hours'] - first if points else 0.0) or 1.0
    return (lambda hours: round(
        _LEFT + (_WIDTH - _LEFT - 2) * (hours - first) / span, 1),
        lambda value: round(
            _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * value
            / (most or 1), 1))


def _steps(points: _Points, across: _Scale, up: _Scale,
           value: Callable[[Mapping[str, Any]], float],
           ) -> list[tuple[float, float]]:
    """Return the points of a step function, which holds each value."""
    found: list[tuple[float, float]] = []
    for each in points:
        x, y = across(each['hours']), up(value(each))
        if found:
            found.append((x, found[-1][1]))
        found.append((x, y))
    return found


def _words(points: _Points, across: _Scale, up: _Scale, most: float,
           most_words: str) -> list[str]:
    drawn = [svg.text(_LEFT - 4, up(0), '0', 'end')]
    if most:
        drawn.append(svg.text(_LEFT - 4, up(most) + 5, most_words, 'end'))
    if points:
        first, last = points[0]['hours'], points[-1]['hours']
        drawn.append(svg.text(across(first), _HEIGHT - 4, _time(first)))
        if last > first:
            drawn.append(svg.text(across(last), _HEIGHT - 4, _time(last),
                                  'end'))
    return drawn


def _time(hours: float) -> str:
    return f'{hours / 24:.0f} days' if hours >= 96 else f'{hours:.0f} hours'

# SPDX-License-Identifier: Apache-2.0

"""Draw a figure over message sizes."""

import dataclasses
import itertools
import math
import operator
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

import markupsafe

from hpcvirt.bench.model import judgement
from hpcvirt.page import svg

_WIDTH, _LEFT, _RIGHT = 640, 64, 626
#: Top and bottom of the panel of the figure, and of that of the ratio.
_FIGURE = (24.0, 190.0)
_RATIO = (224.0, 314.0)
#: Height of the sizes below the last panel.
_BELOW = 22
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95,
          1, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 3, 5, 10, 20, 50, 100)


@dataclasses.dataclass(frozen=True)
class Point:
    """The figure for one message size.

    :ivar native: None if only the guest was measured
    :ivar published: the published ratio for this size
    :ivar limit: the ratio that the interval must not cross
    """

    size: int
    native: float | None
    guest: float | None
    interval: judgement.Interval | None = None
    published: float | None = None
    limit: float | None = None


def draw(points: Sequence[Point], unit: str) -> markupsafe.Markup:
    """Draw the native, guest and published figures above their ratio.

    All axes are logarithmic. The ratio is drawn only if both sides have
    figures.

    :param points: at least two, in ascending order of size
    """
    least = max(1, points[0].size)
    most = max(2 * least, points[-1].size)

    def across(size: int) -> float:
        return svg.logarithmic(max(1, size), least, most, _LEFT, _RIGHT)
    panels = [_FIGURE]
    if any(point.interval for point in points):
        panels.append(_RATIO)
    parts = [*_legend(points), *_sizes(least, most, across, panels),
             *_figures(points, unit, across)]
    if _RATIO in panels:
        parts += _ratios(points, across)
    first, last = points[0], points[-1]
    return svg.drawing(
        _WIDTH, panels[-1][1] + _BELOW, parts,
        f'{unit} over message sizes from {first.size} to {last.size} bytes; '
        'the table below has the figures')


def size_text(size: int) -> str:
    """Format a size: ``128 B``, ``64 KiB``, ``4 MiB``."""
    for unit, factor in (('GiB', 2 ** 30), ('MiB', 2 ** 20), ('KiB', 2 ** 10)):
        if size >= factor and size % factor == 0:
            return f'{size // factor} {unit}'
    return f'{size} B'


def _legend(points: Sequence[Point]) -> Iterator[str]:
    shown = [('native', any(point.native for point in points)),
             ('guest', any(point.guest for point in points)),
             ('published ratio', any(point.published for point in points)),
             ('bound', any(point.limit for point in points))]
    x = _LEFT
    for name, there in shown:
        if not there:
            continue
        yield svg.line(_CLASSES[name], x, 10, x + 26, 10)
        if name == 'native':
            yield svg.square('mark', x + 13, 10, 3)
        elif name == 'guest':
            yield svg.dot('dot', x + 13, 10, 3)
        yield svg.text(x + 32, 14, name)
        x += 32 + 7 * len(name) + 18


_CLASSES = {'native': 'native', 'guest': 'path', 'published ratio': 'dots',
            'bound': 'bound'}


def _sizes(least: int, most: int, across: Callable[[int], float],
           panels: Sequence[tuple[float, float]]) -> Iterator[str]:
    first = math.ceil(math.log2(least))
    last = math.floor(math.log2(most))
    step = max(1, math.ceil((last - first + 1) / 8))
    for power in range(first, last + 1, step):
        x = across(2 ** power)
        for top, bottom in panels:
            yield svg.line('axis', x, top, x, bottom)
        yield svg.text(x, panels[-1][1] + 16, size_text(2 ** power),
                       'middle')


def _figures(points: Sequence[Point], unit: str,
             across: Callable[[int], float]) -> Iterator[str]:
    values: list[float] = []
    for point in points:
        shown = (point.native, point.guest, _published(point))
        values += [value for value in shown if value]
    if not values:
        return
    low, high = min(values) / 1.1, max(values) * 1.1
    top, bottom = _FIGURE

    def up(value: float) -> float:
        return svg.logarithmic(value, low, high, bottom, top)
    for tick in _decades(low, high):
        yield svg.line('axis', _LEFT, up(tick), _RIGHT, up(tick))
        yield svg.text(_LEFT - 6, up(tick) + 4, f'{tick:,.15g}', 'end')
    yield svg.text(_LEFT + 4, top + 12, unit)
    for part in _steps(points, 'published'):
        yield from _paths('dots', [(across(point.size), up(value))
                                   if (value := _published(point)) else None
                                   for point in part])
    for name, kind, mark in (('native', 'native', svg.square),
                             ('guest', 'path', svg.dot)):
        where = [(across(point.size), up(value))
                 if (value := getattr(point, name)) else None
                 for point in points]
        yield from _paths(kind, where)
        for place in where:
            if place:
                yield mark('mark' if name == 'native' else 'dot', *place, 2)


def _list_ratios(points: Sequence[Point]) -> list[float]:
    """List the ratios that the scale includes: all that are drawn, and 1."""
    ratios = [1.0]
    for point in points:
        shown = [point.published, point.limit]
        if point.interval:
            shown += (point.interval.low, point.interval.high)
        ratios += [ratio for ratio in shown if ratio]
    return ratios


def _ratios(points: Sequence[Point],
            across: Callable[[int], float]) -> Iterator[str]:
    ends = _list_ratios(points)
    low = max(0.01, min(*ends, 0.95) / 1.02)
    high = min(100.0, max(*ends, 1.05) * 1.02)
    top, bottom = _RATIO

    def up(ratio: float) -> float:
        return svg.logarithmic(ratio, low, high, bottom, top)
    yield svg.text(_LEFT + 4, top - 6, 'guest / native')
    before = math.inf
    for tick in (1, *_TICKS):
        if low <= tick <= high and (tick == 1 or (
                abs(up(tick) - up(1)) > 11 and abs(up(tick) - before) > 11)):
            before = up(tick) if tick != 1 else before
            yield svg.line('native' if tick == 1 else 'axis', _LEFT, up(tick),
                           _RIGHT, up(tick))
            yield svg.text(_LEFT - 6, up(tick) + 4, f'{tick:g}', 'end')
    for kind, name in (('dots', 'published'), ('bound', 'limit')):
        for part in _steps(points, name):
            yield from _paths(kind, [
                (across(point.size), up(value))
                if (value := getattr(point, name)) else None
                for point in part])
    yield from _paths('path', [
        (across(point.size), up(point.interval.ratio))
        if point.interval else None for point in points])
    for point in points:
        if point.interval:
            x = across(point.size)
            yield svg.line('bar', x, up(point.interval.low), x,
                           up(point.interval.high))
            yield svg.dot('dot', x, up(point.interval.ratio), 2)


def _steps(points: Sequence[Point], name: str) -> Iterator[list[Point]]:
    """Split the points where the value of a field changes."""
    for _, part in itertools.groupby(points, key=operator.attrgetter(name)):
        yield list(part)


def _published(point: Point) -> float | None:
    if point.native is None or point.published is None:
        return None
    return point.native * point.published


def _paths(kind: str, places: Sequence[tuple[float, float] | None],
           ) -> Iterator[str]:
    """Draw lines, with gaps at missing points."""
    for there, group in itertools.groupby(places, key=bool):
        if there:
            yield svg.path(kind, [place for place in group if place])


def _decades(low: float, high: float) -> Iterator[float]:
    """Yield ticks at powers of ten, or at 1, 2 and 5 times few of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 2 else (1,)
    for power in range(first, last + 1):
        for step in steps:
            tick = step * 10.0 ** power
            if low <= tick <= high:
                yield tick

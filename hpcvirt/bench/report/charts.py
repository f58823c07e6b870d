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

"""Small drawings for the page, as SVG."""

import math
from collections.abc import Sequence

WIDTH = 180
HEIGHT = 22


def interval(ratio: float, low: float, high: float, span: float,
             bound: float | None, published: float | None) -> str:
    """Draw a ratio with its interval, 1 in the middle, on a log scale.

    :param span: the scale reaches from 1 / span to span; values beyond it
        are drawn at the edge
    """
    middle = HEIGHT / 2
    parts = [_line('axis', 0, middle, WIDTH, middle),
             _line('native', _x(1, span), 2, _x(1, span), HEIGHT - 2)]
    if bound is not None:
        at = _x(bound, span)
        parts.append(_line('bound', at, 0, at, HEIGHT))
    if published is not None:
        parts.append(f'<circle class="published" cx="{_x(published, span)}" '
                     f'cy="{middle:g}" r="5"/>')
    parts.append(_line('bar', _x(low, span), middle, _x(high, span), middle))
    parts.append(f'<circle class="dot" cx="{_x(ratio, span)}" '
                 f'cy="{middle:g}" r="3.5"/>')
    return _svg(WIDTH, HEIGHT, parts,
                f'ratio {ratio:.3f}, from {low:.3f} to {high:.3f}')


def history(values: Sequence[float], alarm: bool) -> str:
    """Draw a figure over time.

    :param alarm: draw the last point in red
    """
    width, height, edge = 270, 70, 8
    low, high = min(values), max(values)
    # Noise of one percent should look flat.
    room = max(high - low, 0.1 * high)
    bottom = (high + low - room) / 2
    step = (width - 2 * edge) / max(1, len(values) - 1)
    points = [(edge + step * number,
               height - edge - (value - bottom) / room * (height - 2 * edge))
              for number, value in enumerate(values)]
    path = ' '.join(f'{x:.1f},{y:.1f}' for x, y in points)
    parts = [_line('axis', 0, height - 1, width, height - 1),
             f'<polyline class="path" points="{path}"/>']
    for number, (x, y) in enumerate(points):
        last = number == len(points) - 1
        kind = 'out' if alarm and last else 'dot'
        parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" '
                     f'r="{3.5 if last else 2}"/>')
    return _svg(width, height, parts,
                'values ' + ', '.join(f'{value:.4g}' for value in values))


def curve(points: Sequence[tuple[int, float, float, float]],
          published: float | None) -> str:
    """Draw ratios over message sizes, both on log scales; 1 in the middle.

    :param points: size in bytes, ratio and the ends of its interval
    :param published: the one ratio that a study states for these sizes
    """
    width, height, edge, margin = 460, 130, 10, 44
    least = math.log2(max(1, points[0][0]))
    reach = max(1.0, math.log2(max(1, points[-1][0])) - least)
    span = span_of([end for _, _, low, high in points for end in (low, high)]
                   + [published or 1.0])

    def across(size: int) -> float:
        part = (math.log2(max(1, size)) - least) / reach
        return round(edge + part * (width - edge - margin), 1)

    def up(ratio: float) -> float:
        part = max(-1.0, min(1.0, math.log(ratio) / math.log(span)))
        return round(height / 2 - part * (height / 2 - edge), 1)
    right = width - margin
    parts = [_line('native', 0, up(1), right, up(1)),
             f'<text x="{right + 4}" y="{up(1) + 4:g}">1</text>']
    if published is not None:
        parts.append(_line('published', across(points[0][0]), up(published),
                           across(points[-1][0]), up(published)))
        # Do not cover the 1 of the native line.
        away = 4 if abs(up(published) - up(1)) > 11 else (
            -6 if published > 1 else 14)
        parts.append(f'<text x="{right + 4}" y="{up(published) + away:g}">'
                     f'{published:.3f}</text>')
    path = ' '.join(f'{across(size)},{up(ratio)}'
                    for size, ratio, _, _ in points)
    parts.append(f'<polyline class="path" points="{path}"/>')
    for size, ratio, low, high in points:
        parts.append(_line('bar', across(size), up(low), across(size),
                           up(high)))
        parts.append(f'<circle class="dot" cx="{across(size)}" '
                     f'cy="{up(ratio)}" r="2.5"/>')
    for size, anchor in ((points[0][0], 'start'), (points[-1][0], 'end')):
        parts.append(f'<text x="{across(size)}" y="{height - 1}" '
                     f'text-anchor="{anchor}">{size} B</text>')
    return _svg(width, height, parts, 'ratios by message size: ' + ', '.join(
        f'{size} B {ratio:.3f}' for size, ratio, _, _ in points))


def span_of(ratios: Sequence[float]) -> float:
    """Return the scale for these ratios, from 1.25 to 100."""
    farthest = max((abs(math.log(ratio)) for ratio in ratios), default=0.0)
    return min(100.0, max(1.25, math.exp(farthest * 1.1)))


def _x(ratio: float, span: float) -> float:
    part = math.log(ratio) / math.log(span)
    return round(WIDTH / 2 * (1 + min(1.0, max(-1.0, part)) * 0.96), 1)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return (f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" '
            f'y2="{y2:g}"/>')


def _svg(width: int, height: int, parts: Sequence[str], label: str) -> str:
    return (f'<svg width="{width}" height="{height}" role="img" '
            f'aria-label="{label}">{"".join(parts)}</svg>')

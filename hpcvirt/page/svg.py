# SPDX-License-Identifier: Apache-2.0

"""Draw in SVG. All texts are escaped."""

import math
from collections.abc import Iterable
from collections.abc import Sequence

import markupsafe

from hpcvirt import printable


def line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """Draw a straight line."""
    return (f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" '
            f'y2="{y2:g}"/>')


def path(kind: str, points: Iterable[tuple[float, float]]) -> str:
    """Draw a line through points."""
    joined = ' '.join(f'{x:g},{y:g}' for x, y in points)
    return f'<polyline class="{kind}" points="{joined}"/>'


def dot(kind: str, x: float, y: float, radius: float) -> str:
    """Draw a circle."""
    return f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="{radius:g}"/>'


def square(kind: str, x: float, y: float, half: float) -> str:
    """Draw a square around a point."""
    return (f'<rect class="{kind}" x="{x - half:g}" y="{y - half:g}" '
            f'width="{2 * half:g}" height="{2 * half:g}"/>')


def rectangle(kind: str, x: float, y: float, width: float,
              height: float) -> str:
    """Draw a rectangle."""
    return (f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" '
            f'height="{height:g}"/>')


def text(x: float, y: float, words: str, anchor: str = 'start') -> str:
    """Write a line of text."""
    return (f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">'
            f'{_escaped(words)}</text>')


def drawing(width: float, height: float, parts: Sequence[str],
            label: str) -> markupsafe.Markup:
    """Return a drawing that consists of parts.

    :param label: describes the drawing for readers who cannot see it
    """
    # Texts in the parts are escaped already.
    return markupsafe.Markup(  # noqa: S704
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{_escaped(label)}">'
        f'{"".join(parts)}</svg>')


def logarithmic(value: float, low: float, high: float, start: float,
                end: float) -> float:
    """Return the position of a value on a log scale, limited to its ends."""
    part = math.log(value / low) / math.log(high / low)
    return round(start + min(1.0, max(0.0, part)) * (end - start), 1)


def _escaped(words: str) -> str:
    return str(markupsafe.escape(printable.escape(words)))

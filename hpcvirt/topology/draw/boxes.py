# SPDX-License-Identifier: Apache-2.0

"""Draw boxes of text, and arrange them in rows.

A block is a list of lines of equal length.
"""

import itertools
from collections.abc import Iterable
from collections.abc import Sequence

Block = list[str]

#: Horizontal, vertical, and the corners clockwise from the upper left.
LIGHT = '─│┌┐┘└'
HEAVY = '━┃┏┓┛┗'

#: Replacements for output that cannot encode these characters.
_PLAIN = str.maketrans('─│┌┐┘└━┃┏┓┛┗·…', '-|++++=|++++..')


def block(lines: Iterable[str], width: int = 0) -> Block:
    """Pad lines to the length of the longest, or to the width."""
    rows = list(lines)
    longest = max((len(row) for row in rows), default=0)
    return [row.ljust(max(longest, width)) for row in rows]


def box(title: str, lines: Iterable[str], style: str = LIGHT,
        width: int = 0) -> Block:
    """Draw a box around lines, with a title in its upper edge.

    :param width: the minimum width of the whole box
    """
    across, down, corners = style[0], style[1], style[2:]
    head = f' {title} ' if title else ''
    rows = block(lines, max(width - 4, len(head)))
    inner = len(rows[0]) + 2 if rows else max(width - 2, len(head) + 2)
    upper = f'{across}{head}'.ljust(inner, across)
    return [f'{corners[0]}{upper}{corners[1]}',
            *(f'{down} {row} {down}' for row in rows),
            f'{corners[3]}{across * inner}{corners[2]}']


def side_by_side(blocks: Iterable[Block], width: int, gap: int = 2) -> Block:
    """Arrange blocks side by side, from the left, in as many rows as needed.

    Boxes in one row get the same height.

    :param width: the maximum width, unless a single block is wider
    :param gap: blank columns between blocks
    """
    rows: list[list[Block]] = []
    used = 0
    for each in blocks:
        columns = len(each[0]) if each else 0
        if not rows or used + gap + columns > width:
            rows.append([])
            used = -gap
        rows[-1].append(each)
        used += gap + columns
    return block(itertools.chain.from_iterable(
        _row(row, gap) for row in rows))


def _row(blocks: Sequence[Block], gap: int) -> Block:
    height = max(map(len, blocks))
    stretched = [_stretch(each, height) for each in blocks]
    return [(' ' * gap).join(lines)
            for lines in zip(*stretched, strict=True)]


def _stretch(lines: Block, height: int) -> Block:
    """Add blank lines to a block; to a box above its lower edge."""
    missing = height - len(lines)
    is_box = lines[-1][:1] in (LIGHT[-1], HEAVY[-1])
    down = lines[1][:1] if is_box and len(lines) > 2 else ' '
    blank = f'{down}{" " * (len(lines[0]) - 2)}{down}'
    edge = 1 if is_box else 0
    return [*lines[:len(lines) - edge], *[blank] * missing,
            *lines[len(lines) - edge:]]


def wrap(words: Iterable[str], width: int, indent: str = '') -> list[str]:
    """Fill lines with words; a word that is too long gets its own line.

    :param indent: precedes every line except the first
    """
    lines: list[str] = []
    line = ''
    for word in words:
        longer = f'{line} {word}' if line.strip() else f'{line}{word}'
        if line.strip() and len(longer) > width:
            lines.append(line)
            longer = f'{indent}{word}'
        line = longer
    return [*lines, line] if line.strip() else lines


def plain(text: str) -> str:
    """Replace all characters that are not in ASCII."""
    return text.translate(_PLAIN).encode('ascii', 'replace').decode()

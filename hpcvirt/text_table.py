# SPDX-License-Identifier: Apache-2.0

"""Tables of plain text, for people at a terminal and in a log."""

import io
import itertools
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import printable

#: Columns where there is no terminal.
WIDTH = 100

#: Wider than any table: rich wants a width, and a pipe has none.
_UNLIMITED = 100_000

#: Spaces between columns.
_GAP = 2

#: A line of hyphens below the headings, and no other lines. ASCII, for the
#: same text goes to a terminal, a file and a mail.
_LINES = '\n'.join(['    ', '    ', ' -  ', *['    '] * 5])


def draw(headings: Sequence[str], rows: Iterable[Sequence[str]],
         numbers: Collection[str] = (), width: int | None = None) -> str:
    """Draw a table with two spaces between columns.

    The text of columns is wrapped between words to fit the width. The first
    column and the numbers stay whole: a table that does not fit then is
    wider, for nothing is left out.

    :param rows: cells from the left; a row may be shorter than the headings;
        characters that do not print are escaped
    :param numbers: the headings of the columns that are aligned right
    :param width: most characters of a line, None for no limit
    :returns: lines without spaces at the end, each with a newline
    """
    # These take 0.1 s to load.
    from rich import box
    from rich import console
    from rich import table as tables
    table = tables.Table(
        box=box.Box(_LINES, ascii=True), pad_edge=False,
        padding=(0, 1, 0, 0), show_edge=False)
    lines = [[printable.escape(cell) for cell in row] for row in rows]
    columns = [[heading, *(row[place] for row in lines if place < len(row))]
               for place, heading in enumerate(headings)]
    widths = _widths(columns, [not place or heading in numbers
                               for place, heading in enumerate(headings)],
                     _UNLIMITED if width is None else width)
    for heading, chosen in zip(headings, widths, strict=True):
        table.add_column(
            heading, width=chosen, overflow='fold',
            justify='right' if heading in numbers else 'left')
    for row in lines:
        table.add_row(*row)
    out = io.StringIO()
    console.Console(
        file=out, width=_UNLIMITED, color_system=None, markup=False,
        highlight=False, emoji=False).print(table)
    return ''.join(f'{line.rstrip()}\n'
                   for line in out.getvalue().splitlines())


def _widest(cell_parts: Iterable[Sequence[str]]) -> int:
    """Return the width of the widest line or word of the cells of a column.

    :param cell_parts: the lines or words of each cell
    """
    from rich import cells
    parts = itertools.chain.from_iterable(cell_parts)
    return max((cells.cell_len(part) for part in parts), default=0)


def _widths(columns: Sequence[Sequence[str]], whole: Sequence[bool],
            limit: int) -> list[int]:
    """Choose the widths of columns: narrow the widest text first.

    :param whole: whether the cells of a column must not be wrapped
    """
    widths = [_widest(cell.splitlines() for cell in column)
              for column in columns]
    least = [
        width if keep else _widest(cell.split() for cell in column)
        for column, keep, width in zip(columns, whole, widths, strict=True)]
    excess = sum(widths) + _GAP * (len(widths) - 1) - limit
    while excess > 0:
        spare = [place for place, width in enumerate(widths)
                 if width > least[place]]
        if not spare:
            break
        widths[max(spare, key=widths.__getitem__)] -= 1
        excess -= 1
    return widths

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

"""Tables of plain text, for people at a terminal and in a log."""

import io
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import printable

#: Wider than any table: rich wants a width, and a pipe has none.
_UNLIMITED = 100_000

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
    lines = [[printable.escaped(cell) for cell in row] for row in rows]
    least = 0
    for place, heading in enumerate(headings):
        number = heading in numbers
        whole = number or not place
        cells = [heading, *(row[place] for row in lines if place < len(row))]
        longest = max(len(piece) for cell in cells for piece in (
            [cell] if whole else cell.split() or ['']))
        table.add_column(heading, justify='right' if number else 'left',
                         no_wrap=whole, min_width=longest)
        least += longest + 2
    for row in lines:
        table.add_row(*row)
    out = io.StringIO()
    console.Console(
        file=out, width=_UNLIMITED, color_system=None, markup=False,
        highlight=False, emoji=False).print(
            table, width=max(least, width or _UNLIMITED))
    return ''.join(f'{line.rstrip()}\n'
                   for line in out.getvalue().splitlines())

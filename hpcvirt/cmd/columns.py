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

"""Tables of text in columns, for people and for ``cut``."""

from collections.abc import Sequence


def lay_out(rows: Sequence[Sequence[str]], right: frozenset[int]
            = frozenset()) -> str:
    """Lay out rows in columns two spaces apart.

    :param rows: the heading first; all of the same length
    :param right: columns whose cells end in line, for numbers
    :returns: lines without spaces at the end, each with a newline
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) if number in right else cell.ljust(width)
                 for number, (cell, width)
                 in enumerate(zip(row, widths, strict=True))]
        lines.append('  '.join(cells).rstrip() + '\n')
    return ''.join(lines)

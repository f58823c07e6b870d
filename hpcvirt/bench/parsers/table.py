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

"""Check the rows and the message sizes in tables of programs."""

import itertools
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.parsers import reading

#: A table that is cut off between two rows looks complete.
NO_END = ('the output has no end marker; only --expect max_size can show that '
          'it is complete')


def check_columns(rows: Iterable[str], what: str) -> None:
    """Refuse rows that do not end in the same column.

    Programs that fill columns of fixed width print all rows alike; a row from
    which some digits are cut out is shorter.

    :raises Refused: if a row is longer or shorter than another
    """
    if len({len(row.rstrip()) for row in rows}) > 1:
        raise reading.Refused(f'a row of {what} is broken: the columns do not '
                              'align')


def check_ascending(sizes: Sequence[int]) -> None:
    """Refuse a table that was printed twice or is out of order.

    :raises Refused: if the sizes do not rise from row to row
    """
    for before, size in itertools.pairwise(sizes):
        if size <= before:
            raise reading.Refused(
                f'{size} bytes follow {before} bytes: several tables in one '
                'file, or rows out of order')


def check_doubling(sizes: Sequence[int]) -> None:
    """Refuse a table in which a size is not twice the one before.

    The size after 0 is 1.

    :raises Refused: if a size is missing
    """
    for before, size in itertools.pairwise(sizes):
        if size != (2 * before or 1):
            raise reading.Refused(
                f'no row for {2 * before or 1} bytes: {size} follow {before}')


def check_begin(sizes: Sequence[int], expect: Mapping[str, str]) -> None:
    """Refuse a table without its first rows.

    :raises Refused: if it begins above a byte, and nobody asked for that
    """
    if sizes[0] > 1 and 'min_size' not in expect:
        raise reading.Refused(
            f'the table begins at {sizes[0]} bytes: rows are missing, unless '
            f'this is the smallest size (--expect min_size={sizes[0]})')


def parameters(sizes: Sequence[int]) -> dict[str, str]:
    """Return the parameters that a table shows."""
    return {'min_size': str(sizes[0]), 'max_size': str(sizes[-1]),
            'rows': str(len(sizes))}

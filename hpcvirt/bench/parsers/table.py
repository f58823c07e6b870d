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

"""Rows of message sizes, as ping-pong programs print them."""

import itertools
from collections.abc import Sequence

from hpcvirt.bench.parsers import reading

#: A table can be cut between two rows without a trace.
NO_END = ('the output has no end marker: expect max_size to know that it is '
          'whole')


def check_ascending(sizes: Sequence[int]) -> None:
    """A table that goes back was printed twice or is mixed up.

    :raises Refused: if the sizes do not rise from row to row
    """
    for before, size in itertools.pairwise(sizes):
        if size <= before:
            raise reading.Refused(
                f'{size} bytes follow {before} bytes: several tables in one '
                'file, or rows out of order')


def check_doubling(sizes: Sequence[int]) -> None:
    """Each size is twice the one before (1 follows 0).

    :raises Refused: if one is missing
    """
    for before, size in itertools.pairwise(sizes):
        if size != (2 * before or 1):
            raise reading.Refused(
                f'no row for {2 * before or 1} bytes: {size} follow {before}')


def parameters(sizes: Sequence[int]) -> dict[str, str]:
    """What a table says of itself."""
    return {'min_size': str(sizes[0]), 'max_size': str(sizes[-1]),
            'rows': str(len(sizes))}

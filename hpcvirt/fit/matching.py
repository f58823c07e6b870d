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

"""Bipartite matching of guest cells with host cells (Kuhn's algorithm).

The graph is given as adjacency lists: for each left node, the right nodes
that it may be matched with.
"""

from collections.abc import Collection
from collections.abc import Sequence


def match(neighbors: Sequence[Collection[int]],
          excluded: Collection[int] = ()) -> dict[int, int] | None:
    """Match every left node with a right node of its own.

    :param neighbors: the right nodes adjacent to each left node
    :param excluded: right nodes that must not be used
    :returns: right node -> left node; None if there is no such matching
    """
    partner: dict[int, int] = {}
    for left in range(len(neighbors)):
        if not _augment(left, neighbors, partner, set(excluded)):
            return None
    return partner


def contenders(neighbors: Sequence[Collection[int]]) -> list[int]:
    """Find left nodes that have too few right nodes between them.

    :returns: their numbers, ascending; empty if all can be matched
    """
    partner: dict[int, int] = {}
    for left in range(len(neighbors)):
        seen: set[int] = set()
        if not _augment(left, neighbors, partner, seen):
            return sorted({left, *(partner[right] for right in seen)})
    return []


def _augment(left: int, neighbors: Sequence[Collection[int]],
             partner: dict[int, int], seen: set[int]) -> bool:
    for right in neighbors[left]:
        if right in seen:
            continue
        seen.add(right)
        if right not in partner or _augment(partner[right], neighbors,
                                            partner, seen):
            partner[right] = left
            return True
    return False

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

"""Bipartite matching of guest cells with host cells (Kuhn's algorithm)."""

from collections.abc import Collection
from collections.abc import Sequence


def match(wishes: Sequence[Collection[int]],
          banned: Collection[int] = ()) -> dict[int, int] | None:
    """Give everyone a partner of his own.

    :param wishes: for each left node the right nodes that it accepts
    :param banned: right nodes that nobody may have
    :returns: right node -> left node, None if there are too few
    """
    partner: dict[int, int] = {}
    for left in range(len(wishes)):
        if not _augment(left, wishes, partner, set(banned)):
            return None
    return partner


def contenders(wishes: Sequence[Collection[int]]) -> list[int]:
    """Name left nodes that accept too few right nodes between them.

    :returns: their numbers, ascending; empty if everyone can be matched
    """
    partner: dict[int, int] = {}
    for left in range(len(wishes)):
        seen: set[int] = set()
        if not _augment(left, wishes, partner, seen):
            return sorted({left, *(partner[right] for right in seen)})
    return []


def _augment(left: int, wishes: Sequence[Collection[int]],
             partner: dict[int, int], seen: set[int]) -> bool:
    for right in wishes[left]:
        if right in seen:
            continue
        seen.add(right)
        if right not in partner or _augment(partner[right], wishes, partner,
                                            seen):
            partner[right] = left
            return True
    return False

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

"""Take devices from the PCI pools of a host, and give them back.

Nova drops a pool when it becomes empty.
"""

from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.fit import devices


def taken(before: Sequence[devices.Pool] | None,
          after: Sequence[devices.Pool] | None) -> tuple[devices.Pool, ...]:
    """Compute what an instance has, from the pools before and after it."""
    left = _by_kind(after or ())
    found = []
    for had in _by_kind(before or ()):
        still = sum(pool.free for pool in left if _alike(pool, had))
        if still != had.free:
            found.append(had._replace(free=had.free - still))
    return tuple(found)


def given_back(pools: Sequence[devices.Pool] | None,
               own: Sequence[devices.Pool],
               ) -> Sequence[devices.Pool] | None:
    """Add what an instance had to the pools of its host."""
    if pools is None or not own:
        return pools
    return tuple(_by_kind((*pools, *own)))


def _by_kind(pools: Iterable[devices.Pool]) -> list[devices.Pool]:
    """Merge the pools whose devices are alike."""
    kinds: list[devices.Pool] = []
    for pool in pools:
        for place, other in enumerate(kinds):
            if _alike(pool, other):
                kinds[place] = pool._replace(free=pool.free + other.free)
                break
        else:
            kinds.append(pool)
    return kinds


def _alike(pool: devices.Pool, other: devices.Pool) -> bool:
    return pool == other._replace(free=pool.free)

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

"""Network affinity: the cells that physical and tunnelled networks ask for.

A network with affinity to some cells of a host wants one of them among the
guest's; a network without affinity there asks nothing.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable

from hpcvirt.fit import demand as demands
from hpcvirt.fit import supply as supplies


@dataclasses.dataclass(frozen=True, slots=True)
class Affinity:
    """One network of the guest that has affinity on this host.

    :ivar network: its name
    :ivar cells: the guest must be on one of these
    """

    network: str
    cells: frozenset[int]


def affinities(demand: demands.Demand,
               cells: Iterable[supplies.CellSupply]) -> tuple[Affinity, ...]:
    """Find the networks of a guest that have affinity on a host."""
    if not demand.physnets and not demand.tunneled:
        return ()
    near: dict[str, set[int]] = {}
    for cell in cells:
        for physnet in demand.physnets & cell.physnets:
            near.setdefault(f'physical network {physnet}', set()).add(cell.id)
        if demand.tunneled and cell.tunneled:
            near.setdefault('tunnelled networks', set()).add(cell.id)
    return tuple(Affinity(network, frozenset(ids))
                 for network, ids in sorted(near.items()))


def satisfied(wanted: Iterable[Affinity], cells: Collection[int]) -> bool:
    """Whether a set of host cells touches every network's cells."""
    return all(not affinity.cells.isdisjoint(cells) for affinity in wanted)

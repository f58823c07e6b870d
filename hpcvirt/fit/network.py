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

"""Network affinity: the host cells of physical and tunnelled networks.

If a network of the guest has affinity to cells of a host, the guest must use
at least one of them. A network without affinity on that host sets no
condition.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable

from hpcvirt.fit import demand as demands
from hpcvirt.fit import supply as supplies


@dataclasses.dataclass(frozen=True, slots=True)
class Affinity:
    """A network of the guest that has affinity to cells of the host.

    :ivar network: its name
    :ivar cells: the guest must use one of these
    """

    network: str
    cells: frozenset[int]


def affinities(demand: demands.Demand,
               cells: Iterable[supplies.CellSupply]) -> tuple[Affinity, ...]:
    """Find the networks of a guest that have affinity to host cells."""
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


def satisfied(networks: Iterable[Affinity], cells: Collection[int]) -> bool:
    """Whether a set of host cells has one cell of each network."""
    return all(not affinity.cells.isdisjoint(cells) for affinity in networks)

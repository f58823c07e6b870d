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

"""Count how many more instances of each flavor a fleet takes.

Each host is filled with instances of one flavor, one after the other as
Nova's claim would place them, until Placement or the claim refuses one.
Sums of free resources, which is what Placement compares, promise more
wherever the free CPUs and pages of a host are in the wrong cells.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import cell_filling
from hpcvirt.fit import devices
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import admission
from hpcvirt.fleet import alike
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state


@dataclasses.dataclass(frozen=True)
class Count:
    """How many more instances of a flavor a fleet takes.

    :ivar per_host: host -> the number that it takes
    :ivar by_sums: the number by the sums of each host, as Placement counts
    """

    flavor: catalogue.Flavor
    per_host: Mapping[str, int]
    by_sums: int

    @property
    def total(self) -> int:
        return sum(self.per_host.values())

    @property
    def pcpus(self) -> int:
        """The PCPUs that all of them would have."""
        return self.total * guests.of_flavor(self.flavor).sums.pcpus


#: Hosts that are alike, and the kinds of their cells.
_Group = tuple[Sequence[state.FleetHost], Sequence[cell_filling.CellKind]]


def count(fleet: state.Fleet,
          flavors: Iterable[catalogue.Flavor]) -> tuple[Count, ...]:
    """Count the instances of each flavor alone.

    :raises InvalidInput: for a flavor that Nova would refuse
    """
    kinds = cell_filling.CellKinds()
    groups = [(group, kinds.of(group[0].state.supply))
              for group in alike.groups(fleet.hosts)]
    return tuple(_count(flavor, fleet, groups) for flavor in flavors)


def _count(flavor: catalogue.Flavor, fleet: state.Fleet,
           groups: Iterable[_Group]) -> Count:
    guest = guests.of_flavor(flavor)
    per_host = {host.name: 0 for host in fleet.hosts}
    by_sums = 0
    fillings = cell_filling.CellFillings(guest.shape)
    for group, kinds in groups:
        first = group[0]
        promised = _promised(guest, first.state)
        taken = fillings.count(first.state.supply, kinds, promised,
                               first.packing)
        by_sums += promised * len(group)
        if taken:
            per_host |= dict.fromkeys((host.name for host in group), taken)
    return Count(flavor, per_host, by_sums)


def _promised(guest: guests.Guest, host: state.State) -> int:
    """Count the instances for which the sums of a host are enough."""
    if admission.shut(guest, host) is not None:
        return 0
    promised = host.free.times(guest.sums)
    for request in guest.demand.requests:
        if request.one_pool:
            promised = min(promised, sum(
                free // request.count for free in devices.free_devices(
                    request, host.supply.pools or ())))
    return promised

# SPDX-License-Identifier: Apache-2.0

"""Count how many more instances of each flavor a fleet takes.

Each host is filled with instances of one flavor until Placement or the claim
refuses one (:mod:`hpcvirt.fit.capacity`). Placement compares totals of free
resources. These promise more instances if the free CPUs, pages and devices of
a host are in the wrong cells.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import capacity
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model


@dataclasses.dataclass(frozen=True)
class InstanceCount:
    """The number of instances of a flavor that a fleet still takes.

    :ivar per_host: host -> the number that it takes
    :ivar by_sums: the number for which the total free CPUs, memory and
        devices of each host are enough
    """

    guest: guests.Guest
    per_host: Mapping[str, int]
    by_sums: int

    @property
    def flavor(self) -> flavor_model.Flavor:
        """The flavor."""
        return self.guest.flavor

    @property
    def total(self) -> int:
        return sum(self.per_host.values())

    @property
    def pcpus(self) -> int:
        """The PCPUs of all these instances."""
        return self.total * self.guest.sums.pcpus


#: Hosts that are alike, and the kinds of their cells.
_Group = tuple[Sequence[state.FleetHost], Sequence[capacity.CellKind]]


def count(fleet: state.Fleet,
          flavors: Iterable[flavor_model.Flavor]) -> tuple[InstanceCount, ...]:
    """Count the instances of each flavor alone.

    :raises InvalidInput: for a flavor that Nova would refuse
    """
    kinds = capacity.CellKinds()
    groups = [(group, kinds.find(group[0].state.supply))
              for group in state.group_alike(fleet.hosts)]
    return tuple(_count(compiled_flavor.make(flavor), fleet, groups)
                 for flavor in flavors)


def _count(guest: guests.Guest, fleet: state.Fleet,
           groups: Iterable[_Group]) -> InstanceCount:
    per_host = {host.name: 0 for host in fleet.hosts}
    by_sums = 0
    counter = capacity.GuestCounter(guest)
    for group, kinds in groups:
        first = group[0].state
        by_sums += placement.count(guest, first) * len(group)
        taken = counter.count(first, kinds)
        if taken:
            per_host |= dict.fromkeys((host.name for host in group), taken)
    return InstanceCount(guest, per_host, by_sums)

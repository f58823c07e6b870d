# SPDX-License-Identifier: Apache-2.0

"""Count how many more instances of each flavor a fleet takes.

Each host is filled with instances of one flavor, one after another as Nova's
claim would place them, until Placement or the claim refuses one. Placement
compares totals of free resources. These promise more instances if the free
CPUs, pages and devices of a host are in the wrong cells.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import cell_filling
from hpcvirt.fleet import admission
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model


@dataclasses.dataclass(frozen=True)
class InstanceCount:
    """The number of instances of a flavor that a fleet still takes.

    :ivar per_host: host -> the number that it takes
    :ivar by_sums: the number for which the total free CPUs, memory and
        devices of each host are enough
    """

    flavor: flavor_model.Flavor
    per_host: Mapping[str, int]
    by_sums: int

    @property
    def total(self) -> int:
        return sum(self.per_host.values())

    @property
    def pcpus(self) -> int:
        """The PCPUs of all these instances."""
        return self.total * guests.compile_flavor(self.flavor).sums.pcpus


#: Hosts that are alike, and the kinds of their cells.
_Group = tuple[Sequence[state.FleetHost], Sequence[cell_filling.CellKind]]


def count(fleet: state.Fleet,
          flavors: Iterable[flavor_model.Flavor]) -> tuple[InstanceCount, ...]:
    """Count the instances of each flavor alone.

    :raises InvalidInput: for a flavor that Nova would refuse
    """
    kinds = cell_filling.CellKinds()
    groups = [(group, kinds.find(group[0].state.supply))
              for group in state.group_alike(fleet.hosts)]
    return tuple(_count(flavor, fleet, groups) for flavor in flavors)


def _count(flavor: flavor_model.Flavor, fleet: state.Fleet,
           groups: Iterable[_Group]) -> InstanceCount:
    guest = guests.compile_flavor(flavor)
    per_host = {host.name: 0 for host in fleet.hosts}
    by_sums = 0
    fillings = cell_filling.CellFillings(guest.shape)
    for group, kinds in groups:
        first = group[0]
        promised = _promised(guest, first.state)
        taken = fillings.count(first.state.supply, kinds, promised)
        by_sums += promised * len(group)
        if taken:
            per_host |= dict.fromkeys((host.name for host in group), taken)
    return InstanceCount(flavor, per_host, by_sums)


def _promised(guest: guests.Guest, host: state.FleetHostState) -> int:
    """Count the instances for which the totals of a host are enough."""
    if admission.explain_closed(guest, host) is not None or not (
            admission.most_of_one_guest(host.supply).times(guest.sums)):
        return 0
    promised = host.free.times(guest.sums)
    pools = host.supply.pools or ()
    # Requests that the same pools serve share their devices.
    wanted: collections.Counter[tuple[bool, tuple[bool, ...]]] = (
        collections.Counter())
    for request in guest.demand.requests:
        wanted[request.one_pool, tuple(
            request.accepts(pool)[0] for pool in pools)] += request.count
    for (one_pool, matching), count in wanted.items():
        free = [pool.free for pool in itertools.compress(pools, matching)]
        promised = min(promised, sum(each // count for each in free)
                       if one_pool else sum(free) // count)
    return promised

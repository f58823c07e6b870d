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

"""Weighers for guests with a NUMA topology.

Both predict, for each host that passed the filters, the host cells that
Nova's claim will give the guest. ``NUMAFragmentationWeigher`` prefers the
host where this destroys least room for larger guests (whole cells, packages,
hosts, cells with free PCI devices); ``DeviceLocalityWeigher`` the host where
the guest's PCI devices sit on those cells, which matters where the affinity
policy lets them sit elsewhere. In nova.conf of nova-scheduler, as one
list (of two settings only the last one would count)::

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers,
        hpcvirt.nova.weights.all_weighers

    [hpcvirt]
    numa_fragmentation_weight_multiplier = 20.0
    device_locality_weight_multiplier = 20.0

The multipliers can be set for the hosts of an aggregate by metadata of the
same name. All hosts weigh the same for a guest without a NUMA topology, so
that Nova's own weighers choose as they always did.

``[compute]packing_host_numa_cells_allocation_strategy`` must be the same for
the scheduler as on the compute hosts: the prediction goes by it.
"""

import typing
from collections.abc import Sequence

import nova.conf
from nova.scheduler import utils
from nova.scheduler import weights

from hpcvirt import exception
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import placement as placements
from hpcvirt.fit import score
from hpcvirt.fit import supply as supplies
from hpcvirt.nova import adapter
from hpcvirt.nova import config

#: Losses closer than this are equal. It is a fiftieth of a CPU, far above
#: the rounding of floats: Nova stretches the smallest difference among the
#: hosts to the full range from 0 to 1.
_DECIMALS = 1


class _PlacementWeigher(weights.BaseHostWeigher):
    """Weighs hosts by the placement that a guest would get on each."""

    _multiplier = ''

    def __init__(self) -> None:
        super().__init__()
        self._conf = config.ready()

    def weight_multiplier(self, host_state: typing.Any) -> float:
        return utils.get_weight_multiplier(
            host_state, self._multiplier,
            getattr(self._conf.hpcvirt, self._multiplier))

    def weigh_objects(self, weighed_obj_list: Sequence[typing.Any],
                      weight_properties: typing.Any) -> list[float]:
        """Weigh all hosts of a request; more is better."""
        return self._weigh([weighed.obj for weighed in weighed_obj_list],
                           weight_properties)

    def _weigh_object(self, obj: typing.Any,
                      weight_properties: typing.Any) -> float:
        return self._weigh([obj], weight_properties)[0]

    def _weigh(self, hosts: Sequence[typing.Any],
               spec: typing.Any) -> list[float]:
        demand = _demand(spec)
        if demand is None or not self._has_a_say(demand):
            return [0.0] * len(hosts)
        found = [self._weigh_host(demand, spec, host) for host in hosts]
        known = [weight for weight in found if weight is not None]
        # Only a host that no filter of ours has seen can refuse the guest
        # here. It comes after every other.
        last = min(known) - 1.0 if known else 0.0
        return [last if weight is None else weight for weight in found]

    def _weigh_host(self, demand: demands.Demand, spec: typing.Any,
                    host_state: typing.Any) -> float | None:
        prediction = _predict(demand, spec, host_state)
        return (None if prediction is None
                else self._judge(demand, prediction))

    def _has_a_say(self, demand: demands.Demand) -> bool:
        """Whether hosts can differ for this guest."""
        raise NotImplementedError

    def _judge(self, demand: demands.Demand,
               prediction: '_Prediction') -> float:
        """Weigh one host; more is better."""
        raise NotImplementedError


class NUMAFragmentationWeigher(_PlacementWeigher):
    """Prefers hosts where a guest destroys least room for larger ones."""

    _multiplier = 'numa_fragmentation_weight_multiplier'

    def _has_a_say(self, demand: demands.Demand) -> bool:
        return bool(demand.cells)

    def _judge(self, demand: demands.Demand,
               prediction: '_Prediction') -> float:
        return -round(score.loss(
            demand, prediction.supply, prediction.placed), _DECIMALS)


class DeviceLocalityWeigher(_PlacementWeigher):
    """Prefers hosts that have a guest's devices on its own cells."""

    _multiplier = 'device_locality_weight_multiplier'

    def _has_a_say(self, demand: demands.Demand) -> bool:
        return bool(demand.cells and demand.requests)

    def _judge(self, demand: demands.Demand,
               prediction: '_Prediction') -> float:
        return score.locality(demand, prediction.supply, prediction.placed,
                              prediction.providers)


def all_weighers() -> list[type[weights.BaseHostWeigher]]:
    """List the weighers of hpcvirt, for ``weight_classes``."""
    return [NUMAFragmentationWeigher, DeviceLocalityWeigher]


class _Prediction(typing.NamedTuple):
    """What a guest would get on one host.

    :ivar supply: the host before the guest comes
    :ivar placed: the cells and pages that the claim will give it
    :ivar providers: what Placement allocated to each PCI request
    """

    supply: supplies.Supply
    placed: placements.Placement
    providers: devices.Providers


def _demand(spec: typing.Any) -> demands.Demand | None:
    """What the guest asks; None where the choice is left to others.

    A rebuild stays where it is, and of a malformed request the filter says
    what is wrong.
    """
    if utils.request_is_rebuild(spec):
        return None
    try:
        return adapter.demand(spec)
    except exception.InvalidInput:
        return None


def _predict(demand: demands.Demand, spec: typing.Any,
             host_state: typing.Any) -> _Prediction | None:
    """Foretell the placement on a host; None if there would be none."""
    if not host_state.numa_topology:
        return None
    supply = adapter.supply(host_state)
    providers: devices.Providers = ()
    # The scheduler will claim the first candidate that the filters left.
    candidates = host_state.allocation_candidates
    if candidates and adapter.in_placement(spec):
        providers = adapter.providers(spec, candidates[0]['mappings'])
    placed = claim.predict(
        demand, supply,
        nova.conf.CONF.compute.packing_host_numa_cells_allocation_strategy,
        providers)
    if not isinstance(placed, placements.Placement):
        return None
    return _Prediction(supply, placed, providers)

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

Both weighers predict, for each host that passed the filters, the host cells
that Nova's claim will give the guest. ``NUMAFragmentationWeigher`` prefers
the host that keeps the most room for larger guests: whole cells, packages,
hosts, and cells with free PCI devices. ``DeviceLocalityWeigher`` prefers the
host on which the guest's PCI devices are on those cells, which matters where
the affinity policy allows other cells. In nova.conf of nova-scheduler, in one
list, because Nova uses only the last line of this option::

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers,
        hpcvirt.nova.weights.all_weighers

    [hpcvirt]
    numa_fragmentation_weight_multiplier = 20.0
    device_locality_weight_multiplier = 20.0

The multipliers can be set for the hosts of an aggregate by metadata of the
same name. All hosts have the same weight for a guest without a NUMA topology,
so that only Nova's own weighers decide.

``[compute]packing_host_numa_cells_allocation_strategy`` must have the same
value on the scheduler and on the compute hosts, because the prediction depends
on it.
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
from hpcvirt.nova import malformed_host
from hpcvirt.nova import picks

#: Losses that differ by less than this are equal. It is a fiftieth of
#: a CPU, far above the rounding errors of floats, which would decide
#: otherwise: Nova scales even the smallest difference between hosts to the
#: full range from 0 to 1.
_DECIMALS = 1


class _PlacementWeigher(weights.BaseHostWeigher):
    """Weigh hosts by the placement that a guest would get on each."""

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
        """Weigh all hosts of a request; a higher weight is better."""
        return self._weigh([weighed.obj for weighed in weighed_obj_list],
                           weight_properties)

    def _weigh_object(self, obj: typing.Any,
                      weight_properties: typing.Any) -> float:
        return self._weigh([obj], weight_properties)[0]

    def _weigh(self, hosts: Sequence[typing.Any],
               spec: typing.Any) -> list[float]:
        demand = _demand(spec)
        if demand is None or not self._distinguishes_hosts(demand):
            return [0.0] * len(hosts)
        weights_ = [self._weigh_host(demand, spec, host) for host in hosts]
        predicted = [weight for weight in weights_ if weight is not None]
        # Without HPCTopologyFilter a host may have no placement for the
        # guest. Such a host gets the lowest weight.
        lowest = min(predicted) - 1.0 if predicted else 0.0
        return [lowest if weight is None else weight for weight in weights_]

    def _weigh_host(self, demand: demands.Demand, spec: typing.Any,
                    host_state: typing.Any) -> float | None:
        try:
            prediction = _predict(demand, spec, host_state)
            return (None if prediction is None
                    else self._weight(demand, prediction))
        except exception.InvalidInput as exc:
            malformed_host.misfit(host_state, exc)
            return None

    def _distinguishes_hosts(self, demand: demands.Demand) -> bool:
        """Tell whether hosts can differ for this guest."""
        raise NotImplementedError

    def _weight(self, demand: demands.Demand,
               prediction: '_Prediction') -> float:
        """Weigh one host; a higher weight is better."""
        raise NotImplementedError


class NUMAFragmentationWeigher(_PlacementWeigher):
    """Prefer hosts that keep the most room for larger guests."""

    _multiplier = 'numa_fragmentation_weight_multiplier'

    def _distinguishes_hosts(self, demand: demands.Demand) -> bool:
        return bool(demand.cells)

    def _weight(self, demand: demands.Demand,
               prediction: '_Prediction') -> float:
        return -round(score.loss(
            demand, prediction.supply, prediction.placed), _DECIMALS)


class DeviceLocalityWeigher(_PlacementWeigher):
    """Prefer hosts that have the guest's PCI devices on its cells."""

    _multiplier = 'device_locality_weight_multiplier'

    def _distinguishes_hosts(self, demand: demands.Demand) -> bool:
        return bool(demand.cells and demand.requests)

    def _weight(self, demand: demands.Demand,
               prediction: '_Prediction') -> float:
        return score.locality(demand, prediction.supply, prediction.placed,
                              prediction.providers)


def all_weighers() -> list[type[weights.BaseHostWeigher]]:
    """Return the weighers of hpcvirt, for ``weight_classes``."""
    return [NUMAFragmentationWeigher, DeviceLocalityWeigher]


class _Prediction(typing.NamedTuple):
    """The predicted placement of a guest on one host.

    :ivar supply: the resources of the host before the claim
    :ivar placed: the cells and pages that the claim will give it
    :ivar providers: the resource providers of each PCI request
    """

    supply: supplies.Supply
    placed: placements.Placement
    providers: devices.Providers


def _demand(spec: typing.Any) -> demands.Demand | None:
    """Compile the request; None if these weighers have no preference.

    A rebuilt guest stays on its host. A malformed request is reported by the
    filter.
    """
    if utils.request_is_rebuild(spec):
        return None
    try:
        return adapter.demand(spec)
    except exception.InvalidInput:
        return None


def _predict(demand: demands.Demand, spec: typing.Any,
             host_state: typing.Any) -> _Prediction | None:
    """Predict the placement on a host; None if there is none."""
    supply = picks.what_is_left(host_state, spec, demand)[0]
    providers = picks.allocated(host_state, spec)
    placed = claim.predict(
        demand, supply,
        nova.conf.CONF.compute.packing_host_numa_cells_allocation_strategy,
        providers)
    if not isinstance(placed, placements.Placement):
        return None
    return _Prediction(supply, placed, providers)

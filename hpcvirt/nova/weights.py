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
the host that keeps the most room for the guests that the scheduler has seen
requested, above all room that is scarce among the hosts.
``DeviceLocalityWeigher`` prefers the host on which the guest's PCI devices are
on those cells, which matters where the affinity policy allows other cells. In
nova.conf of nova-scheduler, in one list, because Nova uses only the last line
of this option::

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

import threading
import typing
from collections.abc import Sequence

import nova.conf
from nova.scheduler import utils
from nova.scheduler import weights

from hpcvirt import exception
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import mix
from hpcvirt.fit import placement as placements
from hpcvirt.fit import room
from hpcvirt.fit import scarcity
from hpcvirt.fit import score
from hpcvirt.fit import supply as supplies
from hpcvirt.nova import adapter
from hpcvirt.nova import config
from hpcvirt.nova import malformed_host
from hpcvirt.nova import picks

#: The attribute of a RequestSpec that names the weigher which has counted it.
_OBSERVED = 'hpcvirt_observed'


class _Prediction(typing.NamedTuple):
    """The predicted placement of a guest on one host.

    :ivar supply: the resources of the host before the claim
    :ivar placed: the cells and pages that the claim will give it
    :ivar providers: the resource providers of each PCI request
    """

    supply: supplies.Supply
    placed: placements.Placement
    providers: devices.Providers


_Judgement = typing.TypeVar('_Judgement')


class _PlacementWeigher(weights.BaseHostWeigher, typing.Generic[_Judgement]):
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
        if demand is None or not self._prepare(demand, spec):
            return [0.0] * len(hosts)
        judged = [self._judge_host(demand, spec, host) for host in hosts]
        found = self._weights([each for each in judged if each is not None])
        # Without HPCTopologyFilter a host may have no placement for the
        # guest. Such a host gets the lowest weight.
        lowest = min(found) - 1.0 if found else 0.0
        next_weight = iter(found).__next__
        return [lowest if each is None else next_weight() for each in judged]

    def _judge_host(self, demand: demands.Demand, spec: typing.Any,
                    host_state: typing.Any) -> _Judgement | None:
        try:
            prediction = _predict(demand, spec, host_state)
            return (None if prediction is None
                    else self._judge(demand, prediction))
        except exception.InvalidInput as exc:
            malformed_host.misfit(host_state, exc)
            return None

    def _prepare(self, demand: demands.Demand, spec: typing.Any) -> bool:
        """Tell whether hosts can differ for this guest."""
        raise NotImplementedError

    def _judge(self, demand: demands.Demand,
               prediction: _Prediction) -> _Judgement:
        """Judge the placement on one host."""
        raise NotImplementedError

    def _weights(self, judged: Sequence[_Judgement]) -> list[float]:
        """Weigh the hosts; a higher weight is better."""
        raise NotImplementedError


class NUMAFragmentationWeigher(_PlacementWeigher[room.Taken]):
    """Prefer hosts that keep the most room for what is requested."""

    _multiplier = 'numa_fragmentation_weight_multiplier'

    def __init__(self) -> None:
        super().__init__()
        # The scheduler has one weigher for requests in several threads.
        self._lock = threading.Lock()
        self._mix = mix.Mix()
        self._room = room.Room(())

    def _weigh(self, hosts: Sequence[typing.Any],
               spec: typing.Any) -> list[float]:
        with self._lock:
            return super()._weigh(hosts, spec)

    def _prepare(self, demand: demands.Demand, spec: typing.Any) -> bool:
        if not demand.cells:
            return False
        if getattr(spec, _OBSERVED, None) is not self:
            setattr(spec, _OBSERVED, self)
            self._mix.observe(demand)
        if self._room.kinds is not self._mix.kinds:
            self._room = room.Room(self._mix.kinds)
        return True

    def _judge(self, demand: demands.Demand,
               prediction: _Prediction) -> room.Taken:
        return self._room.displaced(demand, prediction.supply,
                                    prediction.placed, prediction.providers)

    def _weights(self, judged: Sequence[room.Taken]) -> list[float]:
        losses = scarcity.losses(
            self._mix.weights(),
            list(map(sum, zip(*(each.before for each in judged),
                              strict=True))),
            [each.fewer for each in judged])
        return scarcity.weights([
            (loss, each.left)
            for loss, each in zip(losses, judged, strict=True)])


class DeviceLocalityWeigher(_PlacementWeigher[float]):
    """Prefer hosts that have the guest's PCI devices on its cells."""

    _multiplier = 'device_locality_weight_multiplier'

    def _prepare(self, demand: demands.Demand,
                 spec: typing.Any) -> bool:  # noqa: ARG002
        return score.has_choice(demand)

    def _judge(self, demand: demands.Demand,
               prediction: _Prediction) -> float:
        return score.locality(demand, prediction.supply, prediction.placed,
                              prediction.providers)

    def _weights(self, judged: Sequence[float]) -> list[float]:
        return list(judged)


def all_weighers() -> list[type[weights.BaseHostWeigher]]:
    """Return the weighers of hpcvirt, for ``weight_classes``."""
    return [NUMAFragmentationWeigher, DeviceLocalityWeigher]


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

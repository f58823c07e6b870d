# SPDX-License-Identifier: Apache-2.0

"""Weighers for instances with a NUMA topology or with PCI devices.

For each host that passed the filters, the weighers predict the host cells
that Nova's claim will give the instance. ``NUMAFragmentationWeigher`` prefers
the host that keeps the most room for the mix of requests that the scheduler
has seen; scarce room counts most. ``DeviceLocalityWeigher`` prefers the host
that has the instance's PCI devices on these cells, if the affinity policy
also allows other cells. ``DeviceSetWeigher`` prefers the host on which these
devices break the fewest whole sets. In nova.conf of nova-scheduler, in one
list, because Nova uses only the last line of this option::

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers,
        hpcvirt.nova.weights.all_weighers

    [hpcvirt]
    numa_fragmentation_weight_multiplier = 20.0
    device_locality_weight_multiplier = 20.0
    device_set_weight_multiplier = 50.0

The multipliers can be set for the hosts of an aggregate by metadata of the
same name. For an instance with neither NUMA topology nor PCI devices, all
hosts have the same weight, so that only Nova's own weighers decide.

``[compute]packing_host_numa_cells_allocation_strategy`` must have the same
value on the scheduler and on the compute hosts, because the prediction depends
on it.
"""

import threading
import typing
from collections.abc import Hashable
from collections.abc import Sequence

from nova.scheduler import utils
from nova.scheduler import weights
from oslo_log import log as logging

from hpcvirt import exception
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import host_room
from hpcvirt.fit import scarcity
from hpcvirt.fit import score
from hpcvirt.nova import adapter
from hpcvirt.nova import charged_supply
from hpcvirt.nova import claim_input
from hpcvirt.nova import config
from hpcvirt.nova import malformed_host

LOG = logging.getLogger(__name__)

_MISSING = object()
#: The most judgements and kinds of requests that are remembered; then all are
#: forgotten.
MAX_KNOWN = 100_000
MAX_KINDS = 1000

#: The attribute of a RequestSpec with the weigher that has counted it.
_OBSERVED = 'hpcvirt_observed'


_Judgement = typing.TypeVar('_Judgement')


class _PlacementWeigher(weights.BaseHostWeigher, typing.Generic[_Judgement]):
    """Weigh hosts by the placement that an instance would get on each."""

    _multiplier = ''

    def __init__(self) -> None:
        super().__init__()
        self._conf = config.register()
        # Kind of request -> record of a host -> judgement. The records of most
        # hosts have not changed since the last request.
        self._known: dict[Hashable, dict[Hashable, typing.Any]] = {}

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
        if len(self._known) > MAX_KINDS or sum(
                map(len, self._known.values()), len(self._known)) > MAX_KNOWN:
            self._known.clear()
        start = claim_input.read(spec, demand)
        known = self._known.setdefault(charged_supply.key(start), {})
        packing = config.read_packing()
        judged = [self._judge_host(start, spec, host, packing, known)
                  for host in hosts]
        found = self._weights([each for each in judged if each is not None])
        # Without HPCTopologyFilter, a host may have no placement for the
        # instance. Such a host gets the lowest weight.
        lowest = min(found) - 1.0 if found else 0.0
        next_weight = iter(found).__next__
        return [lowest if each is None else next_weight() for each in judged]

    def _judge_host(self, start: claim_input.ClaimInput, spec: typing.Any,
                    host_state: typing.Any, packing: bool,
                    known: dict[Hashable, typing.Any],
                    ) -> _Judgement | None:
        """Judge the placement on a host; return None if there is none.

        :param known: the judgement for the record of each host
        """
        try:
            record = charged_supply.find_record(host_state, spec, start,
                                                packing)
            judged = known.get(record, _MISSING)
            if judged is _MISSING:
                prediction = charged_supply.predict(host_state, spec, start,
                                                    packing)
                judged = prediction and self._judge(prediction)
                charged_supply.forget_cells(host_state)
                if record is not None:
                    known[record] = judged
            return None if judged is None else self._recall(judged)
        except Exception as exc:  # noqa: BLE001
            malformed_host.misfit(host_state, exc)
            return None

    def _prepare(self, demand: demands.Demand, spec: typing.Any) -> bool:
        """Return whether hosts can differ for this instance."""
        raise NotImplementedError

    def _judge(self, prediction: charged_supply.Prediction) -> typing.Any:
        raise NotImplementedError

    def _recall(self, judged: typing.Any) -> _Judgement:
        """Evaluate a judgement, which may have been remembered."""
        return typing.cast(_Judgement, judged)

    def _weights(self, judged: Sequence[_Judgement]) -> list[float]:
        raise NotImplementedError


class NUMAFragmentationWeigher(_PlacementWeigher[host_room.Taken]):
    """Prefer hosts that keep the most room for the mix of requests."""

    _multiplier = 'numa_fragmentation_weight_multiplier'

    def __init__(self) -> None:
        super().__init__()
        # Threads of the scheduler share the weigher.
        self._lock = threading.Lock()
        self._mix = scarcity.Mix()
        self._room = host_room.HostRoom((), _warn_of_kind)

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
        if self._room.choose(self._mix.kinds):
            self._known.clear()
        return True

    def _judge(self, prediction: charged_supply.Prediction,
               ) -> host_room.Displaced:
        return self._room.displace(*prediction)

    def _recall(self, judged: host_room.Displaced) -> host_room.Taken:
        return self._room.taken(judged)

    def _weights(self, judged: Sequence[host_room.Taken]) -> list[float]:
        losses = scarcity.losses(
            self._mix.weights(),
            list(map(sum, zip(*[each.before for each in judged],
                              strict=True))),
            [each.fewer for each in judged])
        return scarcity.weights([
            (loss, each.left)
            for loss, each in zip(losses, judged, strict=True)])


class DeviceLocalityWeigher(_PlacementWeigher[float]):
    """Prefer hosts that have the instance's PCI devices on its cells."""

    _multiplier = 'device_locality_weight_multiplier'

    def _prepare(self, demand: demands.Demand,
                 spec: typing.Any) -> bool:  # noqa: ARG002
        return score.has_choice(demand)

    def _judge(self, prediction: charged_supply.Prediction) -> float:
        return score.locality(*prediction)

    def _weights(self, judged: Sequence[float]) -> list[float]:
        return list(judged)


class DeviceSetWeigher(_PlacementWeigher[int]):
    """Prefer hosts on which the instance breaks the fewest whole sets."""

    _multiplier = 'device_set_weight_multiplier'

    def _weigh(self, hosts: Sequence[typing.Any],
               spec: typing.Any) -> list[float]:
        # Most clouds have no sets, and predictions take time.
        if not any(device_sets.TAG in pool for host_state in hosts
                   for pool in getattr(host_state.pci_stats, 'pools', ())):
            return [0.0] * len(hosts)
        return super()._weigh(hosts, spec)

    def _prepare(self, demand: demands.Demand,
                 spec: typing.Any) -> bool:  # noqa: ARG002
        return bool(demand.requests)

    def _judge(self, prediction: charged_supply.Prediction) -> int:
        return device_sets.HostSets(prediction.supply.pools or ()).cost(
            prediction.providers)

    def _weights(self, judged: Sequence[int]) -> list[float]:
        return scarcity.weights([(cost, (0.0, 0)) for cost in judged])


def all_weighers() -> list[type[weights.BaseHostWeigher]]:
    """Return the weighers of hpcvirt, for ``weight_classes``."""
    return [NUMAFragmentationWeigher, DeviceLocalityWeigher,
            DeviceSetWeigher]


def _warn_of_kind(kind: object, error: Exception) -> None:
    """Warn once that instances of a kind cannot be counted.

    They must not fail the requests for other instances.
    """
    if malformed_host.is_first('a kind', type(error).__name__, str(error)):
        LOG.warning('Guests of a kind that was requested cannot be counted, '
                    'so that no host is kept for them: %s', kind,
                    exc_info=error)


def _demand(spec: typing.Any) -> demands.Demand | None:
    """Compile the request; return None if these weighers have no preference.

    A rebuilt instance stays on its host. The filter reports a malformed
    request.
    """
    if utils.request_is_rebuild(spec):
        return None
    try:
        return adapter.demand(spec)
    except exception.InvalidInput:
        return None

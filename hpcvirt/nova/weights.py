# SPDX-License-Identifier: Apache-2.0

"""HPCTopologyWeigher, for instances with a NUMA topology or PCI devices.

For each host that passed the filters, the weigher predicts the host cells that
Nova's claim will give the instance. It prefers the host on which the instance
takes the least room from the mix of requests that the scheduler has seen. Of
equal hosts, it prefers the one with the devices of the instance on its cells,
then the one on which the fewest sets of devices break, then the fullest
(:mod:`hpcvirt.fit.rating`). In nova.conf of nova-scheduler, in one list,
because Nova uses only the last line of this option::

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers,
        hpcvirt.nova.weights.all_weighers

    [hpcvirt]
    topology_weight_multiplier = 20.0
    far_device_cost = 0.0

The multiplier can be set for the hosts of an aggregate by metadata of the same
name. For an instance with neither NUMA topology nor PCI devices, all hosts
have the same weight, so that only Nova's own weighers decide.

``[compute]packing_host_numa_cells_allocation_strategy`` must have the same
value on the scheduler and on the compute hosts, because the prediction depends
on it.
"""

import operator
import threading
import typing
from collections.abc import Hashable
from collections.abc import Sequence

from nova.scheduler import utils
from nova.scheduler import weights

from hpcvirt import exception
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import rating
from hpcvirt.fit import room
from hpcvirt.nova import adapter
from hpcvirt.nova import claim_input
from hpcvirt.nova import config
from hpcvirt.nova import host_record

#: The most ratings that are remembered; then all are forgotten. One takes at
#: most 2 KiB.
MAX_KNOWN = 50_000

#: The attribute of a RequestSpec with the weigher that has counted it.
_OBSERVED = 'hpcvirt_observed'
#: The attribute of a HostState with its rating, and what it depends on.
_RATED = 'hpcvirt_rated'
#: The attribute of a HostState with the loss of room that was compared last.
_LOSS = 'hpcvirt_loss'


class HPCTopologyWeigher(weights.BaseHostWeigher):
    """Prefer hosts on which an instance takes little from others."""

    def __init__(self) -> None:
        super().__init__()
        self._conf = config.register()
        # Threads of the scheduler share the weigher.
        self._lock = threading.Lock()
        self._mix = rating.Mix()
        self._counter = room.RoomCounter(())
        # Kind of request -> record of a host -> its rating, None if the
        # instance has no placement there. The records of most hosts have not
        # changed since the last request.
        self._known: dict[Hashable, dict[
            Hashable, rating.Rating | None]] = {}
        self._number_known = 0

    def weight_multiplier(self, host_state: typing.Any) -> float:
        return utils.get_weight_multiplier(
            host_state, 'topology_weight_multiplier',
            self._conf.hpcvirt.topology_weight_multiplier)

    def weigh_objects(self, weighed_obj_list: Sequence[typing.Any],
                      weight_properties: typing.Any) -> list[float]:
        """Weigh all hosts of a request; a higher weight is better."""
        with self._lock:
            return self._weigh([weighed.obj for weighed in weighed_obj_list],
                               weight_properties)

    def _weigh_object(self, obj: typing.Any,
                      weight_properties: typing.Any) -> float:
        with self._lock:
            return self._weigh([obj], weight_properties)[0]

    def _weigh(self, hosts: Sequence[typing.Any],
               spec: typing.Any) -> list[float]:
        demand = _demand(spec)
        if demand is None or not (demand.cells or (
                demand.requests and any(map(_has_sets, hosts)))):
            return [0.0] * len(hosts)
        if demand.cells and getattr(spec, _OBSERVED, None) is not self:
            setattr(spec, _OBSERVED, self)
            self._mix.observe(demand)
        if (self._counter.kinds is not self._mix.kinds
                or self._number_known > MAX_KNOWN):
            self._counter = room.RoomCounter(self._mix.kinds)
            self._known.clear()
            self._number_known = 0
        start = claim_input.read(spec, demand)
        known = self._known.setdefault(claim_input.key(start), {})
        packing = config.read_packing()
        before = len(known)
        ratings = [self._rate(known, start, spec, host, packing)
                   for host in hosts]
        # A kind of requests takes memory too.
        self._number_known += 1 + len(known) - before
        return self._rank(hosts, ratings)

    def _rank(self, hosts: Sequence[typing.Any],
              ratings: Sequence[rating.Rating | None]) -> list[float]:
        """Weigh hosts by their ratings.

        Without HPCTopologyFilter, a host may have no placement for the
        instance. Such a host gets the lowest weight.
        """
        found = [each for each in ratings if each is not None]
        totals = [sum(counts) for counts in zip(
            *[each.before for each in found], strict=True)]
        losses = rating.losses(self._mix.weights(), totals,
                               [each.fewer for each in found])
        costs = rating.add_far_devices(losses, [each.far for each in found],
                                       self._conf.hpcvirt.far_device_cost)
        fitting = [host for host, rated in zip(hosts, ratings, strict=True)
                   if rated is not None]
        for host_state, loss in zip(fitting, losses, strict=True):
            setattr(host_state, _LOSS, loss)
        ranks = iter(rating.rank([
            (cost, loss, each.far, each.broken_sets, *each.left)
            for cost, loss, each in zip(costs, losses, found, strict=True)]))
        return [0.0 if each is None else next(ranks) for each in ratings]

    def _rate(self, known: dict[Hashable, rating.Rating | None],
              start: claim_input.ClaimInput, spec: typing.Any,
              host_state: typing.Any, packing: bool) -> rating.Rating | None:
        """Rate a host; return None if the instance has no placement there.

        :param known: the ratings of hosts for requests of this kind
        """
        # For the next of several instances, most hosts are as before.
        state = (spec, self._counter, host_state.numa_topology,
                 host_state.num_instances,
                 *host_state.allocation_candidates[:1])
        before, rated = getattr(host_state, _RATED, ((), None))
        if len(before) == len(state) and all(map(operator.is_, before,
                                                 state)):
            return typing.cast(rating.Rating | None, rated)
        try:
            rated = self._recall(known, start, spec, host_state, packing)
        except Exception as exc:  # noqa: BLE001
            host_record.make_misfit(host_state, exc)
            rated = None
        setattr(host_state, _RATED, (state, rated))
        return rated

    def _recall(self, known: dict[Hashable, rating.Rating | None],
                start: claim_input.ClaimInput, spec: typing.Any,
                host_state: typing.Any, packing: bool,
                ) -> rating.Rating | None:
        """Recall the rating of an equal host, or rate the host."""
        record = claim_input.find_record(host_state, spec, start, packing)
        guests = host_state.num_instances
        if (record, guests) in known:
            return known[record, guests]
        prediction = claim_input.predict(host_state, spec, start, packing)
        rated = None
        if prediction is not None:
            rated = rating.rate(
                self._counter, prediction.demand, prediction.supply, guests,
                prediction.placed, prediction.providers)
        claim_input.forget_cells(host_state)
        if record is not None:
            known[record, guests] = rated
        return rated


def all_weighers() -> list[type[weights.BaseHostWeigher]]:
    """Return the weighers of hpcvirt, for ``weight_classes``."""
    return [HPCTopologyWeigher]


def describe(host_state: typing.Any) -> str:
    """Say what the weigher has compared on a host; empty if nothing."""
    _, rated = getattr(host_state, _RATED, ((), None))
    loss = getattr(host_state, _LOSS, None)
    if rated is None or loss is None:
        return ''
    return rating.describe(loss, rated)


def _has_sets(host_state: typing.Any) -> bool:
    pools = getattr(host_state.pci_stats, 'pools', ())
    return any(device_sets.TAG in pool for pool in pools)


def _demand(spec: typing.Any) -> demands.Demand | None:
    """Compile the request; return None if the weigher has no preference.

    A rebuilt instance stays on its host. The filter reports a malformed
    request.
    """
    if utils.request_is_rebuild(spec):
        return None
    try:
        return adapter.demand(spec)
    except exception.InvalidInput:
        return None

# SPDX-License-Identifier: Apache-2.0

"""Predict the placement of a new guest, before Placement allocates devices.

On a host with sets of devices (:mod:`hpcvirt.fit.device_sets`), Placement
offers a guest several choices, and the filter puts the one first that breaks
the fewest whole sets. nova-scheduler does not need this module: it gets the
choices from Placement.
"""

import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import engine
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies

#: Requests for many devices by number have millions of choices.
MAX_OFFERS = 4096

#: The providers of each request in an allocation candidate.
Offer = tuple[tuple[str, ...], ...]


def predict(demand: demands.Demand, supply: supplies.Supply,
            ) -> demands.CellAssignment | reasons.Misfit:
    """Predict the placement of a new guest, whatever its devices.

    :returns: the placement, with the devices that Placement is expected to
        allocate; or why the guest does not fit
    """
    pools = supply.pools or ()
    kind = demand.device_set
    if demand.requests and kind is not None and not any(
            _is_of_kind(pool, kind) for pool in pools):
        # It may have devices, of no set or of smaller ones.
        return reasons.Misfit(reasons.Code.NO_DEVICE_SET, {'kind': kind})
    lacking = _find_not_offered(demand.requests, pools)
    if lacking is not None:
        return lacking
    first_misfit: reasons.Misfit | None = None
    for providers in list_offers(demand, supply.pools):
        placed = claim.predict(demand, supply, providers)
        if isinstance(placed, demands.CellAssignment):
            return (dataclasses.replace(placed, providers=providers)
                    if providers else placed)
        if first_misfit is None:
            first_misfit = placed
            # There can be thousands of allocations.
            if engine.check(demands.Demand(demand.cells), supply):
                break
    return first_misfit or reasons.LateMisfit(_explain, kind, pools)


def _is_of_kind(pool: devices.Pool, kind: str) -> bool:
    return any(each.kind == kind for each in device_sets.sets_of(pool))


def _find_not_offered(requests: Iterable[devices.DeviceRequest],
                      pools: Sequence[devices.Pool],
                      ) -> reasons.Misfit | None:
    """Say for which request Placement offers no device that would serve it.

    The alias of a set names a trait of its place, and the claim compares only
    vendor and product: it would take devices that Placement never allocates.
    """
    for request in requests:
        serving = [pool for pool in pools if devices.serves(pool, request)]
        if serving and not any(devices.is_offered(pool, request)
                               for pool in serving):
            return reasons.Misfit(reasons.Code.DEVICES, {
                'free': 0, 'needed': request.count, 'request': request.name})
    return None


def list_offers(demand: demands.Demand,
                pools: Sequence[devices.Pool] | None) -> list[Offer]:
    """List what Placement can allocate to a new guest.

    The order is that of the filter, which shuffles choices of equal cost. Of
    more than ``MAX_OFFERS`` of a set, the others are left out.

    :returns: an empty allocation if sets do not matter
    """
    pools, kind = pools or (), demand.device_set
    if not demand.requests or (
            kind is None and not any(map(device_sets.sets_of, pools))):
        return [()]
    usable = [pool for pool in pools if pool.provider and pool.free]
    free = {pool.provider: pool.free for pool in usable}
    groups = [usable]
    if kind is not None:
        groups = [own for each, own in device_sets.members(usable).items()
                  if each.kind == kind]
    found: dict[Offer, None] = {}
    for own in groups:
        offers = _serve(demand.requests, own, free)
        found.update(dict.fromkeys(itertools.islice(offers, MAX_OFFERS)))
    if kind is None and not found:
        return [()]
    return sorted(found, key=device_sets.HostSets(usable).cost)


def _serve(requests: Sequence[devices.DeviceRequest],
           pools: Sequence[devices.Pool],
           free: Mapping[str | None, int],
           ) -> Iterator[Offer]:
    """Yield the ways to serve requests from pools.

    Requests that the same pools serve are interchangeable: only which devices
    they get together is varied.
    """
    alike: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for number, request in enumerate(requests):
        # Devices of ports are not in Placement.
        if any('physical_network' in spec for spec in request.specs):
            continue
        names = tuple(pool.provider or '' for pool in pools
                      if devices.is_offered(pool, request))
        alike.setdefault((names, request.affinity), []).append(number)
    for chosen in _choose([
            (names, sum(requests[number].count for number in numbers))
            for (names, _), numbers in alike.items()], free):
        found: list[tuple[str, ...]] = [()] * len(requests)
        for numbers, taken in zip(alike.values(), chosen, strict=True):
            left = iter(taken)
            for number in numbers:
                found[number] = tuple(itertools.islice(
                    left, requests[number].count))
        yield tuple(found)


def _choose(wanted: Sequence[tuple[Sequence[str], int]],
            free: Mapping[str | None, int],
            ) -> Iterator[Offer]:
    """Yield the ways to take numbers of devices from lists of pools."""
    if not wanted:
        yield ()
        return
    (names, count), *others = wanted
    if count <= 0:
        for rest in _choose(others, free):
            yield (), *rest
    elif sum(free[name] for name in names) >= count:
        first, *more = names
        for own in range(min(free[first], count), -1, -1):
            for rest in _choose([(more, count - own), *others],
                                {**free, first: free[first] - own}):
                yield (first,) * own + rest[0], *rest[1:]


def _explain(kind: str, pools: Iterable[devices.Pool]) -> reasons.Misfit:
    """Say which devices of the sets of a kind are in use."""
    causes = []
    for each, own in device_sets.members(pools).items():
        free = sum(pool.free > 0 for pool in own)
        if each.kind == kind and free < each.pools:
            used = ', '.join(pool.provider or '' for pool in own
                             if not pool.free)
            causes.append(reasons.Misfit(reasons.Code.BROKEN_DEVICE_SET, {
                'set': each.number, 'free': free, 'total': each.pools,
                'used': used and f' (in use: {used})'}))
    return reasons.Misfit(
        reasons.Code.NO_DEVICE_SET, {'kind': kind}, tuple(sorted(
            causes, key=lambda cause: -cause.details['free'])))

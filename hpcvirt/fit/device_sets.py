# SPDX-License-Identifier: Apache-2.0

"""Sets of devices of a host that an instance gets as a whole.

Only some sets of GPUs are connected by NVLink, and only some network cards are
below the switch of a GPU. The pools of a host therefore name the sets that
their devices belong to, in the tag ``hpcvirt_device_sets`` of
``[pci]device_spec``, which Nova stores and does not interpret. The value is a
list such as ``gpu2:0:2,gpu4:0:4``: for each kind of sets, the number of the
set on this host, and the number of pools that it consists of. A pool is one
device, or all virtual functions of one card.

An instance whose flavor has ``hpcvirt:device_set=gpu4`` may have the devices
of an allocation candidate only if one set of the kind ``gpu4`` has them all.
"""

import collections
import functools
import itertools
import re
import typing
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from hpcvirt.model import shape as shape_model

#: The tag of ``[pci]device_spec`` that names the sets of a device.
TAG = 'hpcvirt_device_sets'

#: Requests for many devices by number have millions of choices.
MAX_OFFERS = 4096

_LABEL = re.compile(rf'({shape_model.DEVICE_SET_KIND}):'
                    r'(\d{1,6}):([1-9]\d{0,3})')

#: The providers of each request in an allocation candidate.
Offer = tuple[tuple[str, ...], ...]


class DeviceSet(typing.NamedTuple):
    """A set of devices of one host.

    :ivar kind: the kind that flavors request
    :ivar number: tells it from other sets of its kind on this host
    :ivar pools: the number of pools that it consists of
    """

    kind: str
    number: int
    pools: int


@functools.lru_cache(maxsize=1 << 14)
def parse(text: str) -> frozenset[DeviceSet]:
    """Read the value of the tag.

    :raises ValueError: if it is malformed
    """
    found = []
    for term in text.split(',') if text.strip() else ():
        match = _LABEL.fullmatch(term.strip())
        if match is None:
            raise ValueError(f'{TAG} {term[:40]!r} is not of the form '
                             'kind:number:pools')
        found.append(DeviceSet(match[1], int(match[2]), int(match[3])))
    return frozenset(found)


def render(sets: Iterable[DeviceSet]) -> str:
    """Write the value of the tag; the inverse of :func:`parse`."""
    return ','.join(f'{each.kind}:{each.number}:{each.pools}'
                    for each in sorted(sets))


def sets_of(pool: devices.Pool) -> frozenset[DeviceSet]:
    """Return the sets to which the devices of a pool belong.

    :raises ValueError: if the tag of the pool is malformed
    """
    return parse(str(pool.tags.get(TAG) or ''))


def explain(kind: str, pools: Iterable[devices.Pool]) -> reasons.Misfit:
    """Say which devices of the sets of a kind are in use."""
    causes = []
    for each, own in members(pools).items():
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


def members(pools: Iterable[devices.Pool],
            ) -> dict[DeviceSet, list[devices.Pool]]:
    """List the pools of each set."""
    found: dict[DeviceSet, list[devices.Pool]] = {}
    for pool in pools:
        for each in sets_of(pool) if pool.provider else ():
            found.setdefault(each, []).append(pool)
    return dict(sorted(found.items()))


class HostSets:
    """The sets of devices of a host, and what is free of them.

    :ivar known: whether any free device belongs to a set
    """

    def __init__(self, pools: Iterable[devices.Pool]) -> None:
        self._pools = [pool for pool in pools if pool.provider and pool.free]
        self._sets = {pool.provider: sets_of(pool) for pool in self._pools}
        self._free = {pool.provider: pool.free for pool in self._pools}
        counts = collections.Counter(itertools.chain(*self._sets.values()))
        self.known = bool(counts)
        self._whole = {each for each, count in counts.items()
                       if count >= each.pools}

    def is_legal(self, kind: str, providers: devices.Providers) -> bool:
        """Whether one set of a kind has the devices of an instance.

        :param providers: the providers of each request; requests without any
            are not for devices of the set
        """
        common: frozenset[DeviceSet] | None = None
        for provider in itertools.chain(*providers):
            own = self._sets.get(provider, frozenset())
            common = own if common is None else common & own
        return common is not None and any(
            each.kind == kind for each in common)

    def cost(self, providers: devices.Providers) -> int:
        """Rate the whole sets that an instance breaks or uses up.

        A set is whole if all of its pools have free devices. It counts with
        the square of its size, so that one large set counts more than the
        smaller ones inside it.
        """
        taken = collections.Counter(itertools.chain(*providers))
        hit = {each for provider, count in taken.items()
               if count >= self._free.get(provider, 0)
               for each in self._sets.get(provider, ())}
        return sum(each.pools ** 2 for each in hit & self._whole)

    def offers(self, kind: str | None,
               requests: Sequence[devices.DeviceRequest],
               ) -> list[Offer]:
        """List the allocation candidates that Placement and the filter leave.

        They are in the order of their cost; the filter shuffles equals. Of
        more than ``MAX_OFFERS`` of a set, the others are left out.

        :param kind: None for a guest that needs no set
        """
        found = dict.fromkeys(
            offer for own in ([self._pools] if kind is None else [
                own for each, own in members(self._pools).items()
                if each.kind == kind])
            for offer in itertools.islice(
                _serve(requests, own, self._free), MAX_OFFERS))
        return sorted(found, key=self.cost)


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
                      if devices.serves(pool, request))
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


def offers(demand: demands.Demand, pools: Sequence[devices.Pool] | None,
           ) -> list[Offer]:
    """List what Placement can allocate to a new guest, the best first.

    :returns: an empty allocation if sets do not matter
    """
    pools = pools or ()
    kind = demand.device_set
    if not demand.requests or (
            kind is None and not any(map(sets_of, pools))):
        return [()]
    found = HostSets(pools).offers(kind, demand.requests)
    return found if kind else found or [()]

# SPDX-License-Identifier: Apache-2.0

"""Tell which allocations of Placement take devices that are alike.

Placement offers a guest that requests 6 of the 16 devices of a host up to
8,008 allocations. Most of them differ only in which of several equal devices
they name, and Nova's claim treats them alike.
"""

import collections
from collections.abc import Hashable
from collections.abc import Sequence

from hpcvirt.fit import devices


class AlikeDevices:
    """Finds the kinds of the allocations to the requests of one guest.

    Two pools are alike if they are on the same cell, have the same number of
    free devices and are accepted by the same requests. If it also matters what
    the allocation leaves for other guests, their tags must be equal.

    A pool is like no other if a request without an allocation may use it,
    because such a request takes the first pools; if another pool is of the
    same card, which the devices of one pool make unusable; or if its resource
    provider has several pools.
    """

    def __init__(self, requests: Sequence[devices.DeviceRequest],
                 pools: Sequence[devices.Pool],
                 by_tags: bool = False) -> None:
        """Prepare to compare allocations.

        :param requests: the requests of the guest
        :param pools: the pools of the host
        :param by_tags: whether the tags of alike pools must be equal
        """
        self._by_tags = by_tags
        self._requests = requests
        self._pools = pools
        # Which requests have an allocation -> provider -> a key of its pool.
        self._keys: dict[tuple[bool, ...], dict[str, str]] = {}

    def kind(self, providers: devices.Providers) -> Hashable:
        """Return a key: allocations with equal keys get the same answer.

        The key is made of texts and numbers in a fixed order.

        :param providers: what Placement allocated to each request
        """
        if not any(providers):
            return ()
        allocated = tuple(map(bool, providers))
        keys = self._keys.get(allocated)
        if keys is None:
            keys = self._keys[allocated] = self._find_keys(allocated)
        # For each provider, which requests get how many of its devices.
        taken: dict[str, list[int]] = {}
        for number, own in enumerate(providers):
            for provider in own:
                taken.setdefault(provider, []).append(number)
        return allocated, tuple(sorted(
            (keys.get(provider, provider), tuple(numbers))
            for provider, numbers in taken.items()))

    def _find_keys(self, allocated: Sequence[bool]) -> dict[str, str]:
        """Return the key of the pool of each provider that is like others."""
        pools = [pool for pool in self._pools if pool.provider]
        # What a compute host reports need not be hashable.
        cards = collections.Counter(repr(pool.tags.get('address'))
                                    for pool in self._pools
                                    if 'address' in pool.tags)
        names = collections.Counter(pool.provider for pool in pools)
        keys: dict[str, str] = {}
        for pool in pools:
            accepted = [request.accepts(pool) for request in self._requests]
            in_order = any(
                matches and (request.one_pool or not own)
                for (matches, _), request, own in zip(
                    accepted, self._requests, allocated, strict=True))
            if (pool.provider and not in_order and names[pool.provider] == 1
                    and cards[repr(pool.tags.get('address'))] < 2):
                keys[pool.provider] = repr((
                    pool.cell, pool.free, accepted,
                    _list_tags(pool) if self._by_tags else ''))
        return keys


def _list_tags(pool: devices.Pool) -> str:
    """Return the tags of a pool that other guests may name, as a text."""
    return repr(sorted((tag, repr(value)) for tag, value in pool.tags.items()
                       if tag not in devices.PLACE_TAGS))

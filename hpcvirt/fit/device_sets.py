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

from hpcvirt import kept_text
from hpcvirt.fit import devices
from hpcvirt.model import shape as shape_model

#: The tag of ``[pci]device_spec`` that names the sets of a device.
TAG = 'hpcvirt_device_sets'

#: The most sets that a device can belong to.
MAX_SETS = 64

_LABEL = re.compile(rf'({shape_model.DEVICE_SET_KIND}):'
                    r'(\d{1,6}):([1-9]\d{0,3})')


class DeviceSet(typing.NamedTuple):
    """A set of devices of one host.

    :ivar kind: the kind that flavors request
    :ivar number: tells it from other sets of its kind on this host
    :ivar pools: the number of pools that it consists of
    """

    kind: str
    number: int
    pools: int


# A text and its sets take up to 12 KiB.
@functools.lru_cache(maxsize=1 << 10)
def parse(text: str) -> frozenset[DeviceSet]:
    """Read the value of the tag.

    :raises ValueError: if it is malformed or too long
    """
    found = []
    terms = kept_text.check(text, TAG).split(',') if text.strip() else []
    if len(terms) > MAX_SETS:
        raise ValueError(f'{TAG} names {len(terms)} sets, and at most '
                         f'{MAX_SETS} are read')
    for term in terms:
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
        hit: set[DeviceSet] = set()
        for provider, count in taken.items():
            if count >= self._free.get(provider, 0):
                hit.update(self._sets.get(provider, ()))
        return sum(each.pools ** 2 for each in hit & self._whole)

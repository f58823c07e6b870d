# SPDX-License-Identifier: Apache-2.0

"""Find the sets of devices of a host that an instance may get as a whole.

A device has one place in the sets of each size, so that the sets of one size
do not overlap. There are as many as possible. Among the choices with equally
many, a set lies within one of each larger size where that is possible, and the
first devices get the nearest others: those with the most links, then those of
their cell, then those below their switch.

A fact that the wiring does not say is taken for neither true nor false: a set
needs what is known. All devices of a host are a set by any rule.
"""

import functools
import itertools
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.flavors import device_choice
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring as wiring_model

#: The devices of a set, ascending by address.
Members = tuple[str, ...]


class Places:
    """Where the devices of a host are, and which are linked."""

    def __init__(self, host: host_model.Host) -> None:
        wiring = host.wiring or wiring_model.Wiring()
        self.partitions = wiring.partitions
        self._cells = {device.address: device.cell for device in host.devices}
        self._links = {frozenset(link.ends): link.count or 1
                       for link in wiring.links}
        self._paths = {}
        for each in wiring.attachments:
            path = [bridge.address for bridge in wiring.path(each)]
            top = (path or [each.address])[0]
            # The root bus, which the bridges of one root complex share.
            self._paths[each.address] = (top.rpartition(':')[0], *path)

    def common(self, one: str, other: str) -> int:
        """Count the root bus and the bridges that two devices share."""
        pairs = zip(self._paths.get(one, ()), self._paths.get(other, ()),
                    strict=False)
        return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1],
                                            pairs)))

    def closeness(self, one: str, other: str) -> tuple[int, bool, int]:
        """Rate how near two devices are: links, cell, bridges."""
        cell = self._cells.get(one)
        return (self._links.get(frozenset((one, other)), 0),
                cell is not None and cell == self._cells.get(other),
                self.common(one, other))

    def is_near(self, one: str, other: str,
                near: device_choice.Nearness | None) -> bool:
        """Whether a device is known to be near to another.

        :param near: None for any device
        """
        _, same_cell, common = self.closeness(one, other)
        if near is device_choice.Nearness.SWITCH:
            return common > 1
        return same_cell or near is not device_choice.Nearness.CELL


def make_key(host: host_model.Host) -> Hashable:
    """Return what the wiring of hosts with equal sets has in common."""
    wiring = host.wiring
    return wiring and (
        tuple((each.address, each.above) for each in wiring.bridges),
        tuple((each.address, each.above) for each in wiring.attachments),
        wiring.links, wiring.unknown, wiring.partitions and frozenset(
            each.devices for each in wiring.partitions))


def find_sets(host: host_model.Host, addresses: Sequence[str],
              wanted: device_choice.Devices,
              ) -> Mapping[int, tuple[Members, ...]]:
    """Find the sets of each size.

    :param addresses: the devices, ascending
    :returns: size -> its sets; none if there are none
    """
    places = Places(host)
    found: dict[int, tuple[Members, ...]] = {}
    for size in sorted(wanted.sizes, reverse=True):
        legal = _list_legal(places, addresses, wanted.sets, size)
        larger = [each for others in found.values() for each in others]
        found[size] = _choose(places, addresses, legal, larger, size)
    return dict(sorted(found.items()))


def find_unknown(host: host_model.Host, wanted: device_choice.Devices,
                 ) -> str | None:
    """Name the fact that a rule needs and the topology does not say."""
    wiring = host.wiring
    needed = {wanted.sets}
    if wanted.near is device_choice.Nearness.SWITCH:
        needed.add(device_choice.SetRule.SWITCH)
    for rule, fact, unknown in (
            (device_choice.SetRule.LINK, 'which GPUs are linked',
             wiring is None
             or wiring_model.UnknownWiring.DEVICE_LINKS in wiring.unknown),
            (device_choice.SetRule.PARTITION,
             'the partitions of the fabric manager',
             wiring is None or wiring.partitions is None),
            (device_choice.SetRule.SWITCH, 'the switches above devices',
             wiring is None)):
        if unknown and rule in needed:
            return fact
    return None


def _list_legal(places: Places, addresses: Sequence[str],
                rule: device_choice.SetRule | device_choice.AddressLists
                | None, size: int) -> list[Members]:
    """List the sets of a size that the rule allows, overlapping ones too."""
    known = set(addresses)
    if isinstance(rule, tuple):
        lists: Iterable[Members] = rule
    elif size in (1, len(addresses)):
        lists = itertools.combinations(addresses, size)
    elif rule is device_choice.SetRule.PARTITION:
        lists = (each.devices for each in places.partitions or ())
    else:
        at = 0 if rule is device_choice.SetRule.LINK else 2
        return [each for each in itertools.combinations(addresses, size)
                if all(places.closeness(*pair)[at]
                       for pair in itertools.combinations(each, 2))]
    return list(dict.fromkeys(each for each in lists
                              if len(each) == size and known.issuperset(each)))


def _choose(places: Places, addresses: Sequence[str],
            legal: Sequence[Members], larger: Sequence[Members],
            size: int) -> tuple[Members, ...]:
    """Choose sets that do not overlap."""
    straddling = {each for each in legal for other in larger
                  if not set(other).isdisjoint(each)
                  and not set(other).issuperset(each)}

    def rate(members: Members) -> tuple[object, ...]:
        near = [places.closeness(*pair)
                for pair in itertools.combinations(members, 2)]
        return (members in straddling,
                [-sum(values) for values in zip(*near, strict=True)],
                [addresses.index(member) for member in members])

    bits = {address: 1 << at for at, address in enumerate(addresses)}
    # The sets of which each device is the first.
    first: dict[int, list[tuple[int, Members]]] = {
        bit: [] for bit in bits.values()}
    for members in sorted(legal, key=rate):
        first[min(bits[member] for member in members)].append(
            (sum(bits[member] for member in members), members))

    @functools.cache
    def best(free: int) -> tuple[int, int, tuple[Members, ...]]:
        """Return the sets of free devices: all, those inside, which."""
        lowest = free & -free
        most = free.bit_count() // size
        found: tuple[int, int, tuple[Members, ...]] = 0, 0, ()
        if not most:
            return found
        for mask, members in first[lowest]:
            if mask & free == mask:
                count, inside, rest = best(free ^ mask)
                value = count + 1, inside + (members not in straddling)
                if value > found[:2]:
                    found = *value, (members, *rest)
                if found[:2] == (most, most):
                    return found
        without = best(free ^ lowest)
        return max(found, without, key=lambda each: each[:2])

    chosen: tuple[Members, ...] = best((1 << len(addresses)) - 1)[2]
    return chosen

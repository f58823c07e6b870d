# SPDX-License-Identifier: Apache-2.0

"""The sets of devices that instances get on a host, and their names.

Nova makes one request group in Placement for each device, and Placement knows
nothing of sets. Each device therefore has a trait for its place in the sets of
a kind, such as ``CUSTOM_HPCVIRT_GPU4_2``, and a PCI alias for each place, such
as ``gpu4-2``; a flavor requests one device of each place. Each free set is
then one allocation candidate, and the filter drops candidates that mix sets.

Which sets of devices an instance may have follows from the wiring
(:func:`find_sets`). A device has one place in the sets of each size, so that
the sets of one size do not overlap. There are as many as possible. Among the
choices with equally many, a set lies within one of each larger size where that
is possible, and the first devices get the nearest others: those with the most
links, then those of their cell, then those below their switch. A fact that the
wiring does not say is taken for neither true nor false: a set needs what is
known. All devices of a host are a set by any rule.

Devices of further entries are assigned to sets so that a card serves as few
sets as possible (:func:`assign_near`).
"""

import dataclasses
import fractions
import functools
import itertools
import math
import typing
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.fit import device_sets
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
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
        larger = list(itertools.chain.from_iterable(found.values()))
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


def _straddles(members: Members, larger: Iterable[Members]) -> bool:
    """Whether one of the larger sets has some of the members, but not all."""
    for other in larger:
        if (not set(other).isdisjoint(members)
                and not set(other).issuperset(members)):
            return True
    return False


def _choose(places: Places, addresses: Sequence[str],
            legal: Sequence[Members], larger: Sequence[Members],
            size: int) -> tuple[Members, ...]:
    """Choose sets that do not overlap."""
    straddling = {each for each in legal if _straddles(each, larger)}

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


def _list_cards(users: Mapping[str, Sequence[int]],
                own: int) -> tuple[str, ...]:
    """List the card of each device of a set.

    :param users: card -> the set of each of its devices
    """
    cards: list[str] = []
    for card, those in users.items():
        cards += [card] * those.count(own)
    return tuple(cards)


def assign_near(near: Sequence[Sequence[str]], counts: Mapping[str, int],
                number: int) -> list[tuple[str, ...]]:
    """Give each set a number of devices.

    If the devices suffice for all sets, each gets them. Otherwise the first
    sets do.

    :param near: the cards that are near to each set, the best first
    :param counts: card -> its devices
    :param number: the devices of each set
    :returns: the card of each device of each set; empty for a set without
    """
    found: list[tuple[str, ...]] = [()] * len(near)
    most = min(max(counts.values(), default=0), number * len(near))
    for limit in range(1, most + 1):
        users: dict[str, list[int]] = {card: [] for card in counts}
        for own in range(len(near)):
            before = {card: [*those] for card, those in users.items()}
            if not all(_assign_one(own, near, users, counts, limit, number,
                                   set()) for _ in range(number)):
                users = before
        found = [_list_cards(users, own) for own in range(len(near))]
        if all(found):
            break
    return found


def _assign_one(own: int, near: Sequence[Sequence[str]],
                users: dict[str, list[int]], counts: Mapping[str, int],
                limit: int, number: int, tried: set[str]) -> bool:
    """Give a set one more device, by moving others to other cards."""
    # Several devices of one card only if the set needs them.
    able = [card for card in near[own] if card not in tried
            and users[card].count(own) < -(-number // len(near[own]))]
    for card in able:
        if len(users[card]) < min(counts[card], limit):
            users[card].append(own)
            return True
    for card in able:
        tried.add(card)
        for other in dict.fromkeys(users[card]):
            if other != own and _assign_one(other, near, users, counts, limit,
                                            number, tried):
                users[card][users[card].index(other)] = own
                return True
    return False


def order_cards(assigned: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Order the cards of each set, so that a card has one place in all.

    A card that sets share has several places only if these sets share other
    cards in a way that allows no single place.
    """
    places: dict[str, int] = {}
    ordered = []
    for cards in assigned:
        slots = [''] * len(cards)
        # Cards that have a place come first.
        for card in sorted(cards, key=lambda each: each not in places):
            place = places.get(card, slots.index(''))
            if slots[place]:
                place = slots.index('')
            slots[place] = card
            places.setdefault(card, place)
        ordered.append(tuple(slots))
    return ordered


_CodeAndText = tuple[warning.WarningCode, str]


def make_trait(alias: str) -> str:
    """Return the trait of a place from its PCI alias."""
    return f'CUSTOM_HPCVIRT_{alias.upper().replace("-", "_")}'


class PlacedDevice(typing.NamedTuple):
    """A device in its place in a set.

    :ivar alias: the PCI alias of the place
    :ivar wanted: the entry of the profile that it belongs to
    """

    alias: str
    address: str
    wanted: device_choice.Devices


class PlannedSet(typing.NamedTuple):
    """A set of devices.

    :ivar size: the number of its devices of the first entry
    :ivar label: its kind, its number on the host, and how many cards it has
    """

    size: int
    label: device_sets.DeviceSet
    members: tuple[PlacedDevice, ...]


@dataclasses.dataclass(frozen=True)
class PlannedSets:
    """The sets of a host.

    :ivar offered: the devices of all entries that are in a set
    :ivar problems: what is left out, and why
    """

    sets: tuple[PlannedSet, ...] = ()
    offered: tuple[offered_devices.OfferedDevice, ...] = ()
    problems: tuple[_CodeAndText, ...] = ()

    @functools.cached_property
    def by_size(self) -> Mapping[int, PlannedSet]:
        """The last set of each size; all have the same places."""
        return {each.size: each for each in self.sets}

    def make_requests(self, size: int, cells: int,
                      ) -> tuple[str | None,
                                 tuple[shape_model.GuestDevices, ...]]:
        """Make the requests of a guest.

        For a single device any will do. Without a set, the instance can be
        moved like any other with devices.

        With several required devices of several guest cells, Nova's claim
        pins CPUs of the wrong cell (defect B).

        :param cells: the cells of the guest
        :returns: the kind of its set, None for a single device; and one
            request for each place
        """
        found = self.by_size[size]
        affinity = (found.members[0].wanted.affinity if cells == 1
                    else shape_model.PCIAffinity.PREFERRED)
        return found.label.kind if len(found.members) > 1 else None, tuple(
            shape_model.GuestDevices(each.alias, 1, affinity)
            for each in found.members)

    def write_tags(self, address: str) -> dict[str, str]:
        """Write what ``[pci]device_spec`` says of a device's sets."""
        traits, labels = {}, []
        for each in self.sets:
            own = [make_trait(device.alias) for device in each.members
                   if device.address == address]
            traits.update(dict.fromkeys(own))
            labels += [each.label] if own and len(each.members) > 1 else []
        return {'traits': ','.join(traits),
                device_sets.TAG: device_sets.render(labels)}


#: A host without sets.
NONE = PlannedSets()


def narrow(profile: profiles.Profile, sets: PlannedSets) -> profiles.Profile:
    """Leave the sizes that a host has sets of in a profile."""
    if not profile.has_sets:
        return profile
    first, *others = profile.devices
    return dataclasses.replace(profile, devices=(
        dataclasses.replace(first, sizes=tuple(sets.by_size)), *others))


def count_devices(guest: shape_model.Shape, number: int,
                  wanted: device_choice.Devices) -> int:
    """Count the devices of an entry that a guest requests.

    :param number: the number of the entry in the profile
    """
    if guest.device_set is None:
        return 0 if number else sum(device.count for device in guest.devices)
    start = (f'{guest.device_set}-{wanted.alias}' if number
             else guest.device_set)
    return sum((each.alias or '').rpartition('-')[0] == start
               for each in guest.devices)


def plan_sets(host: host_model.Host,
              entries: Sequence[device_choice.Devices],
              types: Mapping[device_choice.Devices, str]) -> PlannedSets:
    """Plan the sets of a host.

    :param types: the type of the PCI alias of each entry
    """
    first, *others = entries
    found = {wanted: offered_devices.choose_devices(host, wanted,
                                                    types[wanted])
             for wanted in entries}
    addresses = [item.device.address for item in found[first]]
    if len(addresses) > device_choice.MAX_IN_SETS:
        return PlannedSets(problems=((warning.WarningCode.SETS_MISSING, (
            f'the host has {len(addresses)} {first.alias}, and sets are '
            f'planned for at most {device_choice.MAX_IN_SETS}')),))
    problems: list[_CodeAndText] = []
    for wanted in entries if addresses else ():
        unknown = find_unknown(host, wanted)
        if unknown:
            problems.append((warning.WarningCode.SETS_UNKNOWN, (
                f'the topology does not say {unknown}; sets of '
                f'{wanted.alias} are formed only from what it says')))
    planned: list[PlannedSet] = []
    for size, sets in find_sets(host, addresses, first).items():
        left = [each for each in addresses
                if not any(each in members for members in sets)]
        if left:
            rule = 'list' if isinstance(first.sets, tuple) else first.sets
            problems.append((warning.WarningCode.SETS_MISSING, (
                f'{_are(left)} in no set of {size} {first.alias} (sets: '
                f'{rule})')))
        members = [[PlacedDevice(f'{first.alias}{size}-{place}', address,
                                 first)
                    for place, address in enumerate(each)] for each in sets]
        for wanted in others:
            share = fractions.Fraction(len(found[wanted]) * size,
                                       max(len(addresses), 1))
            members = _add(host, wanted, found[wanted], members, share,
                           problems)
        if all(len(each) == 1 for each in members):
            members = [[each._replace(alias=first.alias)]
                       for (each,) in members]
        planned += [
            PlannedSet(size, device_sets.DeviceSet(
                f'{first.alias}{size}', number,
                len({device.address for device in each})), tuple(each))
            for number, each in enumerate(members)]
    placed = itertools.chain.from_iterable(each.members for each in planned)
    used = {device.address for device in placed}
    offered: list[offered_devices.OfferedDevice] = []
    for wanted, items in found.items():
        offered += [item for item in items if item.device.address in used]
        idle = [item.device.address for item in items
                if item.device.address not in used]
        if idle:
            problems.append((warning.WarningCode.DEVICE_IN_NO_SET, (
                f'{_are(idle)} in no set, so that no instance gets '
                f'{"it" if len(idle) == 1 else "them"} as {wanted.alias}')))
    return PlannedSets(tuple(planned), tuple(offered), tuple(problems))


def _add(host: host_model.Host, wanted: device_choice.Devices,
         items: Sequence[offered_devices.OfferedDevice],
         sets: list[list[PlacedDevice]], share: fractions.Fraction,
         problems: list[_CodeAndText]) -> list[list[PlacedDevice]]:
    """Add the devices of a further entry to sets of one size.

    :param share: the cards of the entry that are in proportion to a set
    :param problems: gets what is left out
    :returns: the sets that have enough of them
    """
    if not sets:
        return sets
    kind, name = sets[0][0].alias.rpartition('-')[0], wanted.alias
    number = wanted.per_instance
    if number is None:
        # Several sets can share a card that has virtual functions.
        virtual = wanted.kind is device_choice.DeviceKind.VF
        number = math.ceil(share) if virtual else math.floor(share)
        if number < share:
            problems.append((warning.WarningCode.NEAR_DEVICES_MISSING, (
                f'instances with {kind} get {number or "no"} {name}, because '
                f'their share of {len(items)} is {float(share):.3g}')))
        if not number:
            return sets
    places = Places(host)
    cards = {item.device.address: item.count for item in items}
    near = [[card for _, card in sorted(
        (-max(places.common(each.address, card) for each in members), card)
        for card in cards if any(
            places.is_near(each.address, card, wanted.near)
            for each in members))] for members in sets]
    assigned = order_cards(assign_near(near, cards, number))
    poor = [members[0].address for members, own
            in zip(sets, assigned, strict=True) if not own]
    if poor:
        problems.append((warning.WarningCode.NEAR_DEVICES_MISSING, (
            f'{len(poor)} of {len(sets)} sets {kind} are left out, because '
            f'no {number} {name} are near ({wanted.near}) and left for them: '
            f'those of {words.join_names(poor, "devices")}')))
    return [[*members, *(PlacedDevice(f'{kind}-{name}-{place}', card, wanted)
                         for place, card in enumerate(own))]
            for members, own in zip(sets, assigned, strict=True) if own]


def _are(addresses: Sequence[str]) -> str:
    return (words.join_names(addresses, 'devices')
            + (' is' if len(addresses) == 1 else ' are'))

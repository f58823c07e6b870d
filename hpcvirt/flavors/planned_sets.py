# SPDX-License-Identifier: Apache-2.0

"""The sets of devices that instances get on a host, and their names.

Nova makes one request group in Placement for each device, and Placement knows
nothing of sets. Each device therefore has a trait for its place in the sets of
a kind, such as ``CUSTOM_HPCVIRT_GPU4_2``, and a PCI alias for each place, such
as ``gpu4-2``; a flavor requests one device of each place. Each free set is
then one allocation candidate, and the filter drops candidates that mix sets.
"""

import dataclasses
import fractions
import functools
import math
import typing
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.fit import device_sets
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import legal_sets
from hpcvirt.flavors import near_devices
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model

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
        unknown = legal_sets.find_unknown(host, wanted)
        if unknown:
            problems.append((warning.WarningCode.SETS_UNKNOWN, (
                f'the topology does not say {unknown}; sets of '
                f'{wanted.alias} are formed only from what it says')))
    planned: list[PlannedSet] = []
    for size, sets in legal_sets.find_sets(host, addresses, first).items():
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
    used = {device.address for each in planned for device in each.members}
    for wanted, items in found.items():
        idle = [item.device.address for item in items
                if item.device.address not in used]
        if idle:
            problems.append((warning.WarningCode.DEVICE_IN_NO_SET, (
                f'{_are(idle)} in no set, so that no instance gets '
                f'{"it" if len(idle) == 1 else "them"} as {wanted.alias}')))
    return PlannedSets(
        tuple(planned), tuple(item for items in found.values()
                              for item in items if item.device.address in used
                              ), tuple(problems))


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
                f'{len(items)} cannot be divided into shares of '
                f'{float(share):g}')))
        if not number:
            return sets
    places = legal_sets.Places(host)
    cards = {item.device.address: item.count for item in items}
    near = [[card for _, card in sorted(
        (-max(places.common(each.address, card) for each in members), card)
        for card in cards if any(
            places.is_near(each.address, card, wanted.near)
            for each in members))] for members in sets]
    assigned = near_devices.order(near_devices.assign(near, cards, number))
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

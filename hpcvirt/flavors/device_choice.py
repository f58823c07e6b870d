# SPDX-License-Identifier: Apache-2.0

"""The choices of an operator for the devices of instances.

These are the entries of ``devices`` in a profile, and their checks. A flavor
has devices of one kind, or sets of devices of several kinds: the first entry
then has the rule of the sets, and the others say how near to its devices
theirs must be.
"""

import dataclasses
import enum
import itertools
import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Annotated
from typing import Any

from hpcvirt import serialization
from hpcvirt.model import shape
from hpcvirt.topology import pci


class DeviceKind(enum.StrEnum):
    """What an instance gets: a VF, the whole device or a vGPU."""

    VF = 'vf'
    WHOLE = 'whole'
    VGPU = 'vgpu'


class Ports(enum.StrEnum):
    """How an instance gets its virtual functions."""

    ALIAS = 'alias'
    NEUTRON = 'neutron'


class SetRule(enum.StrEnum):
    """Which devices form a set.

    ``link``: each is linked with each other, by NVLink or xGMI; ``partition``:
    those of a partition of the fabric manager; ``switch``: those below one
    switch or one root complex. All devices of a host form a set by any rule.
    """

    LINK = 'link'
    PARTITION = 'partition'
    SWITCH = 'switch'


class Nearness(enum.StrEnum):
    """How near to a device of the set a device of another kind must be."""

    SWITCH = 'same switch'
    CELL = 'same cell'
    ANY = 'any'


#: Lists of addresses.
AddressLists = tuple[tuple[str, ...], ...]

SHARE = 'share'
MAX_DEVICES = 32
#: A host with 16 has 256 allocation candidates for a set of four or eight,
#: which is what Placement and nova-scheduler take in time for 32 hosts.
MAX_IN_SETS = 16


def _per_instance(value: object) -> int | None:
    """Read a number of devices, or ``share`` as None."""
    if value == SHARE:
        return None
    if type(value) is not int or not 1 <= value <= MAX_DEVICES:
        raise serialization.make_error(
            f'a whole number from 1 to {MAX_DEVICES}, or {SHARE}', value)
    return value


def _sets(value: object) -> SetRule | AddressLists | None:
    """Read a rule of sets, or lists of addresses."""
    if value is None or value in list(SetRule):
        return None if value is None else SetRule(str(value))
    lists = value if isinstance(value, list) else []
    if not lists or not all(
            isinstance(each, list)
            and 0 < len(each) == len(set(map(str, each)))
            and all(isinstance(item, str) and pci.ADDRESS.fullmatch(item)
                    for item in each) for each in lists):
        raise serialization.make_error(
            f'one of {", ".join(SetRule)}, or a list of lists of different '
            "addresses such as '0000:41:00.0'", value)
    return tuple(tuple(sorted(each, key=pci.address_key)) for each in lists)


_Some = Annotated[int, serialization.whole(1, 4096)]
_Hex = Annotated[str, serialization.text(
    '[0-9a-f]{4}', "'15b3' (four lower-case hexadecimal digits, in quotes)")]
_Name = Annotated[str, serialization.text('[A-Za-z0-9_.-]{1,64}', 'hpc-vf')]
_Trait = Annotated[str, serialization.text('[A-Z][A-Z0-9_]{0,254}',
                                           'CUSTOM_GPU_A40')]


class CountedAs(enum.StrEnum):
    """The columns of a workload that count devices."""

    VFS = 'vfs'
    GPUS = 'gpus'
    NOTHING = ''


#: Mellanox has made network cards only.
_NETWORK_VENDORS = frozenset({'15b3'})


@dataclasses.dataclass(frozen=True)
class Devices:
    """Devices of each instance, all of one kind.

    :ivar per_instance: how many; None for a number in proportion to the cores,
        or to the devices of the first entry
    :ivar vendor_id: the vendor of the devices; None for every device with VFs
    :ivar product_id: the product of the devices; for the kind ``vf`` that of
        the VFs, which a PCI alias needs
    :ivar vfs_per_device: the number of VFs to create; None for as many as a
        device supports
    :ivar physical_network: the physical network of Neutron ports
    :ivar mdev_type: the type of the mediated devices that are the vGPUs
    :ivar vgpus_per_device: how many vGPUs of this type a device gives
    :ivar traits: the traits that a host must have, with vGPUs
    :ivar sets: the rule of sets, or the sets; None if any devices will do
    :ivar sizes: the numbers of devices in sets, ascending
    :ivar near: how near to the devices of the first entry
    """

    kind: DeviceKind = DeviceKind.VF
    per_instance: Annotated[int | None, _per_instance] = 1
    affinity: shape.PCIAffinity = shape.PCIAffinity.PREFERRED
    ports: Ports = Ports.ALIAS
    alias: _Name = 'hpc-vf'
    vendor_id: _Hex | None = None
    product_id: _Hex | None = None
    vfs_per_device: _Some | None = None
    physical_network: _Name | None = None
    mdev_type: _Name | None = None
    vgpus_per_device: _Some | None = None
    resource_class: Annotated[str, serialization.text(
        'VGPU|CUSTOM_[A-Z0-9_]{1,248}', 'VGPU or CUSTOM_VGPU_LARGE')] = 'VGPU'
    traits: tuple[_Trait, ...] = ()
    sets: Annotated[SetRule | AddressLists | None, _sets] = None
    sizes: tuple[Annotated[
        int, serialization.whole(1, MAX_IN_SETS)], ...] = ()
    near: Nearness | None = None

    @property
    def has_alias(self) -> bool:
        """Whether flavors name a PCI alias."""
        return (self.kind is not DeviceKind.VGPU
                and self.ports is Ports.ALIAS)

    @property
    def counts_as(self) -> CountedAs:
        """What a workload counts these devices as.

        A whole network card is neither: it comes with the GPUs that it is
        near, or with the cores.
        """
        if self.kind is DeviceKind.VF:
            return CountedAs.VFS
        if self.near is not None or self.vendor_id in _NETWORK_VENDORS:
            return CountedAs.NOTHING
        return CountedAs.GPUS

    @property
    def request_name(self) -> str:
        """The alias, network or resource class that an instance requests."""
        if self.kind is DeviceKind.VGPU:
            return self.resource_class
        return self.alias if self.has_alias else self.physical_network or ''

    def allows(self, number: int) -> bool:
        """Whether an instance may have a number of devices."""
        if self.sets is not None:
            return number in self.sizes
        return self.per_instance in (None, number)

    def make_request(self, count: int) -> shape.GuestDevices:
        """Make the request of a guest for a number of devices."""
        if self.kind is DeviceKind.VGPU:
            return shape.GuestDevices(
                None, count, resource_class=self.resource_class)
        if self.has_alias:
            return shape.GuestDevices(self.alias, count, self.affinity)
        return shape.GuestDevices(
            None, count, self.affinity, self.physical_network)


#: The keys of each kind of devices, and those that it requires.
_KEYS: Mapping[DeviceKind, tuple[frozenset[str], tuple[str, ...]]] = {
    DeviceKind.VF: (frozenset({'affinity', 'ports', 'alias', 'vfs_per_device',
                               'physical_network', 'near'}), ()),
    DeviceKind.WHOLE: (frozenset({'affinity', 'alias', 'sets', 'sizes',
                                  'near'}), ('vendor_id', 'product_id')),
    DeviceKind.VGPU: (frozenset({'mdev_type', 'vgpus_per_device',
                                 'resource_class', 'traits'}),
                      ('vendor_id', 'product_id', 'mdev_type',
                       'vgpus_per_device')),
}
_OF_EVERY_KIND = frozenset({'kind', 'per_instance', 'vendor_id',
                            'product_id'})


def complete(entries: Sequence[Devices]) -> tuple[Devices, ...]:
    """Fill in the sizes that explicit sets have."""
    return tuple(
        dataclasses.replace(each, sizes=tuple(sorted(
            {*map(len, each.sets)} if isinstance(each.sets, tuple)
            else each.sizes)))
        for each in entries)


def find_faults(entries: Sequence[Devices],
                content: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Find wrong keys and contradictions.

    :param content: the keys of each entry, as the operator wrote them
    """
    has_sets = bool(entries) and entries[0].sets is not None
    if len(entries) > 1 and not has_sets:
        yield (f'devices: has {len(entries)} entries, but without sets in the '
               'first, the flavors of a profile have devices of one kind; '
               'add sets, or write a profile for each kind')
    for number, (devices, given) in enumerate(zip(entries, content,
                                                  strict=True)):
        where = f'devices[{number}]' if number else 'devices'
        for fault in itertools.chain(
                _wrong_keys(devices, given), _contradictions(devices),
                _faults_of_sets(entries, number, given) if has_sets else ()):
            yield f'{where}.{fault}'


def _wrong_keys(devices: Devices, given: Mapping[str, Any]) -> Iterator[str]:
    """Find keys that the kind does not have, or requires."""
    kind = devices.kind
    own, needed = _KEYS[kind]
    for key in given:
        if key == 'affinity' and kind is DeviceKind.VGPU:
            yield ('affinity: Nova cannot place vGPUs close to the cells of a '
                   'guest; remove the key')
        if key not in own | _OF_EVERY_KIND:
            yield f'{key}: is not a key of devices of the kind {kind}'
    for key in needed:
        if given.get(key) is None:
            yield f'{key}: is required for devices of the kind {kind}'
    if (devices.per_instance is None and kind is not DeviceKind.WHOLE
            and devices.near is None):
        yield (f'per_instance: must be a number with the kind {kind}; '
               f'{SHARE} is for the kind {DeviceKind.WHOLE}')
    if devices.sizes and devices.sets is None and devices.near is None:
        yield 'sizes: needs sets'


def _contradictions(devices: Devices) -> Iterator[str]:
    if devices.ports is Ports.NEUTRON and devices.physical_network is None:
        yield 'ports: neutron needs devices.physical_network'
    if devices.kind is DeviceKind.VF and devices.has_alias and (
            devices.vendor_id is None or devices.product_id is None):
        yield ('ports: alias needs devices.vendor_id and '
               'devices.product_id (of the VF), which are part of a PCI alias')
    if devices.kind is DeviceKind.WHOLE and devices.alias == Devices.alias:
        yield ('alias: whole devices need an alias of their own; '
               f'{Devices.alias} is the alias of virtual functions')
    if devices.kind is DeviceKind.VGPU and (
            devices.per_instance or 0) > (devices.vgpus_per_device or 0):
        yield ('per_instance: must not be more than '
               'devices.vgpus_per_device, because all vGPUs of an instance '
               'come from one card')


def _faults_of_sets(entries: Sequence[Devices], number: int,
                    given: Mapping[str, Any]) -> Iterator[str]:
    """Find the faults of an entry of sets."""
    devices, first = entries[number], not number
    for key in (('near', 'per_instance') if first else
                ('sets', 'sizes', 'affinity')):
        if key in given:
            yield (f'{key}: is not for the first entry of sets' if first else
                   f'{key}: is that of the first entry; remove the key')
    if devices.ports is Ports.NEUTRON:
        yield ('ports: must be alias in sets: Placement, which chooses the '
               'set, does not know devices with a physical_network')
    if first:
        yield from _faults_of_rule(devices, given)
        return
    if devices.kind is DeviceKind.VGPU:
        yield 'kind: vGPUs cannot be part of a set'
    if devices.near is None:
        yield f'near: is required ({", ".join(Nearness)})'
    if any(devices.alias == other.alias
           or devices.product_id == other.product_id
           for other in entries[:number]):
        yield 'alias: has the alias or the product of another entry'


def _faults_of_rule(devices: Devices,
                    given: Mapping[str, Any]) -> Iterator[str]:
    """Find the faults of the first entry of sets."""
    if not re.fullmatch('[A-Za-z0-9_-]{1,29}', devices.alias):
        yield ('alias: must have at most 29 letters, digits, - and _, because '
               'sets are named after it')
    sizes = devices.sizes
    if not sizes or len(set(sizes)) < len(sizes) or sizes[-1] > MAX_IN_SETS:
        yield (f'sizes: must be different numbers up to {MAX_IN_SETS}, such '
               'as [1, 2, 4, 8]')
    if isinstance(devices.sets, tuple):
        if 'sizes' in given:
            yield 'sizes: is the length of each list in sets; remove the key'
        for one, other in itertools.combinations(devices.sets, 2):
            if len(one) == len(other) and not set(one).isdisjoint(other):
                yield ('sets: lists of one length must not overlap, because a '
                       'device has one place in the sets of a size, but '
                       f'{min(set(one) & set(other))} is in two lists of '
                       f'{len(one)}')

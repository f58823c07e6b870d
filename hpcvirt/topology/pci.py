# SPDX-License-Identifier: Apache-2.0

"""Select and check the PCI functions of a topology, and their wiring.

The class code decides whether a function is listed; for display controllers,
the vendor does as well. Every source reports both. The driver does not matter,
because a function bound to vfio-pci is still a network adapter, nor does the
SR-IOV capability, which hwloc does not report. Virtual functions have the
class of their physical function, and are listed as well.
"""

import collections
import itertools
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Set
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring as wiring_model

#: TotalVFs of the SR-IOV capability has 16 bits.
MAX_VFS = 65535

#: Few hosts have 10 bridges above a device.
_MAX_DEPTH = 32
_MAX_NUMBER = 2 ** 31 - 1

#: Base classes (PCI Code and ID Assignment Specification) whose functions are
#: all listed.
_BASE_CLASSES = {
    0x02,  # network controllers: Ethernet, InfiniBand, Omni-Path
    0x12,  # processing accelerators
}

#: Other classes that are listed. Disk controllers of the host (0100, 0104,
#: 0106 and 0107) and the security processor of every EPYC (1080) are not.
_CLASSES = {
    0x0108,  # NVMe
    0x0302,  # 3D controllers: GPUs without a display
    0x0380,  # other display controllers: some GPUs without a display
    0x0b40,  # co-processors: QuickAssist
    0x0c06,  # InfiniBand, before the class 0207 existed
}

#: GPUs with a display (of NVIDIA and AMD) have the same class as the VGA
#: console of nearly every server, but another vendor.
_VGA = 0x0300
_GPU_VENDORS = {'10de', '1002'}

#: A PCI address as the kernel writes it.
ADDRESS = re.compile(r'[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]')
_HEX_ID = re.compile(r'[0-9a-f]{4}')
_DRIVER = re.compile(r'[\w.+-]{1,64}', re.ASCII)


def is_listed(class_code: int, vendor_id: str) -> bool:
    """Whether a topology lists functions of this class and vendor.

    :param class_code: base class and subclass: 0x0200 is Ethernet
    """
    return (class_code >> 8 in _BASE_CLASSES or class_code in _CLASSES
            or (class_code == _VGA and vendor_id in _GPU_VENDORS))


def list_virtual(devices: Iterable[host_model.Device],
                 ) -> list[host_model.Device]:
    """List the virtual functions among the devices of a host.

    A topology does not name the device of a virtual function. If it does not
    name the product of a device's virtual functions either, all other
    functions of the vendor on the same bus count as virtual functions.
    """
    found = list(devices)
    able = [device for device in found if device.total_vfs]
    products = {(device.vendor_id, device.vf_product_id) for device in able}
    buses = {(device.vendor_id, _bus(device)) for device in able
             if device.vf_product_id is None}
    return [device for device in found if not device.total_vfs and (
        (device.vendor_id, device.product_id) in products
        or (device.vendor_id, _bus(device)) in buses)]


def _bus(device: host_model.Device) -> str:
    return device.address.rpartition(':')[0]


def check_devices(where: str, cells: Set[int],
                  devices: Iterable[host_model.Device],
                  ) -> tuple[host_model.Device, ...]:
    """Check devices and sort them.

    :param where: the file or directory, for errors
    :param cells: the numbers of the existing cells
    :returns: ascending by address
    :raises InvalidInput: for an impossible or repeated device
    """
    found: dict[str, host_model.Device] = {}
    for device in devices:
        if not ADDRESS.fullmatch(device.address):
            raise exception.InvalidInput(
                where, f'{device.address[:40]!r} is not a PCI address '
                'such as 0000:41:00.0')
        for fault in _find_faults(device, cells, device.address in found):
            raise exception.InvalidInput(f'{where}: device {device.address}',
                                         fault)
        found[device.address] = device
    return tuple(found[address] for address in sorted(found, key=address_key))


def _find_faults(device: host_model.Device, cells: Set[int],
                 is_twice: bool) -> Iterator[str]:
    if is_twice:
        yield 'occurs twice'
    for number in (device.vendor_id, device.product_id, device.vf_product_id):
        if number is not None and not _HEX_ID.fullmatch(number):
            yield (f'{number[:40]!r} is not a PCI id of four hexadecimal '
                   'digits')
    if device.cell is not None and device.cell not in cells:
        yield f'is on cell {device.cell}, which does not exist'
    if not 0 <= device.total_vfs <= MAX_VFS:
        yield f'{device.total_vfs} VFs are not within 0 to {MAX_VFS}'
    if device.driver is not None and not _DRIVER.fullmatch(device.driver):
        yield f'{device.driver[:40]!r} is not the name of a driver'


def address_key(address: str) -> tuple[int, ...]:
    """Sort PCI addresses by number: domains may have more than 4 digits."""
    return tuple(int(part, 16) for part in re.split('[:.]', address))


def check_wiring(where: str, wiring: wiring_model.Wiring,
                 devices: Iterable[host_model.Device],
                 ) -> wiring_model.Wiring:
    """Check a wiring and sort its parts.

    Bridges without a device below them are left out. A device that the source
    does not place is on a root bus.

    :param where: the file or directory, for errors
    :param devices: the devices of the host, ascending by address
    :raises InvalidInput: for a contradiction or an impossible value
    """
    addresses = [device.address for device in devices]
    for fault in _find_faults_of_wiring(wiring, frozenset(addresses)):
        raise exception.InvalidInput(f'{where}: wiring', fault)
    found = {each.address: each for each in wiring.attachments}
    attached = tuple(found.get(address) or wiring_model.Attachment(address)
                     for address in addresses)
    bridges = set(itertools.chain.from_iterable(map(wiring.path, attached)))
    return wiring_model.Wiring(
        bridges=tuple(sorted(
            bridges, key=lambda bridge: address_key(bridge.address))),
        attachments=attached,
        links=tuple(sorted(wiring.links, key=lambda link: [
            *map(address_key, link.ends)])),
        partitions=wiring.partitions and tuple(sorted(
            wiring.partitions, key=lambda each: each.number)),
        unknown=wiring.unknown)


def _find_faults_of_wiring(wiring: wiring_model.Wiring,
                           devices: Set[str]) -> Iterator[str]:
    places: list[wiring_model.Bridge | wiring_model.Attachment] = [
        *wiring.bridges, *wiring.attachments]
    for each in places:
        if not ADDRESS.fullmatch(each.address):
            yield f'{each.address[:40]!r} is not a PCI address'
        above, depth = each.above, 0
        while above is not None and depth <= _MAX_DEPTH:
            if above not in wiring.by_address:
                yield (f'{each.address} is below {above[:40]!r}, which is not '
                       'a bridge')
            above, depth = wiring.by_address[above].above, depth + 1
        if depth > _MAX_DEPTH:
            yield (f'{each.address} is below itself or below more than '
                   f'{_MAX_DEPTH} bridges')
    for bridge in wiring.bridges:
        for control in (bridge.acs or frozenset()).difference(
                wiring_model.ACS_CONTROLS):
            yield f'{control[:40]!r} is not a control of ACS'
    yield from _find_faults_of_sets(wiring, devices)
    names = [*(each.address for each in places),
             *(f'the {link.kind} of {" and ".join(link.ends)}'
               for link in wiring.links),
             *(f'partition {each.number}' for each in wiring.partitions or ())]
    for name, count in collections.Counter(names).most_common(1):
        if count > 1:
            yield f'{name} occurs twice'
    for number in _list_numbers(serialization.dump(wiring)):
        if not 0 <= number <= _MAX_NUMBER:
            yield f'{number} is not within 0 to {_MAX_NUMBER}'


def _find_faults_of_sets(wiring: wiring_model.Wiring,
                         devices: Set[str]) -> Iterator[str]:
    for link in wiring.links:
        if len([*link.ends]) != 2:
            yield f'a link has {len(link.ends)} ends'
    for named in (*((each.address,) for each in wiring.attachments),
                  *(link.ends for link in wiring.links),
                  *(each.devices for each in wiring.partitions or ())):
        for address in named:
            if address not in devices:
                yield f'{address[:40]!r} is not a device of this host'
        if not named or [*named] != sorted(set(named), key=address_key):
            yield (f'{" and ".join(named)[:80]!r} are not the devices of a '
                   'link or a partition, each once, in ascending order')


def _list_numbers(plain: Any) -> Iterator[float]:
    if isinstance(plain, dict | list):
        for value in plain.values() if isinstance(plain, dict) else plain:
            yield from _list_numbers(value)
    elif isinstance(plain, int | float):
        yield plain

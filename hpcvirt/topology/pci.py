# SPDX-License-Identifier: Apache-2.0

"""Select and check the PCI functions of a topology.

The class code decides whether a function is listed; for display controllers,
the vendor does as well. Every source reports both. The driver does not matter,
because a function bound to vfio-pci is still a network adapter, nor does the
SR-IOV capability, which hwloc does not report. Virtual functions have the
class of their physical function, and are listed as well.
"""

import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Set

from hpcvirt import exception
from hpcvirt.model import host as host_model

#: TotalVFs of the SR-IOV capability has 16 bits.
MAX_VFS = 65535

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

_ADDRESS = re.compile(r'[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]')
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
        if not _ADDRESS.fullmatch(device.address):
            raise exception.InvalidInput(
                where, f'{device.address[:40]!r} is not a PCI address '
                'such as 0000:41:00.0')
        for fault in _find_faults(device, cells, device.address in found):
            raise exception.InvalidInput(f'{where}: device {device.address}',
                                         fault)
        found[device.address] = device
    return tuple(found[address] for address in sorted(found, key=_address_key))


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


def _address_key(address: str) -> tuple[int, ...]:
    """Sort PCI addresses by number: domains may have more than 4 digits."""
    return tuple(int(part, 16) for part in re.split('[:.]', address))

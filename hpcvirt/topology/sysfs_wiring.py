# SPDX-License-Identifier: Apache-2.0

"""Read from a sysfs how devices are wired.

The folder of a device, to which its link in /sys/bus/pci/devices leads, is
inside of that of the bridge above it. A capture has a list of these links.

What a bridge is, and its ACS, is in its configuration space. The kernel gives
the first 64 bytes to any user, and the capabilities behind them to root only.
Registers: PCI Express Base Specification 6.0, 7.5 and 7.7.
"""

import contextlib
import itertools
import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology import capture
from hpcvirt.topology import hardware_state
from hpcvirt.topology import pci
from hpcvirt.topology import sysfs_tree
from hpcvirt.topology import tool_output

_PCI = 'sys/bus/pci/devices'
_GROUPS = 'sys/kernel/iommu_groups'

#: The base classes of displays and accelerators.
_GPU_CLASSES = ('0x03', '0x12')

_TYPES = {4: wiring.PortKind.ROOT, 5: wiring.PortKind.UPSTREAM,
          6: wiring.PortKind.DOWNSTREAM, 7: wiring.PortKind.BRIDGE,
          8: wiring.PortKind.BRIDGE}

#: Extended capabilities follow the 256 bytes of conventional PCI.
_EXTENDED = 0x100
_WHOLE = 0x1000

_PCI_EXPRESS = 0x10
#: Of 4096 bytes; larger codes are reserved.
_MAX_SIZE_CODE = 5
_ACS = 0x0d
_ATS = 0x0f


def read(tree: sysfs_tree.SysfsTree, devices: Sequence[host_model.Device],
         ) -> wiring.Wiring | None:
    """Read the wiring of the devices of a host.

    :returns: None if the copy does not say which bridge a device is below
    :raises InvalidInput: if a file is damaged, or two contradict
    """

    def output(name: str) -> str:
        return '' if tree.is_running else tree.text(
            f'{tool_output.FOLDER}/{name}') or ''

    addresses = {device.address for device in devices}
    above = _read_above(tree, addresses, output('pci'))
    if above is None:
        return None
    known, device_links = tool_output.read_links(output, tree.where)
    speeds = tool_output.read_speeds(output)
    ports = tool_output.read_bridges(output)
    groups = _read_groups(tree)
    virtual = set(pci.list_virtual(devices))
    gpus = {device.address for device in devices if device not in virtual
            and (tree.text(f'{_PCI}/{device.address}/class') or '').startswith(
                _GPU_CLASSES)}
    bridges = [_make_bridge(tree, address, above[address], ports)
               for address in above.keys() - addresses]
    attachments = [wiring.Attachment(
        address, above[address], _read_link(tree, address),
        groups.get(address), speeds.get(address, ()),
        hardware_state.read_bars(
            tree.text(f'{_PCI}/{address}/resource') or ''))
        for address in addresses]
    links = [each.link for each in bridges]
    links += [each.link for each in attachments]
    unknown = {
        wiring.UnknownWiring.PCIE_LINKS: not any(links) and _lacks(
            tree, f'{_PCI}/0000:00:00.0/current_link_speed'),
        wiring.UnknownWiring.IOMMU_GROUPS: not groups and _lacks(
            tree, f'{_GROUPS}/0/devices/0000:00:00.0'),
        wiring.UnknownWiring.DEVICE_LINKS: len(gpus) > 1 and not gpus <= known}
    return wiring.Wiring(
        tuple(bridges), tuple(attachments), tuple(device_links),
        tool_output.read_partitions(output, tree.where),
        unknown=frozenset(fact for fact, holds in unknown.items()
                          if holds and devices))


def _lacks(tree: sysfs_tree.SysfsTree, name: str) -> bool:
    """Whether a copy may lack a file that the host had."""
    return not tree.is_running and bool(capture.CaptureList(
        tree.text(capture.LIST) or '').find_gap(name))


def _read_above(tree: sysfs_tree.SysfsTree, addresses: Iterable[str],
                captured: str) -> dict[str, str | None] | None:
    """Find the bridge above each device, and above each of these bridges.

    :param captured: the targets of the links, for a capture
    :returns: None if that is not known of a device
    """
    above: dict[str, str | None] = {}
    targets = {target.rpartition('/')[2]: target
               for target in captured.split()}
    for address in addresses:
        target = tree.link_target(f'{_PCI}/{address}') or targets.get(address)
        folders = (target or '').split('/')
        if folders[-1] != address or len(folders) < 2:
            return None
        for before, folder in itertools.pairwise(folders):
            if pci.ADDRESS.fullmatch(folder):
                # Behind Intel VMD, a root bus is in the folder of a device.
                place = before if pci.ADDRESS.fullmatch(before) else None
                if above.setdefault(folder, place) != place:
                    raise exception.InvalidInput(
                        f'{tree.where}: {folder}', 'is below two bridges')
    return above


def _read_groups(tree: sysfs_tree.SysfsTree) -> dict[str, int]:
    """Read the number of the IOMMU group of each device."""
    groups: dict[str, int] = {}
    for name in tree.names(_GROUPS):
        if re.fullmatch('[0-9]{1,9}', name):
            for address in tree.names(f'{_GROUPS}/{name}/devices'):
                groups[address] = int(name)
    return groups


def _read_link(tree: sysfs_tree.SysfsTree,
               address: str) -> wiring.PCIeLink | None:
    now = hardware_state.read_link(tree.text, f'{_PCI}/{address}/current')
    most = hardware_state.read_link(tree.text, f'{_PCI}/{address}/max')
    if now is None or 0 in now:
        return None
    return wiring.PCIeLink(*now, *(most or (None, None)))


def _make_bridge(tree: sysfs_tree.SysfsTree, address: str, above: str | None,
                 ports: Mapping[str, tool_output.Port]) -> wiring.Bridge:
    config = None
    with contextlib.suppress(exception.InvalidInput):
        # A bridge that does not answer may not keep others from being read.
        config = tree.data(f'{_PCI}/{address}/config')
    kind, acs = read_config(config or b'')
    if acs is None:
        kind, acs = ports.get(address, (kind, acs))
    return wiring.Bridge(address, above, kind, _read_link(tree, address), acs)


def read_config(data: bytes) -> tuple[wiring.PortKind | None,
                                      frozenset[str] | None]:
    """Read the kind and the ACS of a bridge; None for either if unknown.

    :param data: the content of the file ``config``, whole or in part
    """
    place = _find(data, _PCI_EXPRESS)
    if not place:
        return (None, None) if place is None else (
            wiring.PortKind.BRIDGE, frozenset())
    return _TYPES.get(data[place + 2] >> 4), _read_acs(data)


def read_controls(data: bytes) -> tool_output.Controls | None:
    """Read how a function may transfer data; None if it is unknown.

    :param data: as for :func:`read_config`
    """
    express, ats = _find(data, _PCI_EXPRESS), _find(data, _ATS, _WHOLE)
    if express is None or ats is None or len(data) < _WHOLE:
        return None
    return (bool(data[express + 8] & 0x10) if express else None,
            bool(data[ats + 7] & 0x80) if ats else None)


def read_sizes(data: bytes) -> tool_output.TransferSizes | None:
    """Read the sizes of transfers; None without them, or if unknown.

    :param data: as for :func:`read_config`
    """
    place = _find(data, _PCI_EXPRESS)
    if not place or len(data) < place + 10:
        return None
    payload, most = data[place + 8] >> 5, data[place + 4] & 7
    request = data[place + 9] >> 4 & 7
    if max(payload, most, request) > _MAX_SIZE_CODE:
        return None
    return tool_output.TransferSizes(128 << payload, 128 << most,
                                     128 << request)


def _read_acs(data: bytes) -> frozenset[str] | None:
    place = _find(data, _ACS, _WHOLE)
    if place and len(data) > place + 6:
        return frozenset(
            name for bit, name in enumerate(wiring.ACS_CONTROLS)
            if data[place + 6] >> bit & 1)
    return frozenset() if place == 0 else None


def _find(data: bytes, number: int, end: int = _EXTENDED) -> int | None:
    """Find a capability; 0 if there is none, None if that is unknown.

    :param end: of the space that the chain is in
    """
    place, mask, shift = _EXTENDED, 0xffff, 20
    if end == _EXTENDED and len(data) >= end:
        place, mask, shift = data[0x34] if data[6] & 0x10 else 0, 0xff, 8
    for _ in range(end // 4):
        place &= end - 4
        if not place:
            return 0 if len(data) >= end else None
        header = int.from_bytes(data[place:place + 4], 'little')
        if header & mask == number:
            return place
        place = header >> shift
    return None

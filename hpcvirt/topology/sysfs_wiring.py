# SPDX-License-Identifier: Apache-2.0

"""Read from a sysfs how devices are wired.

The folder of a device, to which its link in /sys/bus/pci/devices leads, is
inside of that of the bridge above it. A capture has a list of these links.
"""

import contextlib
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology import capture
from hpcvirt.topology import config_space
from hpcvirt.topology import hardware_state
from hpcvirt.topology import pci
from hpcvirt.topology import sysfs_tree
from hpcvirt.topology import tool_output

_PCI = 'sys/bus/pci/devices'
_GROUPS = 'sys/kernel/iommu_groups'


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
    try:
        known, device_links = tool_output.read_links(output)
    except exception.InvalidInput as exc:
        raise exception.InvalidInput(
            f'{tree.where}: {tool_output.FOLDER}/{exc.where}',
            exc.what) from exc
    speeds = tool_output.read_speeds(output)
    ports = tool_output.read_bridges(output)
    groups = dict(_read_groups(tree))
    gpus = set(_list_gpus(tree, devices))
    bridges = [_make_bridge(tree, address, above[address], ports)
               for address in above.keys() - addresses]
    attachments = [wiring.Attachment(
        address, above[address], _read_link(tree, address),
        groups.get(address), speeds.get(address, ())) for address in addresses]
    has_links = any(each.link for each in (*bridges, *attachments))
    unknown = {
        wiring.UnknownWiring.PCIE_LINKS: not has_links and _lacks(
            tree, f'{_PCI}/0000:00:00.0/current_link_speed'),
        wiring.UnknownWiring.IOMMU_GROUPS: not groups and _lacks(
            tree, f'{_GROUPS}/0/devices/0000:00:00.0/captured'),
        wiring.UnknownWiring.DEVICE_LINKS: len(gpus) > 1 and not gpus <= known}
    return wiring.Wiring(
        tuple(bridges), tuple(attachments), tuple(device_links),
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
        if folders[-1] != address:
            return None
        for before, folder in itertools.pairwise(folders):
            if pci.ADDRESS.fullmatch(folder):
                # Behind Intel VMD, a root bus is in the folder of a device.
                above[folder] = (before if pci.ADDRESS.fullmatch(before)
                                 else None)
    return above


def _read_link(tree: sysfs_tree.SysfsTree,
               address: str) -> wiring.PCIeLink | None:
    now = hardware_state.read_link(tree.text, f'{_PCI}/{address}/current')
    most = hardware_state.read_link(tree.text, f'{_PCI}/{address}/max')
    if now is None or 0 in now:
        return None
    return wiring.PCIeLink(*now, *(most or (None, None)))


def _read_groups(tree: sysfs_tree.SysfsTree) -> Iterator[tuple[str, int]]:
    for name in tree.names(_GROUPS):
        if name.isascii() and name.isdigit() and len(name) < 10:
            for address in tree.names(f'{_GROUPS}/{name}/devices'):
                yield address, int(name)


def _make_bridge(tree: sysfs_tree.SysfsTree, address: str, above: str | None,
                 ports: Mapping[str, tool_output.Port]) -> wiring.Bridge:
    config = None
    with contextlib.suppress(exception.InvalidInput):
        # A bridge that does not answer may not keep others from being read.
        config = tree.data(f'{_PCI}/{address}/config')
    kind, acs = config_space.read_bridge(config or b'')
    if acs is None:
        kind, acs = ports.get(address, (kind, acs))
    return wiring.Bridge(address, above, kind, _read_link(tree, address), acs)


def _list_gpus(tree: sysfs_tree.SysfsTree,
               devices: Sequence[host_model.Device]) -> Iterator[str]:
    """List displays and accelerators without virtual functions."""
    virtual = pci.list_virtual(devices)
    for device in devices:
        kind = tree.text(f'{_PCI}/{device.address}/class') or ''
        if kind[:4] in ('0x03', '0x12') and device not in virtual:
            yield device.address

# SPDX-License-Identifier: Apache-2.0

"""Draw how devices are wired: bridges as trees, and links as lists."""

import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import words
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring as model
from hpcvirt.topology import pci
from hpcvirt.topology.draw import boxes
from hpcvirt.topology.draw import cell_diagram

#: With these, which Linux switches on, all requests pass the IOMMU.
_ISOLATING = {'SrcValid', 'ReqRedir', 'CmpltRedir', 'UpstreamFwd'}


def draw(host: host_model.Host, width: int) -> list[str]:
    """Draw the wiring of a host.

    :param width: columns to fill
    :returns: lines, none if it has no devices or the wiring is unknown
    """
    if host.wiring is None:
        return []
    lines = []
    said = {each.address for each in host.wiring.attachments
            if each != model.Attachment(each.address)}
    for cell in (*(cell.id for cell in host.cells), None):
        own = {device.address: device for device in host.devices
               if device.cell == cell and device.address in said}
        if own:
            lines.append('wiring without a cell' if cell is None
                         else f'wiring of cell {cell}')
            lines += _draw_tree(host.wiring, own, width)
    for part in (*_list_links(host.wiring.links),
                 *(f'partition {each.number}{" (active)" * each.active}: '
                   f'{" ".join(each.devices)}'
                   for each in host.wiring.partitions or ())):
        lines += _wrap(0, width, part)
    return lines


def list_unknown(host: host_model.Host) -> list[str]:
    """List the facts about the wiring that the source does not report."""
    if host.wiring is None:
        return ['the wiring of devices'] if host.devices else []
    unknown = [*map(str, sorted(host.wiring.unknown))]
    if any(bridge.acs is None for bridge in host.wiring.bridges):
        unknown.append('the ACS of bridges')
    if host.wiring.links and host.wiring.partitions is None:
        unknown.append('partitions of GPUs')
    return unknown


def _draw_tree(wiring: model.Wiring, devices: Mapping[str, host_model.Device],
               width: int) -> Iterator[str]:
    """Draw each bridge above the bridges and devices below it."""
    groups: dict[tuple[model.Bridge, ...], list[model.Attachment]] = {}
    for each in wiring.attachments:
        if each.address in devices:
            groups.setdefault(wiring.path(each), []).append(each)
    drawn: set[model.Bridge] = set()
    for path, members in sorted(groups.items(), key=lambda group: [
            pci.address_key(bridge.address) for bridge in group[0]]):
        for depth, bridge in enumerate(path, 1):
            if bridge not in drawn:
                facts = (bridge.kind or 'bridge', _say(bridge.link),
                         _describe_acs(bridge.acs))
                yield from _wrap(depth, width, f'{bridge.address} '
                                 + ', '.join(filter(None, facts)))
        drawn.update(path)
        for line in _describe_devices(members, devices,
                                      path[-1].link if path else None):
            yield from _wrap(len(path) + 1, width, line)


def _wrap(depth: int, width: int, text: str) -> list[str]:
    indent = '  ' * depth
    first, *rest = text.split()
    return boxes.wrap([f'{indent}{first}', *rest], width, f'{indent}  ')


def _describe_devices(members: Iterable[model.Attachment],
                      devices: Mapping[str, host_model.Device],
                      above: model.PCIeLink | None) -> Iterator[str]:
    """Describe the devices below a bridge, those that are alike together."""
    groups: dict[tuple[str, ...], list[model.Attachment]] = {}
    for each in members:
        device = devices[each.address]
        # The link of a device is that of the port above it.
        said = [_say(each.link)] if each.link and each.link != above else []
        said += [words.count_noun(each.nvlinks.count(speed), 'NVLink')
                 + (f' at {speed:g} GB/s' if speed else ' down')
                 for speed in sorted(set(each.nvlinks), reverse=True)]
        groups.setdefault((device.vendor_id, device.product_id, *said),
                          []).append(each)
    for (_, _, *facts), alike in groups.items():
        numbers = cpuset.render(each.iommu_group for each in alike
                                if each.iommu_group is not None)
        group = [f'IOMMU group {numbers}'] if numbers else []
        for line in cell_diagram.devices(  # one for each kind of device
                [devices[each.address] for each in alike], 1000):
            yield ', '.join((line, *facts, *group))


def _say(link: model.PCIeLink | None) -> str:
    if link is None:
        return ''
    if link.gb_per_s is not None:
        return f'{link.gb_per_s:.3g} GB/s'
    now, most = (
        f'x{lanes or "?"} at {"?" if speed is None else f"{speed:g}"} GT/s'
        for lanes, speed in ((link.lanes, link.speed_gts),
                             (link.most_lanes, link.most_speed_gts)))
    return now if most in (now, 'x? at ? GT/s') else f'{now} of {most}'


def _describe_acs(acs: frozenset[str] | None) -> str:
    if acs is None:
        return ''
    if not acs:
        return 'ACS off'
    if acs >= _ISOLATING:
        return 'ACS on'
    return f'ACS only {" ".join(sorted(acs))}'


def _list_links(links: Iterable[model.DeviceLink]) -> Iterator[str]:
    """Write links of a kind in one line where each device has one to all."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for link in links:
        kind = f'{link.kind} x{link.count}' if link.count else str(link.kind)
        found.setdefault(kind, set()).add(tuple(sorted(link.ends)))
    for kind, pairs in found.items():
        near: dict[str, list[str]] = {}
        for first, second in sorted(pairs):
            near.setdefault(first, []).append(second)
        left = set(pairs)
        for pair in sorted(pairs):
            if pair in left:
                group = list(pair)
                for other in near[pair[0]]:
                    if all((each, other) in left for each in group):
                        group.append(other)
                left.difference_update(itertools.combinations(group, 2))
                yield f'{kind} between {" ".join(group)}'

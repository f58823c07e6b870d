# SPDX-License-Identifier: Apache-2.0

"""Describe the devices of an instance by its own cells and numbers.

The description is the entry of the vendordata, as plain data for JSON. It says
nothing about the host beyond the devices of the instance: a switch is an index
in the list of the switches above several of them.
"""

import collections
import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt.instance_topology import places
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring as wiring_model

#: The kinds of bridges that NCCL takes for switches: of each switch, the one
#: port that leads up. In a capture without kinds, it is every second bridge
#: below a root port [NVIDIA/nccl, src/graph/xml.cc: ncclTopoGetXmlFromSys].
_LEADING_UP = (wiring_model.PortKind.UPSTREAM, wiring_model.PortKind.BRIDGE)


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceCell:
    """A cell of an instance.

    :ivar host_cell: its cell of the host; None if it is on no certain one
    :ivar cores: the siblings of each core, as guest CPUs
    """

    host_cell: int | None
    cores: tuple[frozenset[int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class HeldDevice:
    """A device that an instance has.

    :ivar host_address: in the host; that of the device for a virtual function
        whose own is unknown
    :ivar guest_address: None if it is unknown
    """

    host_address: str
    guest_address: str | None = None


def describe(host: host_model.Host, cells: Sequence[InstanceCell],
             held: Sequence[HeldDevice]) -> dict[str, Any]:
    """Describe the devices of an instance.

    :param held: each device once, and a device once for each of its virtual
        functions
    :returns: what :func:`hpcvirt.instance_topology.places.arrange` reads
    """
    devices = {device.address: device for device in host.devices}
    known = [each for each in held if each.host_address in devices]
    notes = []
    if len(known) < len(held):
        notes.append(f'{len(held) - len(known)} devices of the instance are '
                     'not in the topology of its host')
    wiring = host.wiring
    if wiring is None:
        notes.append('the wiring of the host is unknown')
        wiring = wiring_model.Wiring(
            attachments=tuple(map(wiring_model.Attachment, devices)),
            unknown=frozenset(wiring_model.UnknownWiring))
    attached = {each.address: each for each in wiring.attachments}
    chains = [_find_switches(wiring, attached[each.host_address])
              for each in known]
    shared = _list_shared(chains)
    numbers = {bridge: number for number, bridge in enumerate(shared)}
    above = {inner: outer for chain in chains for outer, inner in zip(
        [None, *(each for each in chain if each in numbers)],
        [each for each in chain if each in numbers], strict=False)}
    places_of = [device.host_address for device in known]
    links_known = wiring_model.UnknownWiring.DEVICE_LINKS not in wiring.unknown
    if not links_known and len(known) > 1:
        notes.append('the links between GPUs are unknown')
    return {
        'version': places.VERSION,
        'cells': [[sorted(core) for core in cell.cores] for cell in cells],
        'switches': [{
            'above': None if (outer := above[bridge]) is None
            else numbers[outer],
            **_measure(wiring, wiring.by_address[bridge])}
            for bridge in shared],
        'devices': [{
            'vendor': device.vendor_id,
            # A virtual function may have any product, if none is known.
            'products': [] if device.total_vfs and not device.vf_product_id
            else sorted({device.product_id, device.vf_product_id
                         or device.product_id}),
            'cell': _find_cell(cells, device.cell),
            'switch': max((numbers[bridge] for bridge in chain
                           if bridge in numbers), default=None),
            **_measure(wiring, attached[device.address]),
            'address': each.guest_address,
        } for each, chain in zip(known, chains, strict=True)
            for device in [devices[each.host_address]]],
        'links': [{
            'ends': [places_of.index(end) for end in link.ends],
            'kind': str(link.kind), 'count': link.count}
            for link in wiring.links
            if set(link.ends) <= set(places_of)] if links_known else None,
        'notes': notes}


def _find_switches(wiring: wiring_model.Wiring,
                   below: wiring_model.Attachment) -> list[str]:
    """List the switches above a device, the outermost first."""
    return [bridge.address for index, bridge in enumerate(wiring.path(below))
            if bridge.kind in _LEADING_UP
            or (bridge.kind is None and index % 2 == 1)]


def _list_shared(chains: Sequence[Sequence[str]]) -> list[str]:
    """List the switches that tell devices apart, the outer ones first.

    Of several with the same devices, only the lowest does.
    """
    below: dict[str, list[int]] = collections.defaultdict(list)
    for index, chain in enumerate(chains):
        for bridge in chain:
            below[bridge].append(index)
    lowest = {tuple(indexes): bridge for bridge, indexes in below.items()
              if len(indexes) > 1}
    return [bridge for bridge in below if bridge in lowest.values()]


def _find_cell(cells: Sequence[InstanceCell],
               host_cell: int | None) -> int | None:
    found = [number for number, cell in enumerate(cells)
             if host_cell is not None and cell.host_cell == host_cell]
    return found[0] if len(found) == 1 else None


def _measure(wiring: wiring_model.Wiring,
             end: wiring_model.Bridge | wiring_model.Attachment,
             ) -> Mapping[str, Any]:
    """Return what both ends of a link support, as NCCL reads it."""
    links = [each.link for each in (end, *wiring.path(end)[-1:]) if each.link]
    return {
        'speed_gts': min((speed for link in links if (
            speed := link.most_speed_gts or link.speed_gts)), default=None),
        'lanes': min((lanes for link in links if (
            lanes := link.most_lanes or link.lanes)), default=None)}

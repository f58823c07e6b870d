# SPDX-License-Identifier: Apache-2.0

"""Describe the devices of an instance by its own cells and numbers.

The description is plain data for JSON. It says nothing about the host beyond
the devices of the instance: a switch is an index in the list of the switches
above several of them.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from hpcvirt.instance_topology import places
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring as wiring_model

#: NCCL takes the port of a switch that leads up for the switch: every second
#: bridge below a root port, if a capture does not say the kinds
#: [NVIDIA/nccl, src/graph/xml.cc: ncclTopoGetXmlFromSys].
_LEADING_UP = (wiring_model.PortKind.UPSTREAM, wiring_model.PortKind.BRIDGE)


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceCell:
    """A cell of an instance.

    :ivar host_cell: its cell of the host; None if that is unknown
    :ivar cores: the siblings of each core, as guest CPUs
    """

    host_cell: int | None
    cores: tuple[frozenset[int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class HeldDevice:
    """A device that an instance has.

    :ivar host_address: that of the device in the host, or of the physical
        function of a virtual one
    :ivar guest_address: None if it is unknown
    """

    host_address: str
    guest_address: str | None = None


def describe(host: host_model.Host, cells: Sequence[InstanceCell],
             held: Sequence[HeldDevice]) -> places.Description:
    """Describe the devices of an instance.

    :param held: a physical function occurs once for each virtual one
    """
    devices = {device.address: device for device in host.devices}
    known = [each for each in held if each.host_address in devices]
    wiring = host.wiring or wiring_model.Wiring(
        attachments=tuple(map(wiring_model.Attachment, devices)),
        unknown=frozenset(wiring_model.UnknownWiring))
    attached = {each.address: each for each in wiring.attachments}
    chains = _find_shared([
        [bridge.address for index, bridge in enumerate(wiring.path(
            attached[each.host_address])) if bridge.kind in _LEADING_UP
         or (bridge.kind is None and index % 2 == 1)] for each in known])
    above: dict[str, str | None] = {}
    for chain in chains:
        for index, bridge in enumerate(chain):
            above[bridge] = chain[index - 1] if index else None
    numbers = {bridge: number for number, bridge in enumerate(above)}
    order = [each.host_address for each in known]
    cell_of = [_find_cell(cells, devices[address].cell) for address in order]
    lost, off = len(held) - len(known), cell_of.count(None)
    links_are_known = (wiring_model.UnknownWiring.DEVICE_LINKS
                       not in wiring.unknown)
    described: list[dict[str, Any]] = []
    for each, chain, cell in zip(known, chains, cell_of, strict=True):
        device = devices[each.host_address]
        described.append({
            'vendor': device.vendor_id,
            # A virtual function may have any product, if none is known.
            'products': [] if device.total_vfs and not device.vf_product_id
            else sorted({device.product_id, device.vf_product_id
                         or device.product_id}),
            'cell': cell,
            'switch': numbers[chain[-1]] if chain else None,
            **_measure(wiring, attached[device.address]),
            'address': each.guest_address,
        })
    return {
        'schema_version': places.VERSION,
        'cells': [[sorted(core) for core in cell.cores] for cell in cells],
        'switches': [{'above': None if outer is None else numbers[outer],
                      **_measure(wiring, wiring.by_address[bridge])}
                     for bridge, outer in above.items()],
        'devices': described,
        'links': [{'ends': [*map(order.index, link.ends)],
                   'kind': str(link.kind), 'count': link.count}
                  for link in wiring.links if {*link.ends} <= {*order}
                  ] if links_are_known else None,
        'notes': [note for note, holds in (
            (f'the topology of the host lacks {lost} of the devices', lost),
            (f'{off} of the devices are on no certain cell', off),
            ('the wiring of the host is unknown', host.wiring is None),
            ('the links between devices are unknown',
             not links_are_known and len(known) > 1)) if holds]}


def _find_cell(cells: Sequence[InstanceCell],
               host_cell: int | None) -> int | None:
    own = [number for number, cell in enumerate(cells) if len(cells) == 1
           or (cell.host_cell is not None and cell.host_cell == host_cell)]
    return own[0] if len(own) == 1 else None


def _find_shared(chains: list[list[str]]) -> list[list[str]]:
    """Leave only switches that tell devices apart, the outer ones first.

    Of several with the same devices, only the lowest does.
    """
    below = {bridge: tuple(bridge in chain for chain in chains)
             for bridge in itertools.chain.from_iterable(chains)}
    lowest = {which: bridge for bridge, which in below.items()
              if sum(which) > 1}
    return [[bridge for bridge in chain if bridge in lowest.values()]
            for chain in chains]


def _measure(wiring: wiring_model.Wiring,
             end: wiring_model.Bridge | wiring_model.Attachment,
             ) -> dict[str, Any]:
    """Return what both ends of a link support, as NCCL reads it."""
    links = [each.link for each in (end, *wiring.path(end)[-1:]) if each.link]
    return {
        'speed_gts': min((speed for link in links if (
            speed := link.most_speed_gts or link.speed_gts)), default=None),
        'lanes': min((lanes for link in links if (
            lanes := link.most_lanes or link.lanes)), default=None)}

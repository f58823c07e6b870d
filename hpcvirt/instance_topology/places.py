# SPDX-License-Identifier: Apache-2.0

"""Find the places of the devices of a guest among those that its cloud names.

If a guest does not show which of several devices a function is, only what is
the same of all of them is certain. Modules that run in a guest need Python 3.9
and its standard library only.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

#: The name and the version of the entry of the vendordata.
ENTRY = 'hpcvirt'
VERSION = 1

#: The entry; :mod:`hpcvirt.instance_topology.description` makes it.
Description = dict[str, Any]

#: Classes, and vendors of which a topology lists hardly any other devices.
_GPU_CLASSES, _GPU_VENDORS = ('0x03', '0x12'), ('10de', '1002')
_NET_CLASSES, _NET_VENDORS = ('0x02', '0x0c06'), ('15b3',)


@dataclasses.dataclass(frozen=True)
class Function:
    """A PCI function as the guest sees it, and what is certain of its place.

    :ivar code: its class, as sysfs prints it; empty if it is unknown
    :ivar cell: the guest cell; None if it has none, or if it is unknown
    :ivar nets: its names for UCX_NET_DEVICES
    :ivar file: its device file; empty if it is unknown
    :ivar switch: the index of the lowest switch above it and others; None if
        it has none, or if it is unknown
    :ivar may_be: the indexes of the devices of the cloud that it may be
    """

    address: str
    vendor: str
    product: str
    code: str = ''
    cell: int | None = None
    nets: tuple[str, ...] = ()
    file: str = ''
    switch: int | None = None
    speed_gts: float | None = None
    lanes: int | None = None
    may_be: tuple[int, ...] = ()

    @property
    def is_gpu(self) -> bool:
        return (self.code.startswith(_GPU_CLASSES) if self.code
                else self.vendor in _GPU_VENDORS)

    @property
    def is_net(self) -> bool:
        return (self.code.startswith(_NET_CLASSES) if self.code
                else self.vendor in _NET_VENDORS)


@dataclasses.dataclass(frozen=True)
class Arrangement:
    """The devices of a guest with their places.

    :ivar cells: the cores of each cell, which are sets of guest CPUs
    :ivar switches: those above several devices; ``above`` is the next one
    :ivar links: the links between devices of the cloud; None if unknown
    :ivar functions: ascending by address
    :ivar notes: what is unknown, and what would settle it
    """

    cells: Sequence[Sequence[frozenset[int]]]
    switches: Sequence[Mapping[str, Any]]
    links: Mapping[frozenset[int], int | None] | None
    functions: Sequence[Function]
    notes: Sequence[str]

    def chain(self, switch: int | None) -> list[int]:
        """List a switch and those above it."""
        return [] if switch is None else [
            switch, *self.chain(self.switches[switch]['above'])]

    def count_links(self, one: Function, other: Function) -> int | None:
        """Count the links between two functions; None if that is unknown."""
        if self.links is None:
            return None
        counts = {self.links.get(frozenset((a, b)), 0) for a, b
                  in itertools.product(one.may_be, other.may_be) if a != b}
        return counts.pop() if len(counts) == 1 else None

    def mask(self, cell: int) -> str:
        """Write the CPUs of a cell as the kernel does, in groups of 32."""
        cores = itertools.chain.from_iterable(self.cells)
        most = max(max(core) for core in cores)
        cpus = itertools.chain.from_iterable(self.cells[cell])
        bits = sum(1 << cpu for cpu in cpus)
        return ','.join(f'{bits >> 32 * group & 0xffffffff:08x}'
                        for group in range(most // 32, -1, -1))


def arrange(description: Description,
            seen: Iterable[Function]) -> Arrangement:
    """Find what is certain about the places of the devices of a guest.

    :raises ValueError: if the description has another version, or the guest
        has more cells
    """
    version = description['schema_version']
    if version != VERSION:
        raise ValueError(f'schema_version {version!r}, not {VERSION}')
    devices, links = description['devices'], description['links']
    alike: dict[tuple[int, ...], list[Function]] = {}
    for each in seen:
        alike.setdefault(tuple(
            index for index, device in enumerate(devices)
            if _fits(device, each)), []).append(each)
    notes = list(description['notes'])
    functions: list[Function] = []
    for may_be, group in alike.items():
        what = (f'{group[0].vendor}:{group[0].product} at '
                + ', '.join(each.address for each in group))
        if len(group) > len(may_be) > 0:
            notes.append(f'the guest has more devices {what} than the '
                         f'{len(may_be)} that the cloud gave it')
        elif may_be:
            common: dict[str, Any] = {
                key: devices[may_be[0]][key] for key in (
                    'cell', 'switch', 'speed_gts', 'lanes')
                if len({devices[index][key] for index in may_be}) == 1
                and devices[may_be[0]][key] is not None}
            functions += [dataclasses.replace(each, may_be=may_be, **common)
                          for each in group]
            if len({(devices[index]['cell'], devices[index]['switch'])
                    for index in may_be}) > 1:
                notes.append('the guest does not show on which cell and '
                             f'switch each of {what} is: the domain XML would')
    notes += [f'device {index} of the cloud, of vendor '
              f'{devices[index]["vendor"]}, is not in the guest'
              for index in sorted({*range(len(devices))}.difference(*alike))]
    cells = [[frozenset(core) for core in cell]
             for cell in description['cells']]
    for each in functions:
        if each.cell is not None and each.cell >= len(cells):
            raise ValueError(f'{each.address} is on cell {each.cell}, but the '
                             f'cloud has described {len(cells)} cells')
    return Arrangement(
        cells, description['switches'], None if links is None else {
            frozenset(link['ends']): link['count'] for link in links},
        sorted(functions, key=lambda one: one.address), notes)


def _fits(device: Mapping[str, Any], seen: Function) -> bool:
    if device['vendor'] != seen.vendor or (
            device['products'] and seen.product not in device['products']):
        return False
    if device['address'] is not None:
        return bool(device['address'] == seen.address)
    return None in (device['cell'], seen.cell) or device['cell'] == seen.cell

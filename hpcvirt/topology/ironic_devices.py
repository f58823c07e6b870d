# SPDX-License-Identifier: Apache-2.0

"""Read the PCI functions of an inspection.

The collector pci-devices lists all functions with their class and, since 2024,
their cell. The inventory has the PCI address and the driver of each network
interface, and numa_topology has its cell. Older versions of the agent report
less.
"""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Annotated
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.model import host as host_model
from hpcvirt.topology import assemble
from hpcvirt.topology import document
from hpcvirt.topology import ironic_records as records
from hpcvirt.topology import pci


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Function:
    """A function of pci_devices; the ids are hexadecimal without 0x.

    :ivar bus: the address
    :ivar numa_node_id: the content of the file ``numa_node``
    """

    vendor_id: str
    product_id: str
    class_: str
    bus: str
    numa_node_id: str | int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Interface:
    """A network interface of the inventory.

    :ivar vendor: hexadecimal with 0x
    :ivar product: hexadecimal with 0x
    """

    name: str
    vendor: str | None = None
    product: str | None = None
    pci_address: str | None = None
    driver: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _NIC:
    """A network interface of numa_topology."""

    name: str
    numa_node: Annotated[int, serialization.whole(-1, assemble.MAX_CELL)]


def read(inventory: dict[str, Any], collected: dict[str, Any],
         topology: dict[str, Any], where: str,
         ) -> Iterator[host_model.Device]:
    """Read the devices that a topology lists.

    :param inventory: ``inventory``
    :param collected: the mapping with ``pci_devices``
    :param topology: ``numa_topology``
    :raises InvalidInput: if a value has a wrong form, or two contradict
    """
    cells = {nic.name: nic.numa_node if nic.numa_node >= 0 else None
             for nic in records.read(_NIC, topology, 'nics',
                                     f'{where}: numa_topology')}
    interfaces = records.read(_Interface, inventory, 'interfaces',
                              f'{where}: inventory')
    adapters = {interface.pci_address.lower(): interface
                for interface in interfaces if interface.pci_address}
    if collected.get('pci_devices') is None:
        yield from _adapters(adapters, cells, where)
        return
    for function in records.read(_Function, collected, 'pci_devices', where):
        yield from _device(function, adapters.get(function.bus.lower()),
                           cells, f'{where}: pci_devices: {function.bus[:40]}')


def _device(function: _Function, interface: _Interface | None,
            cells: Mapping[str, int | None], where: str,
            ) -> Iterator[host_model.Device]:
    # Base class, subclass and programming interface.
    class_code = document.hexadecimal(function.class_, where, 'class', 6) >> 8
    vendor_id = _id(function.vendor_id, where, 'vendor_id')
    if not pci.is_listed(class_code, vendor_id):
        return
    cell = _cell(function.numa_node_id, where)
    if interface is not None and interface.name in cells:
        theirs = cells[interface.name]
        if None not in (cell, theirs) and cell != theirs:
            raise exception.InvalidInput(
                where, f'is on cell {cell}, but numa_topology has its '
                f'interface {interface.name[:40]!r} on cell {theirs}')
        cell = theirs if cell is None else cell
    yield host_model.Device(
        function.bus.lower(), vendor_id,
        _id(function.product_id, where, 'product_id'), cell,
        driver=interface.driver if interface else None)


def _adapters(adapters: Mapping[str, _Interface],
              cells: Mapping[str, int | None], where: str,
              ) -> Iterator[host_model.Device]:
    for address, interface in adapters.items():
        here = f'{where}: inventory: interface {interface.name[:40]!r}'
        if interface.vendor is None or interface.product is None:
            continue
        yield host_model.Device(
            address, _id(interface.vendor, here, 'vendor'),
            _id(interface.product, here, 'product'),
            cells.get(interface.name), driver=interface.driver)


def _id(text: str, where: str, what: str) -> str:
    return f'{document.hexadecimal(text, where, what, 4):04x}'


def _cell(node: str | int | None, where: str) -> int | None:
    """Read a cell; None if the firmware does not know it (-1)."""
    if node is None:
        return None
    number = document.whole(str(node), where, 'numa_node_id',
                            assemble.MAX_CELL, least=-1)
    return number if number >= 0 else None

# SPDX-License-Identifier: Apache-2.0

"""Collect the features in which hosts are compared.

Devices are compared by their kinds and cells. The name of a host, the
addresses of its devices, their drivers and virtual functions, and the number
of small pages are not compared, because they may differ between hosts that are
alike, or change while a host runs.
"""

import collections
from collections.abc import Hashable
from collections.abc import Mapping

from hpcvirt.model import host as host_model
from hpcvirt.topology import pci

#: MemTotal of equal cells differs by the memory that the kernel keeps for
#: itself, which depends on its version, its parameters and the firmware. The
#: smallest module that can be missing, 4 GiB in a cell of 384 GiB, is 1 %.
TOLERANCE_PERCENT = 1
TOLERANCE_MIB = 256

#: (vendor, product, number of VFs) of a device.
Kind = tuple[str, str, int]

#: The addresses of the devices of each kind on each cell.
Slots = Mapping[tuple[Kind, int | None], tuple[str, ...]]


def collect(host: host_model.Host) -> Hashable:
    """Collect the features that are equal in hosts that are alike.

    Memory is left out, because it may differ slightly.
    """
    return (
        host.processor,
        tuple((cell.id, cell.socket, cell.cpus, cell.siblings, cell.llc,
               huge_pages(cell)) for cell in host.cells),
        host.distances,
        frozenset(collections.Counter(
            (kind(device), device.cell) for device in devices(host)).items()),
        host.unknown)


def memory(host: host_model.Host) -> tuple[int, ...]:
    """Return the MiB of each cell."""
    return tuple(cell.memory_mib for cell in host.cells)


def is_close(one_mib: int, other_mib: int) -> bool:
    """Whether two amounts may belong to the same memory modules."""
    return abs(one_mib - other_mib) <= max(
        TOLERANCE_MIB, TOLERANCE_PERCENT * max(one_mib, other_mib) // 100)


def huge_pages(cell: host_model.Cell) -> tuple[tuple[int, int], ...]:
    """List the reserved huge pages of a cell, as (size in KiB, number)."""
    return tuple((pool.size_kib, pool.total) for pool in cell.pages[1:]
                 if pool.total)


def devices(host: host_model.Host) -> list[host_model.Device]:
    """List the devices without virtual functions."""
    virtual = set(pci.list_virtual(host.devices))
    return [device for device in host.devices if device not in virtual]


def kind(device: host_model.Device) -> Kind:
    """Return the kind by which a device is compared."""
    return device.vendor_id, device.product_id, device.total_vfs


def slots(host: host_model.Host) -> Slots:
    """Return the addresses of the devices of each kind on each cell."""
    found: dict[tuple[Kind, int | None], list[str]] = {}
    for device in devices(host):
        found.setdefault((kind(device), device.cell), []).append(
            device.address)
    return {key: tuple(addresses) for key, addresses in found.items()}

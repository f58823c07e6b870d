# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What of a host is compared with other hosts.

Not compared are its name, the addresses of its devices, their drivers and
virtual functions, and the number of small pages: they may differ on hosts
that are alike, and change while a host runs. Devices are compared by their
kinds and cells.
"""

import collections
import dataclasses
from collections.abc import Mapping

from hpcvirt.model import host as host_model

#: MemTotal of equal cells differs by what the kernel keeps for itself, which
#: depends on its version, its parameters and where the firmware put it. A
#: module of 4 GiB in a cell of 384 GiB is 1 %, and no cell is missing less.
TOLERANCE_PERCENT = 1
TOLERANCE_MIB = 256

#: (vendor, product, number of VFs) of a device.
Kind = tuple[str, str, int]

#: The addresses of the devices of each kind on each cell.
Slots = Mapping[tuple[Kind, int | None], tuple[str, ...]]


@dataclasses.dataclass(frozen=True)
class Traits:
    """What is compared, except memory.

    :ivar cells: (number, package, CPUs) of each cell
    :ivar cores: the CPUs of each core, cell by cell
    :ivar caches: the CPUs of each last-level cache, cell by cell
    :ivar pages: (KiB, number) of the huge pages, cell by cell
    :ivar devices: ((kind, cell), number) of the devices
    """

    processor: str | None
    cells: tuple[tuple[int, int | None, frozenset[int]], ...]
    cores: tuple[tuple[frozenset[int], ...], ...]
    caches: tuple[tuple[frozenset[int], ...], ...]
    pages: tuple[tuple[tuple[int, int], ...], ...]
    distances: tuple[tuple[int, ...], ...]
    devices: frozenset[tuple[tuple[Kind, int | None], int]]
    unknown: frozenset[host_model.Unknown]


def of(host: host_model.Host) -> Traits:
    """Collect what is compared."""
    return Traits(
        host.processor,
        tuple((cell.id, cell.package, cell.cpus) for cell in host.cells),
        tuple(cell.siblings for cell in host.cells),
        tuple(cell.llc for cell in host.cells),
        tuple(huge_pages(cell) for cell in host.cells),
        host.distances,
        frozenset(collections.Counter(
            (kind(device), device.cell) for device in devices(host)).items()),
        host.unknown)


def memory(host: host_model.Host) -> tuple[int, ...]:
    """Return the MiB of each cell."""
    return tuple(cell.memory_mib for cell in host.cells)


def is_close(one_mib: int, other_mib: int) -> bool:
    """Tell whether two amounts may be of the same memory modules."""
    return abs(one_mib - other_mib) <= max(
        TOLERANCE_MIB, TOLERANCE_PERCENT * max(one_mib, other_mib) // 100)


def huge_pages(cell: host_model.Cell) -> tuple[tuple[int, int], ...]:
    """List the pages of a cell that were reserved."""
    return tuple((pool.size_kib, pool.total) for pool in cell.pages[1:]
                 if pool.total)


def devices(host: host_model.Host) -> list[host_model.Device]:
    """List the devices that are no virtual functions.

    If it is unknown of which product the virtual functions of a device are,
    the other functions of its vendor on its bus are taken for such.
    """
    able = [device for device in host.devices if device.total_vfs]
    products = {(device.vendor_id, device.vf_product_id) for device in able}
    buses = {(device.vendor_id, _bus(device)) for device in able
             if device.vf_product_id is None}
    return [device for device in host.devices if device.total_vfs or (
        (device.vendor_id, device.product_id) not in products
        and (device.vendor_id, _bus(device)) not in buses)]


def _bus(device: host_model.Device) -> str:
    return device.address.rpartition(':')[0]


def kind(device: host_model.Device) -> Kind:
    """Return what is compared of a device."""
    return device.vendor_id, device.product_id, device.total_vfs


def slots(host: host_model.Host) -> Slots:
    """Return the addresses of the devices of each kind on each cell."""
    found: dict[tuple[Kind, int | None], list[str]] = {}
    for device in devices(host):
        found.setdefault((kind(device), device.cell), []).append(
            device.address)
    return {key: tuple(addresses) for key, addresses in found.items()}

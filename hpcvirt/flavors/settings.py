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

"""Work out the settings that a host needs for its flavors."""

import dataclasses
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import given_devices
from hpcvirt.flavors import memory
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.model import usage as usage_model


@dataclasses.dataclass(frozen=True, slots=True)
class ReservedPages:
    """An item of Nova's ``reserved_huge_pages``."""

    node: int
    size_kib: int
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a compute host.

    :ivar dedicated: ``[compute]cpu_dedicated_set``
    :ivar shared: ``[compute]cpu_shared_set``
    :ivar reserved_host_memory_mib: ``reserved_host_memory_mb``: the memory
        that the host keeps, without the emulators of guests
    :ivar reserved_pages: ``reserved_huge_pages``
    :ivar pages: cell -> page size in KiB -> the total that nova-compute
        reports under these settings
    :ivar rest_mib: cell -> the memory of it that the host keeps
    :ivar device_type: of the PCI alias
    :ivar devices: the devices that guests get
    """

    dedicated: frozenset[int]
    shared: frozenset[int]
    reserved_host_memory_mib: int
    reserved_pages: tuple[ReservedPages, ...]
    pages: Mapping[int, Mapping[int, int]]
    rest_mib: Mapping[int, int]
    device_type: str = given_devices.TYPE_VF
    devices: tuple[given_devices.Given, ...] = ()


def settings(partition: cpu_partition.Partition,
             pools: Sequence[memory.CellPool],
             guests: Collection[shape_model.Shape],
             profile: profiles.Profile,
             device_type: str = given_devices.TYPE_VF) -> Settings:
    """Work out the settings of a host for all flavors that may run on it.

    No more huge pages are reserved than guests can fill. The host keeps the
    memory that rounding leaves, in normal pages.
    """
    host = partition.host
    small = memory.small_page_kib(host)
    pieces = {piece for guest in guests for piece in memory.pieces(guest)}
    taken = {pool.id: _pages_needed(partition, pool, pieces) for pool in pools}
    page_kib = pools[0].page_kib if pools else small
    pages, reserved, rest = {}, [], {}
    for cell in host.cells:
        count = taken.get(cell.id, 0)
        own = dict(profile.host_pages_per_cell) if cell.id in taken else {}
        huge = {pool.size_kib: 0 for pool in cell.pages}
        huge.update(own)
        if page_kib != small and cell.id in taken:
            huge[page_kib] = huge.get(page_kib, 0) + count
        huge.pop(small, None)
        huge_kib = sum(size * number for size, number in huge.items())
        normal = max(0, _memory_kib(cell, small) - huge_kib) // small
        pages[cell.id] = dict(sorted({small: normal, **huge}.items()))
        reserved += [ReservedPages(cell.id, size, number)
                     for size, number in own.items() if number]
        if page_kib == small and cell.id in taken:
            reserved.append(ReservedPages(cell.id, small, normal - count))
        guests_mib = -(-count * page_kib // 1024)
        emulators = _overhead_mib(partition, cell.id, count, pieces, profile)
        # Rounding errors of the sum must not cost a whole MiB.
        rest[cell.id] = max(0, int(
            cell.memory_mib - guests_mib - emulators + 1e-6
            - (memory.host_pages_mib(profile) if own else 0)))
    return Settings(
        partition.dedicated, partition.shared, sum(rest.values()),
        tuple(reserved), pages, rest, device_type,
        given_devices.given(host, profile.devices, device_type))


def _memory_kib(cell: host_model.Cell, small_kib: int) -> int:
    """Return the memory of a cell, exact if its pages are known."""
    if cell.pool(small_kib) is None:
        return cell.memory_mib * 1024
    return sum(pool.size_kib * pool.total for pool in cell.pages)


def supply(host: host_model.Host, found: Settings,
           wanted: profiles.Devices | None) -> supplies.Supply:
    """Describe the empty host as nova-compute reports it with the settings."""
    configured = dataclasses.replace(host, cells=tuple(
        dataclasses.replace(cell, pages=tuple(
            host_model.PagePool(size, total)
            for size, total in found.pages[cell.id].items()))
        for cell in host.cells))
    usage = usage_model.Usage(tuple(
        usage_model.CellUsage(
            cell.id, cell.cpus & found.dedicated, cell.cpus & found.shared,
            pages=tuple(
                usage_model.PageUsage(item.size_kib, reserved=item.count)
                for item in found.reserved_pages if item.node == cell.id))
        for cell in host.cells))
    return supplies.of_host(configured, usage, given_devices.pools(
        found.devices, wanted, (wanted and wanted.per_instance) or 1))


def _pages_needed(partition: cpu_partition.Partition, pool: memory.CellPool,
                  pieces: Collection[memory.Piece]) -> int:
    """Return the most pages of a cell that any mix of guests can fill."""
    fitting = [piece for piece in pieces
               if piece.page_kib == pool.page_kib
               and piece.pages <= pool.pages]
    # most[n]: the most pages that guests with n CPUs in total can fill.
    most = [0]
    for cpus in range(1, _cpus(partition, pool.id) + 1):
        most.append(max((most[cpus - piece.cpus] + piece.pages
                         for piece in fitting if piece.cpus <= cpus),
                        default=0))
        most[cpus] = max(most[cpus], most[cpus - 1])
    return min(pool.pages, most[-1])


def _overhead_mib(partition: cpu_partition.Partition, cell_id: int, pages: int,
                  pieces: Collection[memory.Piece],
                  profile: profiles.Profile) -> float:
    """Return the most memory that emulators need when a cell is full."""
    cpus = _cpus(partition, cell_id)
    return max((
        min(cpus // piece.cpus, pages // piece.pages)
        * memory.overhead_mib(profile, piece) for piece in pieces),
        default=0.0)


def _cpus(partition: cpu_partition.Partition, cell_id: int) -> int:
    return next((len(share.dedicated) for share in partition.cells
                 if share.id == cell_id), 0)

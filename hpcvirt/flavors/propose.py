# SPDX-License-Identifier: Apache-2.0

"""Propose guests for a host from its sizes and its memory.

A guest cell gets pages of its host cell in proportion to its cores, rounded
down. If the cells of a host differ in memory by more than the tolerance, a
size is proposed once for each level of memory at which it fits.
"""

import dataclasses
import itertools
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.flavors import catalogue
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import memory
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import planned_sets
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import sizes as guest_sizes
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import codec


def memory_parts(size: guest_sizes.GuestSize,
                 profile: profiles.Profile) -> Iterator[memory.MemoryPart]:
    """List the parts of a guest, each on a host cell of its own."""
    guest = _guest(size, [1] * len(size.cores), None, profile)
    if guest is not None:
        yield from memory.memory_parts(guest)


def proposals(partition: cpu_partition.Partition,
              sizes: Sequence[guest_sizes.GuestSize],
              pools: Sequence[memory.CellPool],
              profile: profiles.Profile,
              given: Sequence[offered_devices.OfferedDevice] = (),
              sets: planned_sets.PlannedSets = planned_sets.NONE,
              ) -> tuple[catalogue.Offer, ...]:
    """Propose guests for one host, smallest first.

    A size is left out if its memory rounds to zero, if isolated emulator
    threads leave it no vCPU, or if its share of the devices is not a whole
    number.

    :param given: the devices that guests get
    :param sets: the sets of devices that guests get
    """
    by_id = {pool.id: pool for pool in pools}
    found = []
    for size in sizes:
        devices = offered_devices.device_numbers(partition, size, given,
                                                 profile.device)
        for count, guests in devices.items():
            for memory_mib in _memories(partition, size, by_id, profile,
                                        guests):
                guest = _guest(size, memory_mib, pools[0].page_kib, profile)
                if guest is not None:
                    guest = _add_devices(guest, count, profile.device, sets)
                    found.append(catalogue.Offer(
                        guest, {partition.host.name: size.share}))
    return tuple(found)


def _memories(partition: cpu_partition.Partition, size: guest_sizes.GuestSize,
              pools: Mapping[int, memory.CellPool],
              profile: profiles.Profile,
              guests: int | None) -> Iterator[tuple[int, ...]]:
    """List the memory of the guest cells in MiB, once for every level.

    :param guests: the number of guests that use up a cell, if it does not
        follow from the cores. These guests may leave some cores unused, but
        they get the memory of these cores.
    """
    if len(set(size.cores)) > 1:
        yield _uneven_memory(partition, size, pools, profile)
        return
    cores, count = size.cores[0], len(size.cores)
    able = _cells_for(partition, cores)
    shares = {
        cell.id: pools[cell.id].share_mib(len(cell.cores)) // guests
        if guests else pools[cell.id].share_mib(cores) for cell in able}
    for level in _levels(list(shares.values()),
                         profile.memory_tolerance_percent):
        enough = [cell for cell in able if shares[cell.id] >= level]
        if _room_for(count, enough, size.one_socket):
            yield (_rounded(level, pools, profile),) * count


def _cells_for(partition: cpu_partition.Partition,
               cores: int) -> list[cpu_partition.CellShare]:
    """List the cells for which a size was made.

    These are the cells that it divides evenly, if there are any. Otherwise a
    small guest would also be proposed with the memory of a larger cell.
    """
    tiled = [cell for cell in partition.cells if len(cell.cores) % cores == 0]
    return tiled or [cell for cell in partition.cells
                     if len(cell.cores) > cores]


def _levels(amounts: Sequence[int], tolerance_percent: int) -> list[int]:
    """Group amounts within the tolerance; return the least of each group."""
    levels: list[int] = []
    for amount in sorted(amounts):
        if not levels or amount * 100 > levels[-1] * (
                100 + tolerance_percent):
            levels.append(amount)
    return levels


def _room_for(count: int, cells: Sequence[cpu_partition.CellShare],
              one_socket: bool) -> bool:
    if not one_socket:
        return len(cells) >= count
    sockets = [cell.socket for cell in cells]
    return any(sockets.count(socket) >= count for socket in sockets)


def _uneven_memory(partition: cpu_partition.Partition,
                   size: guest_sizes.GuestSize,
                   pools: Mapping[int, memory.CellPool],
                   profile: profiles.Profile) -> tuple[int, ...]:
    """Return the memory of unequal guest cells in MiB.

    Each gets the memory of the host cells of its width, but no more than the
    cell before it. If a guest has a cell with fewer CPUs and more memory than
    another, Nova's claim accepts it on hosts where it does not fit, without
    pins and with pages that do not exist (defect A).
    """
    shares = (min(pools[cell.id].share_mib(cores) for cell in partition.cells
                  if len(cell.cores) == cores) for cores in size.cores)
    return tuple(_rounded(share, pools, profile)
                 for share in itertools.accumulate(shares, min))


def _rounded(memory_mib: int, pools: Mapping[int, memory.CellPool],
             profile: profiles.Profile) -> int:
    page_kib = next(iter(pools.values())).page_kib
    return memory.round_down(memory_mib, profile.memory_step_mib, page_kib)


def _guest(size: guest_sizes.GuestSize, memory_mib: Sequence[int],
           page_kib: int | None,
           profile: profiles.Profile) -> shape_model.Shape | None:
    isolated = profile.emulator_threads is shape_model.EmulatorThreads.ISOLATE
    # Nova takes the emulator's CPU from the host cell of guest cell 0 only,
    # but every guest cell gives up a core: the claim fails with unequal cells.
    cores = [number - isolated for number in size.cores]
    if min(cores) < 1 or min(memory_mib) < 1:
        return None
    threads = size.threads
    vcpus = sum(cores) * threads
    sockets = size.sockets if sum(cores) % size.sockets == 0 else 1
    return shape_model.Shape(
        cells=tuple(
            shape_model.GuestCell(number * threads, 0, mib, page_kib)
            for number, mib in zip(cores, memory_mib, strict=True)),
        cpu_policy=shape_model.CPUPolicy.DEDICATED,
        thread_policy=(shape_model.ThreadPolicy.REQUIRE if threads > 1
                       else None),
        emulator_threads=profile.emulator_threads,
        topology=shape_model.GuestTopology(
            sockets, vcpus // (sockets * threads), threads),
        numa_scope=(shape_model.NUMAScope.SOCKET
                    if size.one_socket and profile.socket_scope
                    else shape_model.NUMAScope.HOST),
        exclusive_cells=codec.exclusive_cells(dict(profile.extra_specs)))


def _add_devices(guest: shape_model.Shape, count: int,
                 wanted: device_choice.Devices | None,
                 sets: planned_sets.PlannedSets) -> shape_model.Shape:
    if wanted is None or not count:
        return guest
    if wanted.sets is None:
        return dataclasses.replace(guest,
                                   devices=(wanted.make_request(count),))
    kind, requests = sets.make_requests(count, len(guest.cells))
    return dataclasses.replace(guest, devices=requests, device_set=kind)

# SPDX-License-Identifier: Apache-2.0

"""Build machines for tests from a few numbers."""

import itertools
import json
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from testing import libvirt
from testing import settings

#: The product of the network cards, a ConnectX-6 Dx.
VENDOR_ID = '15b3'
PRODUCT_ID = '101d'
VF_PRODUCT_ID = '101e'
PHYSNET = 'hpc0'


def build(name: str, cells: int = 2, cores: int | Sequence[int] = 4,
          threads: int = 1, *, sockets: int | None = None,
          small_mib: int = 1024,
          pages: Mapping[int, int | Sequence[int]] | None = None,
          vfs: Mapping[int, int] | None = None,
          far_siblings: bool = False, cpu_gap: int = 0,
          housekeeping_cores: int = 0,
          reserved: Iterable[str] = ()) -> libvirt.Machine:
    """Build a machine.

    :param cores: number of cores of all cells, or of each cell in turn
    :param sockets: number of sockets, which have consecutive cells; by default
        each cell is a socket
    :param small_mib: memory of each cell in small pages
    :param pages: size in KiB to the number of huge pages of all cells, or of
        each cell in turn
    :param vfs: cell to the number of virtual functions of its network card
    :param far_siblings: number the second threads after the first threads of
        all cores, as Intel does, not right after their own
    :param cpu_gap: how many numbers are skipped before the CPUs of each cell
    :param housekeeping_cores: number of first cores of each cell that are
        shared, not dedicated
    :param reserved: ``reserved_huge_pages``
    """
    counts = [cores] * cells if isinstance(cores, int) else list(cores)
    siblings = _siblings(counts, threads, far_siblings, cpu_gap)
    pools = _pools(cells, {4: small_mib * 256, **(pages or {})})
    per_socket = cells // (sockets or cells)
    host = host_model.Host(
        name=name,
        cells=tuple(
            host_model.Cell(
                id=number, socket=number // per_socket,
                cpus=frozenset().union(*group), siblings=group,
                llc=(frozenset().union(*group),),
                memory_mib=sum(pool.memory_mib for pool in pools[number]),
                pages=pools[number])
            for number, group in enumerate(siblings)),
        devices=tuple(
            host_model.Device(
                f'0000:{0x41 + 0x20 * number:02x}:00.0', VENDOR_ID,
                PRODUCT_ID, cell, count, 'mlx5_core')
            for number, (cell, count) in enumerate(
                sorted((vfs or {}).items()))))
    shared: frozenset[int] = frozenset()
    for group in siblings:
        shared = shared.union(*group[:housekeeping_cores])
    return libvirt.Machine(host, settings.ComputeSettings(
        cpu_dedicated_set=cpuset.render(host.cpus - shared),
        cpu_shared_set=cpuset.render(shared) or None,
        reserved_huge_pages=tuple(reserved),
        device_spec=tuple(
            json.dumps({'address': device.address,
                        'physical_network': PHYSNET})
            for device in host.devices)), enabled_vfs=128)


def _pools(cells: int, pages: Mapping[int, int | Sequence[int]],
           ) -> list[tuple[host_model.PagePool, ...]]:
    return [tuple(
        host_model.PagePool(size, count if isinstance(count, int)
                            else count[number])
        for size, count in sorted(pages.items())) for number in range(cells)]


def _siblings(counts: Sequence[int], threads: int, far: bool,
              gap: int) -> list[tuple[frozenset[int], ...]]:
    total = sum(counts) + gap * len(counts)
    step = 1 if far else threads
    groups = []
    first = 0
    for count in counts:
        first += gap
        groups.append(tuple(
            frozenset(core * step + thread * (total if far else 1)
                      for thread in range(threads))
            for core in range(first, first + count)))
        first += count
    assert len(set(itertools.chain(*groups))) == sum(counts)
    return groups

# SPDX-License-Identifier: Apache-2.0

"""Hosts for which flavors are planned: shipped, built and random."""

import json
import pathlib
import random
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.flavors import device_choice
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from hpcvirt.topology import snapshot

TOPOLOGIES = pathlib.Path(__file__).parents[2] / 'etc/hpcvirt/topologies'

#: The devices of the hosts that are built with GPUs.
GPU = device_choice.Devices(device_choice.DeviceKind.WHOLE, alias='gpu',
                            vendor_id='10de', product_id='20b0')
VGPU = device_choice.Devices(device_choice.DeviceKind.VGPU, vendor_id='10de',
                             product_id='20b0', mdev_type='nvidia-474',
                             vgpus_per_device=4)
#: Those of hosts with virtual functions.
VFS = device_choice.Devices(vendor_id='15b3', product_id='101e')

HUGE_KIB = {4: (2048, 1048576), 64: (2048, 524288, 16777216)}


def shipped():
    """Read all topologies that the project ships."""
    return [snapshot.read(path.read_bytes(), path.name)
            for path in sorted(TOPOLOGIES.glob('*.json'))]


def named(name):
    """Read the shipped topology with this name."""
    return next(host for host in shipped() if host.name == name)


def build(cells: int = 2, cores: int | Sequence[int] = 16, threads: int = 1,
          mib: int | Sequence[int] = 65536, sockets: int | None = None,
          llc_cores: int | None = None, small_kib: int = 4,
          huge_kib: Sequence[int] | None = None, memory_only: int = 0,
          vfs: Mapping[int, int] | None = None,
          gpus: Mapping[int | None, int] | None = None, gpu_vfs: int = 0,
          alternate: bool = False, name: str = 'host') -> host_model.Host:
    """Build a host.

    :param cores: cores of each cell, or of each in turn
    :param mib: memory of each cell, or of each in turn
    :param sockets: one for each cell by default
    :param llc_cores: cores under one last-level cache; all by default
    :param huge_kib: sizes of the huge pages, by default those usual
        with small_kib; no huge pages are allocated
    :param memory_only: number of cells without CPUs, after the others
    :param vfs: virtual functions of one device, by cell
    :param gpus: whole devices, by cell
    :param gpu_vfs: the virtual functions that each of them can have
    :param alternate: cells alternate between sockets
    """
    counts = [cores] * cells if isinstance(cores, int) else list(cores)
    memories = [mib] * cells if isinstance(mib, int) else list(mib)
    sockets = sockets or cells
    huge = HUGE_KIB[small_kib] if huge_kib is None else tuple(huge_kib)
    total = sum(counts)
    found = []
    first = 0
    for number, count in enumerate(counts):
        siblings = tuple(
            frozenset(core + thread * total for thread in range(threads))
            for core in range(first, first + count))
        first += count
        width = llc_cores or count
        found.append(host_model.Cell(
            id=number,
            socket=(number % sockets if alternate
                     else number * sockets // cells),
            cpus=frozenset().union(*siblings), siblings=siblings,
            llc=tuple(frozenset().union(*siblings[at:at + width])
                      for at in range(0, count, width)),
            memory_mib=memories[number],
            pages=_pages(memories[number], small_kib, huge)))
    found += [
        host_model.Cell(number, None, frozenset(), (), (), memories[0],
                        _pages(memories[0], small_kib, huge))
        for number in range(cells, cells + memory_only)]
    return host_model.Host(name, tuple(found), devices=tuple(
        host_model.Device(f'0000:{0x41 + 0x20 * number:02x}:00.0', '15b3',
                          '101d', cell, count, 'mlx5_core')
        for number, (cell, count) in enumerate(sorted((vfs or {}).items()))
        ) + tuple(
        host_model.Device(f'0001:{number:02x}:00.0', '10de', '20b0', cell,
                          gpu_vfs, 'vfio-pci')
        for number, cell in enumerate(
            cell for cell, count in (gpus or {}).items()
            for _ in range(count))))


def _pages(mib, small_kib, huge):
    return (host_model.PagePool(small_kib, mib * 1024 // small_kib),
            *(host_model.PagePool(size, 0) for size in huge))


def any_host(dice: random.Random, name: str = 'host') -> host_model.Host:
    """Create a random host, perhaps irregular or incomplete."""
    cells_each = dice.choice([1, 1, 2, 2, 4])
    sockets = dice.choice([1, 1, 2, 2, 2, 4])
    cells = sockets * cells_each
    cores = dice.choice([1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 32])
    counts = [cores] * cells
    if dice.random() < 0.15:
        counts = [dice.choice([cores, max(1, cores - 1), max(1, cores // 2)])
                  for _ in range(cells)]
    mib = dice.choice([2000, 4000, 8000, 16000, 32000, 64000, 256000])
    memories = [mib] * cells
    if dice.random() < 0.3:
        memories = [dice.choice([mib, mib - 130, mib + 500, mib // 2,
                                 mib * 2]) for _ in range(cells)]
    if dice.random() < 0.6:
        memories[0] = max(0, memories[0] - dice.randint(0, 1000))
    if dice.random() < 0.05:
        memories[-1] = 0
    small = dice.choice([4, 4, 4, 64])
    return build(
        cells, counts, dice.choice([1, 1, 2, 2, 4]), memories, sockets,
        llc_cores=dice.choice([None, None, max(1, cores // 2),
                               max(1, cores // 4)]),
        small_kib=small,
        huge_kib=() if small == 4 and dice.random() < 0.1 else None,
        memory_only=dice.choice([0] * 9 + [cells]),
        vfs={0: dice.choice([1, 4, 16])} if dice.random() < 0.3 else None,
        alternate=dice.random() < 0.3, name=name)


def any_profile(dice: random.Random) -> profiles.Profile:
    """Create a random profile of an operator."""
    choices = {}
    if dice.random() < 0.3:
        choices['smt'] = profiles.SMT.LEAVE
    if dice.random() < 0.4:
        choices['housekeeping_cores_per_cell'] = dice.choice([1, 1, 2, 4])
    if dice.random() < 0.3:
        choices['shared_cores_per_cell'] = 1
        choices['emulator_threads'] = shape.EmulatorThreads.SHARE
    if dice.random() < 0.3:
        choices['emulator_threads'] = shape.EmulatorThreads.ISOLATE
    if dice.random() < 0.2:
        choices['smallest_cores'] = dice.choice([1, 2, 4])
    if dice.random() < 0.2:
        choices['page_size'] = dice.choice([4, 64, 2048, 1048576])
    if dice.random() < 0.2:
        choices['host_pages_per_cell'] = ((2048, 100),)
    if dice.random() < 0.2:
        choices['host_steps'] = dice.choice([1, 2, 3, 8])
    if dice.random() < 0.2:
        choices['memory_step_mib'] = dice.choice([1, 1000, 4096])
    if dice.random() < 0.2:
        choices['host_reserve_mib_per_cell'] = dice.choice([0, 512, 4096])
    if dice.random() < 0.2:
        choices['devices'] = (device_choice.Devices(
            vendor_id='15b3', product_id='101e',
            per_instance=dice.choice([1, 1, 2]),
            affinity=dice.choice(list(shape.PCIAffinity))),)
    return profiles.Profile(**choices)


def any_gpus(dice: random.Random,
             name: str = 'host') -> tuple[host_model.Host, profiles.Profile]:
    """Create a random host with GPUs, and a profile that gives them."""
    cells = dice.choice([1, 2, 2, 2, 4])
    gpus = dict.fromkeys(range(cells), dice.choice([1, 2, 3, 4]))
    if dice.random() < 0.4:
        gpus = {cell: dice.choice([0, 1, 2, 4]) for cell in range(cells)}
    if dice.random() < 0.2:
        gpus[None] = dice.choice([1, 2])
    host = build(
        cells, dice.choice([3, 4, 8, 15, 16, 20]), dice.choice([1, 2]),
        dice.choice([16000, 64000]), dice.choice([1, cells]), gpus=gpus,
        gpu_vfs=dice.choice([0, 16]), name=name)
    kind = dice.choice([device_choice.DeviceKind.WHOLE] * 3
                       + [device_choice.DeviceKind.VGPU])
    vgpus = dice.choice([1, 2, 4])
    number = dice.choice([1, 1, 2, 4])
    wanted = (device_choice.Devices(
        kind, min(number, vgpus), vendor_id='10de', product_id='20b0',
        mdev_type='nvidia-558', vgpus_per_device=vgpus)
        if kind is device_choice.DeviceKind.VGPU else device_choice.Devices(
        kind, dice.choice([None, None, number]),
        dice.choice(list(shape.PCIAffinity)), alias='gpu', vendor_id='10de',
        product_id='20b0'))
    return host, profiles.Profile(
        devices=(wanted,), all_host_steps=dice.random() < 0.5,
        housekeeping_cores_per_cell=dice.choice([0, 0, 1]))


def as_json(host: host_model.Host, path: pathlib.Path) -> str:
    """Write a host to a file as JSON, and return the path."""
    path.write_text(json.dumps(snapshot.make_json(host)))
    return str(path)

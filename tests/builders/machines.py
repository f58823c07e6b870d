# SPDX-License-Identifier: Apache-2.0

"""Create random machines: irregular, but possible."""

import random

from hpcvirt.model import host

GIB = 1024 * 1024


def cell(number: int, *cores: tuple[int, ...], socket: int | None = 0,
         llc: tuple[tuple[int, ...], ...] = (), small: int = GIB,
         huge: tuple[tuple[int, int], ...] = (),
         small_kib: int = 4) -> host.Cell:
    """Create a cell whose memory is all in pages."""
    cpus = frozenset(cpu for core in cores for cpu in core)
    pools = (host.PagePool(small_kib, small),
             *(host.PagePool(size, total) for size, total in huge))
    caches = llc or ((tuple(cpus),) if cpus else ())
    return host.Cell(
        number, socket if cpus else None, cpus,
        tuple(sorted(map(frozenset, cores), key=min)),
        tuple(sorted(map(frozenset, caches), key=min)),
        memory_kib(pools) // 1024, pools)


def memory_kib(pools: tuple[host.PagePool, ...]) -> int:
    return sum(pool.size_kib * pool.total for pool in pools)


def of_cells(*cells: host.Cell, distances: bool = True,
             devices: tuple[host.Device, ...] = ()) -> host.Host:
    matrix = tuple(tuple(10 if row is column else 20 + row.id + column.id
                         for column in cells) for row in cells)
    return host.Host('box', cells, matrix if distances else (), devices)


def invent(seed: int) -> tuple[host.Host, frozenset[int]]:
    """Create a random machine.

    :returns: the machine, and CPUs of it that are offline
    """
    dice = random.Random(seed)
    numbers = dice.sample(range(200), 200)
    if dice.random() < 0.5:
        numbers.sort(reverse=True)
    offline: set[int] = set()
    small_kib = dice.choice((4, 4, 4, 64))
    cells: list[host.Cell] = []
    cell_numbers = sorted(dice.sample(range(9), dice.randint(1, 5)))
    socket = 0
    threads = dice.choice((1, 1, 2, 2, 4, 8))
    for number in cell_numbers:
        has_cpus = not cells or dice.random() < 0.8
        cores = []
        for _ in range(dice.randint(1, 5) if has_cpus else 0):
            core = [numbers.pop() for _ in range(threads)]
            while len(core) > 1 and dice.random() < 0.1:
                offline.add(core.pop())
            cores.append(tuple(core))
        if has_cpus and dice.random() < 0.2:
            offline.add(numbers.pop())
        socket += dice.randint(0, 1)
        first = not cells
        huge = tuple((size, dice.randint(0, 9))
                     for size in (2048, 1048576) if small_kib == 4)
        if small_kib == 64:
            huge = ((524288, dice.randint(0, 9)),)
        cells.append(cell(
            number, *cores, socket=socket, llc=_partition(dice, cores),
            small=dice.randint(2 ** 20, 2 ** 21)
            if first or dice.random() < 0.8 else 0,
            huge=huge, small_kib=small_kib))
    devices = tuple(_devices(dice, cells))
    return (of_cells(*cells, distances=dice.random() < 0.8, devices=devices),
            frozenset(offline))


def _partition(dice: random.Random, cores: list[tuple[int, ...]],
               ) -> tuple[tuple[int, ...], ...]:
    caches: list[tuple[int, ...]] = []
    for core in cores:
        if caches and dice.random() < 0.6:
            caches[-1] += core
        else:
            caches.append(core)
    return tuple(caches)


def _devices(dice: random.Random, cells: list[host.Cell],
             ) -> list[host.Device]:
    with_cpus = [each.id for each in cells if each.cpus]
    # hwloc does not distinguish "the only cell" from "no cell".
    places = [*with_cpus, None] if len(with_cpus) > 1 else with_cpus
    return [host.Device(f'0000:{bus:02x}:00.0', '8086',
                        dice.choice(('1572', '10fb')), dice.choice(places),
                        dice.choice((0, 64)), dice.choice((None, 'i40e')),
                        dice.choice((None, '154c')))
            for bus in sorted(dice.sample(range(256), dice.randint(0, 3)))]

# SPDX-License-Identifier: Apache-2.0

"""Create random machines: irregular, but possible."""

import random

from hpcvirt.model import host
from hpcvirt.model import wiring

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
             devices: tuple[host.Device, ...] = (),
             wired: wiring.Wiring | None = None) -> host.Host:
    """Create a machine.

    :param wired: by default, all devices are on root buses, and no more is
        known
    """
    matrix = tuple(tuple(10 if row is column else 20 + row.id + column.id
                         for column in cells) for row in cells)
    wired = wired or wiring.Wiring(attachments=tuple(
        wiring.Attachment(device.address) for device in devices),
        unknown=frozenset((wiring.UnknownWiring.PCIE_LINKS,
                           wiring.UnknownWiring.IOMMU_GROUPS)))
    return host.Host('box', cells, matrix if distances else (), devices,
                     wiring=wired if devices else None)


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
    return (of_cells(*cells, distances=dice.random() < 0.8, devices=devices,
                     wired=wire(seed, devices)), frozenset(offline))


def wire(seed: int, devices: tuple[host.Device, ...]) -> wiring.Wiring:
    """Wire devices at random, to root ports and switches of any depth.

    Only devices of one cell share a bridge.
    """
    dice = random.Random(seed)
    bridges: list[wiring.Bridge] = []
    of_cell: dict[int | None, list[str]] = {}
    attached = []
    for device in devices:
        above = None
        near = of_cell.setdefault(device.cell, [])
        for _ in range(dice.choice((0, 1, 1, 3, 5))):
            if above is None and near and dice.random() < 0.3:
                above = dice.choice(near)
                continue
            bridges.append(wiring.Bridge(
                f'0000:{len(bridges) // 8:02x}:1c.{len(bridges) % 8}', above,
                dice.choice(list(wiring.PortKind)), _link(dice),
                frozenset(dice.sample(wiring.ACS_CONTROLS,
                                      dice.randrange(8)))))
            above = bridges[-1].address
            near.append(above)
        attached.append(wiring.Attachment(
            device.address, above, _link(dice),
            dice.choice((None, 0, len(attached), 999))))
    return wiring.Wiring(tuple(bridges), tuple(attached))


def _link(dice: random.Random) -> wiring.PCIeLink | None:
    return dice.choice((None, wiring.PCIeLink(2.5, 1, 16.0, 8),
                        wiring.PCIeLink(32.0, 16, 32.0, 16)))


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

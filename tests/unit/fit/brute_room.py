# SPDX-License-Identifier: Apache-2.0

"""Count the guests that a host takes by trying all placements."""

import itertools


def most(demand, supply):
    """Count guests by trying every placement of each."""
    free = tuple(len(cell.free) for cell in supply.cells)
    pools = {pool.cell: pool.free for pool in supply.pools}
    return _most(demand, free, tuple(
        pools.get(cell.id, 0) for cell in supply.cells), {})


def _most(demand, free, devices, known):
    """Likewise, for hosts of which only CPUs and near devices can lack."""
    if (free, devices) in known:
        return known[free, devices]
    wanted = sum(each.count for each in demand.requests)
    best = 0
    for chosen in itertools.permutations(range(len(free)), len(demand.cells)):
        left = list(free)
        for place, cell in zip(chosen, demand.cells, strict=True):
            left[place] -= cell.pcpus + cell.emulator_pcpus
        if min(left) < 0:
            continue
        for taken in itertools.product(*(
                range(min(number, wanted) + 1 if place in chosen else 1)
                for place, number in enumerate(devices))):
            if sum(taken) == wanted:
                best = max(best, 1 + _most(demand, tuple(left), tuple(
                    number - gone for number, gone in zip(
                        devices, taken, strict=True)), known))
    known[free, devices] = best
    return best

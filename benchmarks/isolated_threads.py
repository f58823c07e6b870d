# SPDX-License-Identifier: Apache-2.0

"""Compare the weigher's count of guests of unequal cells with exact counts.

    python -m benchmarks.isolated_threads
    python -m benchmarks.isolated_threads --fleets 44 --hosts 8

With ``hw:emulator_threads_policy=isolate``, the first cell of a guest needs
one more PCPU than the others. Random requests for such guests of one, two and
four cells go to small fleets, where guests start and end, by three ways to
choose a host: by HPCTopologyWeigher's count, by the same with exact counts,
and the first host on which the guest fits. The CPUs of all guests that start
are added up; the difference has a 95 % interval over the fleets.
"""

import argparse
import collections
import dataclasses
import random
import statistics
import sys
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import allocation
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import rating
from hpcvirt.fit import room
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

CELLS, PCPUS, MEMORY_MIB = 4, 16, 65536
#: The PCPUs of each cell of a guest, without those of emulator threads.
KINDS = ((3,), (7,), (15,), (7, 7), (15, 15), (15, 15, 15, 15))
#: Requests for a fleet, and their mean life in requests for each host.
REQUESTS, LIFE = 200, 14


class ExactCounter(room.RoomCounter):
    """Counts guests by placing one after the other."""

    def count(self, supply: supplies.Supply) -> list[int]:
        """Count the guests of each kind that a host takes now."""
        return [count_by_placing(kind, supply) for kind in self.kinds]

    def count_if_empty(self, supply: supplies.Supply) -> list[int]:
        """Count the guests of each kind that the empty host takes."""
        return self.count(dataclasses.replace(
            supply, cells=make_host().cells))


def count_by_placing(kind: demands.Demand, supply: supplies.Supply) -> int:
    """Count the guests of one kind that a host takes."""
    count = 0
    while True:
        placed = claim.predict(kind, supply)
        if not isinstance(placed, demands.CellAssignment):
            return count
        supply = allocation.allocate(kind, supply, placed)
        count += 1


def make_host() -> supplies.Supply:
    """Make an empty host."""
    found = []
    for number in range(CELLS):
        cpus = range(number * PCPUS, (number + 1) * PCPUS)
        found.append(supplies.CellSupply(
            number, number // 2, frozenset(cpus), frozenset(cpus),
            frozenset(), tuple([frozenset({cpu}) for cpu in cpus]), 0,
            MEMORY_MIB, 0, (supplies.PageSupply(4, MEMORY_MIB * 256, 0,
                                                MEMORY_MIB * 256),)))
    return supplies.Supply(tuple(found))


def make_guest(pcpus: Sequence[int]) -> demands.Demand:
    """Make a guest with isolated emulator threads."""
    return demands.Demand(tuple([
        demands.CellDemand(
            shape_model.CPUPolicy.DEDICATED, None, count, 0, 1024,
            emulator_pcpus=int(not number))
        for number, count in enumerate(pcpus)]))


def run(counter: room.RoomCounter | None, seed: int, hosts: int) -> int:
    """Send requests to a fleet, whose guests start and end.

    :param counter: None to take the first host that fits
    :returns: the PCPUs of all guests that start
    """
    dice = random.Random(seed)
    fleet = [make_host() for _ in range(hosts)]
    kinds = [make_guest(pcpus) for pcpus in KINDS]
    guests: list[tuple[float, int, demands.Demand, allocation.Holding]] = []
    started = 0
    for time in range(REQUESTS):
        guest, = dice.choices(kinds, [1 / count_pcpus(kind) for kind in kinds])
        end = time + dice.expovariate(1 / (LIFE * hosts))
        for gone in [each for each in guests if each[0] <= time]:
            guests.remove(gone)
            _, number, kind, holding = gone
            fleet[number] = allocation.release(kind, fleet[number], holding)
        placed = []
        for number, supply in enumerate(fleet):
            where = claim.predict(guest, supply)
            if isinstance(where, demands.CellAssignment):
                placed.append((number, where))
        if not placed:
            continue
        number, where = placed[0]
        if counter is not None:
            number, where = placed[choose(
                counter, guest, fleet, placed, collections.Counter(
                    [on for _, on, _, _ in guests]))]
        fleet[number], holding = allocation.charge(guest, fleet[number], where)
        guests.append((end, number, guest, holding))
        started += count_pcpus(guest)
    return started


def count_pcpus(guest: demands.Demand) -> int:
    """Count the PCPUs of a guest, with those of emulator threads."""
    return sum([cell.pcpus + cell.emulator_pcpus for cell in guest.cells])


def choose(counter: room.RoomCounter, guest: demands.Demand,
           fleet: Sequence[supplies.Supply],
           placed: Sequence[tuple[int, demands.CellAssignment]],
           numbers: Mapping[int, int]) -> int:
    """Choose a host as HPCTopologyWeigher does, with equal shares of kinds.

    :param numbers: host -> the number of its guests
    """
    found = [rating.rate(counter, guest, fleet[number], numbers[number], where)
             for number, where in placed]
    totals = [sum(counts) for counts in zip(
        *[rated.before for rated in found], strict=True)]
    losses = rating.losses([1 / len(KINDS)] * len(KINDS), totals,
                           [rated.fewer for rated in found])
    ranks = rating.rank([(loss, *rated.left) for loss, rated in zip(
        losses, found, strict=True)])
    return ranks.index(max(ranks))


def main(argv: Sequence[str] | None = None) -> int:
    """Fill all fleets, and print the sums."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.isolated_threads',
        description=__doc__.splitlines()[0])
    parser.add_argument('--fleets', type=int, default=44)
    parser.add_argument('--hosts', type=int, default=8)
    options = parser.parse_args(argv)
    kinds = [make_guest(pcpus) for pcpus in KINDS]
    ways = {'weigher': room.RoomCounter(kinds),
            'exact counts': ExactCounter(kinds), 'first host': None}
    started: dict[str, list[int]] = collections.defaultdict(list)
    for seed in range(options.fleets):
        for name, counter in ways.items():
            started[name].append(run(counter, seed, options.hosts))
    for name, cpus in started.items():
        more = [own - other for own, other in zip(
            cpus, started['exact counts'], strict=True)]
        reach = 2 * statistics.stdev(more) / len(more) ** 0.5
        print(f'{name:<14}{sum(cpus):>8} PCPUs started, '
              f'{statistics.fmean(more):+.1f} ± {reach:.1f} a fleet')
    return 0


if __name__ == '__main__':
    sys.exit(main())

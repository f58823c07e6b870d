# SPDX-License-Identifier: Apache-2.0

"""Measure how well, and how fast, hosts are emptied.

First, random fleets of up to 6 hosts: in how many has the plan the fewest
instances left, cold migrations and moves of all sequences of moves? Then
HOSTS hosts of 8 cells with 80 % and 95 % of their CPUs in use: the time for 1,
3 and 10 hosts at once, and for a rolling plan::

    python3 -m benchmarks.drain [HOSTS [SEED [FLEETS]]]

Run it from the root of the repository.
"""

import collections
import random
import sys
import time

from benchmarks import make_room
from hpcvirt.fleet import drain
from hpcvirt.fleet import drain_search
from tests.builders import drains
from tests.builders import fleets

#: The most instances of a fleet for which all moves are tried.
MOST_INSTANCES = 10


def compare(dice, number):
    """Compare plans for small fleets with all sequences of moves."""
    results = collections.Counter()
    times = []
    while len(times) < number:
        found = fleets.a_fleet(dice, dice.choice((2, 3, 4, 5, 6)), load=0.9,
                               movable=0.85)
        if not found or not 2 < sum(
                len(host.instances) for host in found[0].hosts
                ) <= MOST_INSTANCES:
            continue
        cold = dice.random() < 0.5
        fleet = (found[0] if dice.random() < 0.5 else
                 fleets.constrained(dice, found[0], cold))
        names = [host.name for host in fleet.hosts[:dice.choice((1, 1, 2))]]
        begin = time.process_time()
        plan = drain.plan(fleet.hosts, names, cold)
        times.append(time.process_time() - begin)
        best = drains.AllMoves(fleet.hosts, names, cold).fewest(
            drain_search.MAX_OTHERS)
        own = (len(plan.obstacles), sum(move.cold for move in plan.moves),
               len(plan.moves))
        if own == best:
            result = 'the best'
        elif own < best:
            result = 'better by more moves of others'
        else:
            result = 'worse'
        results[result] += 1
        results['proven'] += plan.proven
        results['with instances left'] += bool(plan.obstacles)
    print(f'{number} fleets of up to 6 hosts: ' + ', '.join(
        f'{key}: {count}' for key, count in results.items())
        + f'; longest {max(times, default=0):.2f} s')


def measure(dice, number, load):
    """Empty hosts of a large fleet."""
    make_room.LOAD = load
    fleet, _ = make_room.a_fleet(dice, number)
    print(f'{number} hosts, {sum(len(h.instances) for h in fleet)} instances, '
          f'{load:.0%} of the CPUs in use')
    names = [host.name for host in fleet]
    for count in (1, 3, 10):
        chosen = dice.sample(names, count)
        begin = time.process_time()
        plan = drain.plan(fleet, chosen)
        seconds = time.process_time() - begin
        own = sum(len(host.instances) for host in fleet
                  if host.name in chosen)
        print(f'  {count:3} hosts with {own} instances: {len(plan.moves)} '
              f'moves, {len(plan.obstacles)} left, '
              f'{"proven" if plan.proven else "not proven"}, {seconds:.2f} s',
              flush=True)
    begin = time.process_time()
    plan = drain.plan_waves(fleet, names, 10)
    print(f'  rolling, 10 at a time: {len(plan.waves)} waves, '
          f'{sum(len(wave.hosts) for wave in plan.waves)} hosts emptied by '
          f'{len(plan.moves)} moves, {time.process_time() - begin:.2f} s',
          flush=True)


def main(number=300, seed=1, rounds=200):
    """Print the comparison and the times."""
    compare(random.Random(seed), rounds)
    for load in (0.8, 0.95):
        measure(random.Random(seed), number, load)


if __name__ == '__main__':
    main(*map(int, sys.argv[1:]))

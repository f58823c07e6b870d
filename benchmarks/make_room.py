# SPDX-License-Identifier: Apache-2.0

"""Measure how long it takes to make room on a large fleet.

Fills 300 hosts of 8 cells to 95 % with random instances of a plan, and asks
for one and for two more instances of each flavor, with up to K moves::

    python3 -m benchmarks.make_room [HOSTS [SEED]]

Run it from the root of the repository.
"""

import random
import sys
import time

from hpcvirt.fit import admission
from hpcvirt.fit import allocation
from hpcvirt.fit import reasons
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from tests.builders import fleets
from tests.builders import hosts

LOAD = 0.95


def a_fleet(dice, number):
    """Fill hosts to a share of their CPUs; instances also leave on the way."""
    machine = hosts.build(cells=8, cores=16, mib=65536, name='machine')
    document, flavors = fleets.plan_of([machine])
    (empty,) = fleets.fleet_of([machine], document).hosts
    return tuple(_fill(dice, state.FleetHost(f'n{index}', empty.state),
                       flavors) for index in range(number)), flavors


def _fill(dice, host, flavors):
    total = host.state.free.pcpus
    refused = 0
    for number in range(10_000):
        if host.state.free.pcpus <= total * (1 - LOAD) or refused > 200:
            break
        flavor = dice.choice([item for item in flavors if item.vcpus < 64])
        guest = compiled_flavor.make(flavor)
        placed = admission.predict(guest, host.state)
        if isinstance(placed, reasons.Misfit):
            refused += 1
            if host.instances and dice.random() < 0.1:
                host = moving.leave(dice.choice(host.instances), host)
            continue
        host = moving.arrive(state.Instance(
            f'{host.name}-{number}', '', host.name, guest,
            allocation.Holding(placed)), host, placed)
    return host


def main(number=300, seed=1):
    """Make room for each flavor, and print the times."""
    fleet, flavors = a_fleet(random.Random(seed), number)
    free = sum(host.state.free.pcpus for host in fleet)
    print(f'{number} hosts, {sum(len(h.instances) for h in fleet)} instances,'
          f' {free / number / 128:.1%} of the CPUs free')
    print('moves needed for one and for two more instances')
    for flavor in flavors:
        print(f'{flavor.name:16}', *(
            _timed(compiled_flavor.make(flavor), fleet, most, count)
            for most, count in ((1, 1), (2, 1), (2, 2))))


def _timed(guest, fleet, most, count):
    begin = time.perf_counter()
    plan = make_room.search(guest, fleet, most, count)
    return (f'K={most} N={count}: '
            + (f'{len(plan.moves)}   ' if plan else 'none')
            + f' {time.perf_counter() - begin:5.2f} s  ')


if __name__ == '__main__':
    main(*map(int, sys.argv[1:]))

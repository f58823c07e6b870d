# SPDX-License-Identifier: Apache-2.0

"""Measure how long ``hpcvirt explain`` and ``capacity`` take on a fleet.

Creates a fleet of hosts of all shipped topologies, each with random instances
of a plan, and runs the commands on it as an operator does::

    python3 -m benchmarks.large_fleet [HOSTS [INSTANCES_EACH [SEED]]]

Run it from the root of the repository.
"""

import json
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts

#: Its hosts differ most in what they are made of.
PROFILE = profiles.Profile(smallest_cores=1)


def documents(dice, number, each):
    """Create a fleet.

    :returns: the kind of each host, the flavors, and the instances in the form
        of a fleet document
    """
    kinds = hosts.shipped()
    plan = planner.plan(kinds, PROFILE)
    flavors = [row.flavor for row in plan.flavors]
    empty = {kind.name: kind.state.supply for kind in plan.hosts}
    of_host = {f'n{index:05}': dice.choice(kinds).name
               for index in range(number)}
    compiled = [(flavor, compiled_flavor.make(flavor)) for flavor in flavors]
    instances = []
    for name, kind in of_host.items():
        wanted = dice.randrange(2 * each + 1)
        instances += _fill(dice, name, empty[kind], compiled, wanted)
    return of_host, flavors, instances


def _fill(dice, host, supply, compiled, number):
    """Put instances on random host cells with enough resources."""
    cpus = {cell.id: sorted(cell.free) for cell in supply.cells}
    pages = {}
    for cell in supply.cells:
        for pool in cell.pages:
            pages[cell.id, pool.size_kib] = pool.free
    for index in range(number):
        flavor, guest = dice.choice(compiled)
        demand = guest.demand.cells
        if flavor.extra_specs.get('hw:cpu_policy') != 'dedicated' or not all(
                cell.page_kib for cell in demand):
            continue
        roomy = [cell for cell in cpus if all(
            len(cpus[cell]) >= one.pcpus and
            pages.get((cell, one.page_kib), 0) * one.page_kib
            >= one.memory_mib * 1024 for one in demand)]
        if len(roomy) < len(demand):
            continue
        cells = dice.sample(roomy, len(demand))
        taken = []
        for cell, one in zip(cells, demand, strict=True):
            taken += cpus[cell][:one.pcpus]
            del cpus[cell][:one.pcpus]
            pages[cell, one.page_kib] -= (
                one.memory_mib * 1024 // one.page_kib)
        yield {'id': f'{host}-{index}', 'host': host, 'flavor': {
            'name': flavor.name, 'vcpus': flavor.vcpus,
            'ram_mib': flavor.ram_mib, 'disk_gib': 0,
            'extra_specs': dict(flavor.extra_specs)},
            'cells': [{'id': cell, 'pages': {
                one.page_kib: one.memory_mib * 1024 // one.page_kib}}
                for cell, one in zip(cells, demand, strict=True)],
            'cpus': taken}


def measure(arguments):
    """Run a command of hpcvirt; return its wall time and CPU time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, '-m', 'hpcvirt.cmd.main', *arguments],
        stdout=subprocess.DEVNULL, check=False)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f'hpcvirt ended with {done.returncode}')
    return wall, (after.ru_utime - before.ru_utime
                  + after.ru_stime - before.ru_stime)


def main(number=5000, each=24, seed=1):
    """Create a fleet, and run the commands on it."""
    of_host, flavors, instances = documents(random.Random(seed), number, each)
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name, 'fleet.json')
        path.write_text(json.dumps({
            'schema_version': 1, 'instances': instances, 'classes': {'all': {
                'hosts': [f'{host}={hosts.TOPOLOGIES / kind}.json'
                          for host, kind in of_host.items()],
                'profile': {'base': 'dense', 'smallest_cores': 1}}}}))
        print(f'{number} hosts of {len(set(of_host.values()))} kinds, '
              f'{len(instances)} instances, {len(flavors)} flavors')
        largest = max(flavors, key=lambda item: item.vcpus)
        smallest = min(flavors, key=lambda item: item.vcpus)
        for words in (['explain', '--flavor', smallest.name],
                      ['explain', '--flavor', largest.name],
                      ['capacity']):
            wall, cpu = measure([*words, '--format', 'json',
                                 '--fleet', str(path)])
            print(f'{" ".join(words):40} {wall:6.2f} s, {cpu:6.2f} CPU s')


if __name__ == '__main__':
    main(*map(int, sys.argv[1:]))

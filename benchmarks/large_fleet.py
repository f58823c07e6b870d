# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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

from hpcvirt.flavors import json_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.fleet import empty_host
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import host_settings
from tests import hosts

#: Its hosts differ most in what they are made of.
PROFILE = profiles.Profile(smallest_cores=1)


def documents(dice, number, each):
    """Create a fleet.

    :returns: the kind of each host, the document of the plan, and that of the
        instances
    """
    kinds = hosts.shipped()
    plan = planner.plan(kinds, PROFILE)
    document = json_document.document(plan)
    flavors = [row.flavor for row in plan.flavors]
    settings = host_settings.read(document, 'plan')
    empty = {kind.name: empty_host.of(kind, settings[kind.name])
             for kind in kinds}
    of_host = {f'n{index:05}': dice.choice(kinds).name
               for index in range(number)}
    document['host_config'] = {
        name: document['host_config'][kind]
        for name, kind in of_host.items()}
    compiled = [(flavor, guests.of_flavor(flavor)) for flavor in flavors]
    return of_host, document, {'instances': [
        instance for name, kind in of_host.items()
        for instance in _fill(dice, name, empty[kind].supply,
                              compiled, dice.randrange(2 * each + 1))]}


def _fill(dice, host, supply, compiled, number):
    """Put instances on cells with enough of everything, wherever these are."""
    cpus = {cell.id: sorted(cell.free) for cell in supply.cells}
    pages = {(cell.id, pool.size_kib): pool.free for cell in supply.cells
             for pool in cell.pages}
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
            'ram_mib': flavor.ram_mib,
            'extra_specs': dict(flavor.extra_specs)},
            'cells': cells, 'cpus': taken,
            'pages_kib': demand[0].page_kib}


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
    """Create a fleet and ask about it."""
    of_host, plan, usage = documents(random.Random(seed), number, each)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / 'plan.json').write_text(json.dumps(plan))
        (directory / 'usage.json').write_text(json.dumps(usage))
        files = ['--usage', str(directory / 'usage.json'),
                 '--flavors', str(directory / 'plan.json')]
        for host, kind in of_host.items():
            files += ['--topology',
                      f'{host}={hosts.TOPOLOGIES / kind}.json']
        print(f'{number} hosts of {len(set(of_host.values()))} kinds, '
              f'{len(usage["instances"])} instances, '
              f'{len(plan["flavors"])} flavors')
        largest = max(plan['flavors'], key=lambda item: item['vcpus'])
        smallest = min(plan['flavors'], key=lambda item: item['vcpus'])
        for words in (['explain', '--flavor', smallest['name']],
                      ['explain', '--flavor', largest['name']],
                      ['capacity']):
            wall, cpu = measure([*words, '--format', 'json', *files])
            print(f'{" ".join(words):40} {wall:6.2f} s, {cpu:6.2f} CPU s')


if __name__ == '__main__':
    main(*map(int, sys.argv[1:]))

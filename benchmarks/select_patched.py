# SPDX-License-Identifier: Apache-2.0

"""Measure the select path with the patches of contrib/nova.

Run it from the root of the repository with the Python of an environment that
has Nova::

    python -m benchmarks.select_patched [--hosts 1000]

The same requests go to nova-scheduler with HPCTopologyFilter and its weighers
on Nova as it is installed, and on a copy to which the patches are applied. The
first request of a process reads all hosts; before the others, one host in a
hundred has changed. The time is CPU time in microseconds for each host.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import fleet
import select_fleet
import select_path

from tests.functional import test_nova_patches as patches

GUESTS = (('usual', 2, 0), ('one VF', 2, 1), ('no NUMA topology', 0, 0))
REQUESTS = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both and print the table."""
    parser = argparse.ArgumentParser(
        prog='benchmarks/select_patched.py',
        description='Measure the select path with the patches for Nova.')
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--requests-of', help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.requests_of:
        print(requests(options.hosts, options.requests_of))
        return 0
    print(f'{options.hosts} hosts of 8 cells, us/host\n'
          f'{"guest":<20}{"Nova":<12}{"first":>8}{"later":>8}')
    with tempfile.TemporaryDirectory() as name:
        patched = pathlib.Path(name)
        patches.make_patched(patched)
        for guest, _, _ in GUESTS:
            for kind, path in (('installed', patches.INSTALLED.parent),
                               ('patched', patched)):
                run = subprocess.run(
                    (sys.executable, '-W', 'ignore', '-m',
                     'benchmarks.select_patched', '--hosts',
                     str(options.hosts), '--requests-of', guest),
                    text=True, capture_output=True, check=True,
                    cwd=patches.ROOT, env={
                        **os.environ,
                        'PYTHONPATH': f'{path}{os.pathsep}{patches.ROOT}'})
                print(f'{guest:<20}{kind:<12}{run.stdout.rstrip()}',
                      flush=True)
    return 0


def requests(hosts: int, guest: str) -> str:
    """Answer requests; return the time of the first and of the others."""
    fleet.configure()
    states = fleet.hosts(select_fleet.DIFFERENT, 8)
    others = fleet.hosts(REQUESTS, 8, seed=2)
    (cells, vfs), = ((cells, vfs) for name, cells, vfs in GUESTS
                     if name == guest)
    database = select_fleet.Database(hosts, states)
    select_fleet.configure(('HPCTopologyFilter',),
                           ('hpcvirt.nova.weights.all_weighers',))
    scheduler = select_fleet.scheduler(database)
    times = []
    for other in others:
        start = time.process_time()
        select_path.select(scheduler, select_fleet.request(cells, vfs, 4), 1)
        times.append((time.process_time() - start) / hosts * 1e6)
        for node in database.nodes[::100]:
            node['numa_topology'] = other.numa_topology._to_json()
    return f'{times[0]:>8.0f}{sum(times[1:]) / (REQUESTS - 1):>8.0f}'


if __name__ == '__main__':
    sys.exit(main())

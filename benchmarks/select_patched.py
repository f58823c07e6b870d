# SPDX-License-Identifier: Apache-2.0

"""Measure the select path with the patches of contrib/nova.

Run it from the root of the repository with the Python of an environment that
has Nova::

    python -m benchmarks.select_patched                 all rows
    python -m benchmarks.select_patched --hosts 1000    one size of the fleet
    python -m benchmarks.select_patched --filters Nova  some of the filters

The same requests go to the installed Nova, and to copies with one patch or all
patches; 0005 needs 0004. "hpcvirt" is HPCTopologyFilter with its weighers,
"Nova" is NUMATopologyFilter, for VFs with PciPassthroughFilter. Patches that
are not measured alone do not affect these requests.

The first request of a process reads all hosts. Before the other requests, no
host has changed, one in a hundred, or one in ten. The time is the CPU time for
each host in microseconds.
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

#: Cells and VFs of the guests.
GUESTS = {'usual': (2, 0), 'one VF': (2, 1), 'no NUMA topology': (0, 0)}
SIZES = 1000, 5000
#: One of this number of hosts has changed before a request; 0 is none.
CHANGED = {'0 %': 0, '1 %': 100, '10 %': 10}
#: The patches that concern the select path, as far as they can be alone.
SETS = {'none': (), '0003': (3,), '0004': (4,), '0004, 0005': (4, 5),
        '0007': (7,), '0008': (8,), 'all': range(1, 9)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all combinations and print the table."""
    parser = argparse.ArgumentParser(
        prog='benchmarks/select_patched.py',
        description='Measure the select path with the patches for Nova.')
    parser.add_argument('--hosts', type=int, action='append')
    parser.add_argument('--guest', choices=GUESTS, action='append')
    parser.add_argument('--filters', choices=('hpcvirt', 'Nova'),
                        action='append')
    parser.add_argument('--patches', choices=SETS, action='append')
    parser.add_argument('--requests', action='store_true',
                        help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.requests:
        print(requests(*options.hosts, *options.guest, *options.filters))
        return 0
    print('us for each host of 8 cells\n'
          f'{"guest":<18}{"hosts":>5} {"filters":<9}{"patches":<12}'
          + ''.join(f'{name:>7}' for name in ('first', *CHANGED)))
    for size in options.hosts or SIZES:
        for guest in options.guest or GUESTS:
            for filters in options.filters or ('hpcvirt', 'Nova'):
                for kind in options.patches or SETS:
                    print(f'{guest:<18}{size:>5} {filters:<9}{kind:<12}'
                          + in_child(size, guest, filters, kind), flush=True)
    return 0


def in_child(size: int, guest: str, filters: str, kind: str) -> str:
    """Measure in a process with another Nova."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name)
        patches.make_patched(path, [patches.PATCHES[number - 1]
                                    for number in SETS[kind]])
        return subprocess.run(
            (sys.executable, '-W', 'ignore', '-m',
             'benchmarks.select_patched', '--hosts', str(size), '--guest',
             guest, '--filters', filters, '--requests'),
            text=True, stdout=subprocess.PIPE, check=True, cwd=patches.ROOT,
            env={**os.environ, 'PYTHONPATH': os.pathsep.join(
                map(str, (path, patches.INSTALLED.parent, patches.ROOT)))},
        ).stdout.rstrip()


def requests(hosts: int, guest: str, filters: str) -> str:
    """Answer requests, and return the time of each."""
    fleet.configure()
    states = fleet.hosts(select_fleet.DIFFERENT, 8)
    others = iter(fleet.hosts(len(CHANGED), 8, seed=2))
    cells, vfs = GUESTS[guest]
    database = select_fleet.Database(hosts, states)
    novas, hpcvirts = select_path.sides(select_path.Case(
        guest, 8, cells, vfs))
    side = hpcvirts if filters == 'hpcvirt' else novas
    select_fleet.configure(side.filters, side.weighers)
    scheduler = select_fleet.scheduler(database)
    times = []
    for share in (0, *CHANGED.values()):
        if share:
            text = next(others).numa_topology._to_json()
            for node in database.nodes[::share]:
                node['numa_topology'] = text
        request = select_fleet.request(cells, vfs, 4)
        start = time.process_time()
        select_path.select(scheduler, request, 1)
        times.append((time.process_time() - start) / hosts * 1e6)
    return ''.join(f'{each:>7.0f}' for each in times)


if __name__ == '__main__':
    sys.exit(main())

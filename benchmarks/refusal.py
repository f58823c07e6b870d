# SPDX-License-Identifier: Apache-2.0

"""Compare the time of HPCTopologyFilter to refuse a host and to pass one.

Run it from the root of the repository with the Python of an environment that
has Nova::

    python -m benchmarks.refusal [--hosts 300] [--only TEXT]

Each case has the same guest on hosts that pass and on hosts that do not, and
the hosts take turns in the same run. "usual" is the time to pass a guest of
two cells on the hosts that pass. The time is the CPU time of the process for a
host, the best of several runs without garbage collection, with logging at
WARNING. "At INFO" all hosts are refused, so that the filter finds the reasons
and logs their counts. The exit status is 1 if a refusal takes more than twice
as long as the pass of the same guest.
"""

import argparse
import dataclasses
import logging
import os
import pathlib
import sys
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import fleet

from hpcvirt.nova import filters

LIMIT = 2.0
RUNS = 9


@dataclasses.dataclass(frozen=True)
class Case:
    """A guest, hosts that pass and hosts that refuse it.

    :ivar extra_specs: extra specs besides dedicated CPUs and pages
    :ivar nics: see :func:`fleet.hosts`
    """

    name: str
    cells: int
    guest_cells: int
    refusing: fleet.Occupancy
    vfs: int = 0
    affinity: str = 'required'
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    nics: tuple[int | None, ...] = (0, 0)
    spoil: Callable[[Any], None] | None = None


def _take_pages(state: Any) -> None:
    for cell in state.numa_topology.cells[1:]:
        cell.mempages[1].used = cell.mempages[1].total


def _take_devices(state: Any) -> None:
    for pool in state.pci_stats.pools:
        pool['count'] = 0


def _take_threads(state: Any) -> None:
    for cell in state.numa_topology.cells[1:]:
        cell.pinned_cpus = {min(core) for core in cell.siblings}


def _forget_cells(state: Any) -> None:
    state.numa_topology.cells = state.numa_topology.cells[:1]


UNEQUAL = {'hw:numa_cpus.0': '0-9', 'hw:numa_cpus.1': '10-15',
           'hw:numa_mem.0': '4096', 'hw:numa_mem.1': '4096'}

CASES = (
    Case('one cell busy', 8, 8, fleet.busy(7)),
    Case('one cell busy', 16, 16, fleet.busy(7)),
    Case('one cell usable', 8, 2, fleet.busy(*range(1, 8))),
    Case('nothing usable', 2, 1, fleet.busy(0, 1)),
    Case('nothing usable', 16, 2, fleet.busy(*range(16))),
    Case('five cells usable', 16, 6, fleet.busy(*range(5, 16))),
    Case('pages of one cell', 8, 2, fleet.busy(), spoil=_take_pages),
    Case('pages of one cell', 8, 8, fleet.busy(), spoil=_take_pages),
    Case('pages by class', 8, 2, fleet.busy(*range(1, 8)),
         extra_specs={'hw:mem_page_size': 'large'}),
    Case('siblings', 8, 2, fleet.busy(), spoil=_take_threads,
         extra_specs={'hw:cpu_thread_policy': 'require'}),
    Case('too few cells', 8, 2, fleet.busy(), spoil=_forget_cells),
    Case('unequal cells', 8, 2, fleet.busy(*range(1, 8)), extra_specs=UNEQUAL),
    Case('one socket', 8, 2, fleet.busy(1, 2, 3, 5, 6, 7),
         extra_specs={'hpcvirt:numa_scope': 'socket'}),
    Case('empty cells', 8, 2, lambda *_: 0.1,
         extra_specs={'hpcvirt:exclusive_cells': 'true'}),
    Case('VF, one cell busy', 8, 8, fleet.busy(7), 1),
    Case("VF's cell busy", 8, 4, fleet.busy(0), 1),
    Case("VF's cell busy", 4, 2, fleet.busy(0), 1),
    Case('no VF left', 8, 2, fleet.busy(), 1, spoil=_take_devices),
    Case('no VF left, preferred', 8, 2, fleet.busy(), 1, 'preferred',
         spoil=_take_devices),
    Case('VF of a busy socket', 8, 2, fleet.busy(0, 1, 2, 3), 1, 'socket'),
    Case('no VF left, no cells', 8, 0, fleet.busy(), 1, spoil=_take_devices),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(
        prog='benchmarks/refusal.py',
        description='Compare refusals and passes of HPCTopologyFilter.')
    parser.add_argument('--hosts', type=int, default=300,
                        help='hosts of each fleet (default: %(default)s)')
    parser.add_argument('--only', default='', metavar='TEXT',
                        help='run the cases whose name contains this text')
    options = parser.parse_args(arguments)
    fleet.configure()
    logging.getLogger('hpcvirt').addHandler(logging.NullHandler())
    logging.getLogger('hpcvirt').propagate = False
    print(f'{"case":<24}{"cells":>6}{"usual us":>10}{"pass us":>9}'
          f'{"refuse us":>11}{"at INFO":>9}{"ratio":>7}{"at INFO":>9}  ok')
    missed = 0
    for case in CASES:
        if options.only in case.name:
            missed += run(case, options.hosts)
    return 1 if missed else 0


def run(case: Case, count: int) -> bool:
    """Measure a case, and print its row.

    :returns: whether a refusal took too long
    """
    free = fleet.hosts(count, case.cells, fleet.busy(), case.nics)
    taken = fleet.hosts(count, case.cells, case.refusing, case.nics)
    if case.spoil is not None:
        for state in taken:
            case.spoil(state)
    spec = fleet.request(case.guest_cells, case.vfs, case.affinity, 8,
                         extra_specs=case.extra_specs)
    usual = fleet.request(2, pcpus=8)
    best = {}
    for _ in range(RUNS):
        for name, hosts, asked, level, passes in (
                ('usual', free, usual, logging.WARNING, count),
                ('pass', free, spec, logging.WARNING, count),
                ('refuse', taken, spec, logging.WARNING, 0),
                ('info', taken, spec, logging.INFO, 0)):
            us, passed = measure(hosts, asked, level)
            if name != 'usual' and passed != passes:
                raise SystemExit(f'{case.name}: {passed} hosts pass instead '
                                 f'of {passes}')
            best[name] = min(us, best.get(name, us))
    ratios = best['refuse'] / best['pass'], best['info'] / best['pass']
    missed = ratios[0] > LIMIT
    print(f'{case.name:<24}{f"{case.cells}/{case.guest_cells}":>6}'
          f'{best["usual"]:>10.1f}{best["pass"]:>9.1f}'
          f'{best["refuse"]:>11.1f}{best["info"]:>9.1f}'
          f'{ratios[0]:>7.2f}{ratios[1]:>9.2f}  '
          f'{"MISSED" if missed else "ok"}', flush=True)
    return missed


def measure(hosts: Sequence[Any], spec: Any, level: int) -> tuple[float, int]:
    """Run the filter once.

    :returns: the time for a host, and the number of hosts that pass
    """
    logging.getLogger('hpcvirt').setLevel(level)
    scheduler_filter = filters.HPCTopologyFilter()
    fleet.prepare(hosts)
    passed, us = fleet.timed(
        lambda: sum(1 for _ in scheduler_filter.filter_all(hosts, spec)))
    return us / len(hosts), passed


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0

"""Compare the speed of HPCTopologyFilter and the filters that it replaces.

    tox -e bench                  all cases with 200 hosts: about 2 minutes
    tox -e bench -- --hosts 1000  slower, and less noisy
    tox -e bench -- --only VF     the cases whose name contains VF

HPCTopologyFilter gets the same HostStates and the same RequestSpec as Nova's
NUMATopologyFilter and, for guests with PCI devices, PciPassthroughFilter after
it. They must pass the same hosts with the same allocation candidates. The time
is the CPU time of the process, the best of several runs without garbage
collection, with logging at WARNING (DEBUG and INFO cost Nova's filters much
time and HPCTopologyFilter little). Without patches, nova-scheduler reads the
record of each host anew for each request: the ratio is that of "new". Where
records are kept, HPCTopologyFilter checks them once: "ours". In cases where
Nova's filters take seconds for one host they get only a few of the hosts;
nothing is extrapolated. The exit status is 1 if a target is missed.
"""

import argparse
import dataclasses
import gc
import itertools
import os
import sys
import tracemalloc
from collections.abc import Sequence
from typing import Any

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

import fleet
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter

from hpcvirt.nova import filters

#: How many times faster HPCTopologyFilter must be.
TARGET = 20
#: The longest time for a host if the guest fits nowhere.
NO_FIT_LIMIT_US = 2000
#: The memory that the filter may use, for any number of hosts.
MEMORY_LIMIT_KIB = 64


@dataclasses.dataclass(frozen=True)
class Case:
    """A fleet of hosts and a request.

    :ivar cells: host cells
    :ivar guest_cells: equal guest cells; 0 for no NUMA topology
    :ivar target: how many times faster HPCTopologyFilter must be, if all
        records are new
    :ivar nova_hosts: hosts for Nova's filters, None for all of them
    :ivar runs: runs of Nova's filters, the best of which is used
    :ivar fits: some hosts may pass
    """

    name: str
    cells: int
    guest_cells: int
    target: int
    vfs: int = 0
    occupancy: fleet.Occupancy = fleet.at_random
    nics: tuple[int | None, ...] = (None, None)
    candidates: int = 1
    nova_hosts: int | None = None
    runs: int = 2
    fits: bool = True


CASES = (
    *(Case(f'{share:.0%} pass{", VF" * vfs}', cells, min(cells // 2, 2),
           TARGET, vfs=vfs, occupancy=fleet.passing(share), nova_hosts=100)
      for vfs, cells, share in itertools.product(
          (0, 1), (2, 4, 8, 16), (0, 0.1, 1))),
    Case('one required VF', 8, 2, TARGET, vfs=1, nova_hosts=100),
    Case('one required VF', 8, 4, TARGET, vfs=1, nova_hosts=100, runs=1),
    Case('VF, no NUMA topology', 8, 0, TARGET, vfs=1, nova_hosts=100),
    Case('VF, 8 candidates', 8, 2, TARGET, vfs=1, candidates=8, nova_hosts=20,
         runs=1),
    Case('no fit: one cell busy', 8, 8, 2000, nova_hosts=3,
         occupancy=fleet.busy(7), fits=False),
    Case('no fit: five cells usable', 16, 6, 2000, nova_hosts=1, runs=1,
         occupancy=fleet.busy(*range(5, 16)), fits=False),
    Case("no fit: VF's cell busy", 8, 4, 2000, vfs=1, nova_hosts=1, runs=1,
         occupancy=fleet.busy(0), nics=(0, 0), fits=False),
)


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a case; times are in microseconds per host.

    :ivar new_us: the time of HPCTopologyFilter if all records are new
    :ivar peak_kib: memory per host that a request takes at most, including
        what it leaves on the HostStates
    """

    case: Case
    hosts: int
    nova_hosts: int
    nova_us: float
    ours_us: float
    new_us: float
    peak_kib: float
    passed: int
    equal: bool

    @property
    def ratio(self) -> float:
        return self.nova_us / self.new_us

    @property
    def ok(self) -> bool:
        return (self.equal and
                self.ratio >= self.case.target and
                (self.case.fits or (self.passed == 0 and
                                    self.ours_us <= NO_FIT_LIMIT_US)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(
        prog='benchmarks/filter.py',
        description='Compare the speed of HPCTopologyFilter and the filters '
        'of Nova that it replaces.')
    parser.add_argument('--hosts', type=int, default=200,
                        help='hosts of each fleet (default: %(default)s)')
    parser.add_argument('--only', default='', metavar='TEXT',
                        help='run the cases whose name contains this text')
    options = parser.parse_args(arguments)
    fleet.configure()
    print(HEADER)
    results = []
    for case in CASES:
        if options.only in case.name:
            results.append(run(case, options.hosts))
            print(row(results[-1]), flush=True)
    kept, peak = memory(options.hosts)
    flat = max(kept, peak) <= MEMORY_LIMIT_KIB
    print(f'\nmemory over {options.hosts} hosts: {kept:.1f} KiB kept, '
          f'at most {peak:.1f} KiB in use '
          f'(limit {MEMORY_LIMIT_KIB} KiB): {"ok" if flat else "MISSED"}')
    return 0 if flat and all(result.ok for result in results) else 1


def run(case: Case, count: int) -> Result:
    """Measure one case."""
    hosts = fleet.hosts(count, case.cells, case.occupancy, case.nics)
    spec = fleet.request(case.guest_cells, case.vfs)
    some = hosts[:case.nova_hosts]
    ours, novas = filters.HPCTopologyFilter(), NovasFilters(case.vfs > 0)
    equal = (outcome(ours, some, spec, case.candidates) ==
             (theirs := outcome(novas, some, spec, case.candidates)))
    nova_us = min(theirs.us, *(
        outcome(novas, some, spec, case.candidates).us
        for _ in range(case.runs - 1))) if case.runs > 1 else theirs.us
    passed = outcome(ours, hosts, spec, case.candidates)
    ours_us = min(outcome(ours, hosts, spec, case.candidates).us
                  for _ in range(7))
    return Result(case, len(hosts), len(some), nova_us,
                  min(ours_us, passed.us),
                  min(renewed(ours, hosts, spec, case.candidates).us
                      for _ in range(7)),
                  peak(ours, hosts, spec, case.candidates) / 1024,
                  len(passed.hosts), equal)


class NovasFilters:
    """The filters of Nova that HPCTopologyFilter replaces, as one filter."""

    def __init__(self, devices: bool) -> None:
        self._filters: list[Any] = [numa_topology_filter.NUMATopologyFilter()]
        if devices:
            self._filters.append(pci_passthrough_filter.PciPassthroughFilter())

    def filter_all(self, hosts: Sequence[Any], spec: Any) -> Sequence[Any]:
        """Pass hosts through all filters, as nova-scheduler does."""
        for each in self._filters:
            hosts = list(each.filter_all(hosts, spec))
        return hosts


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The hosts and candidates that a filter passes, and the time."""

    hosts: tuple[str, ...]
    candidates: tuple[int, ...]
    us: float = dataclasses.field(compare=False)


def outcome(scheduler_filter: Any, hosts: Sequence[Any], spec: Any,
            candidates: int) -> Outcome:
    """Run a filter on hosts once."""
    fleet.prepare(hosts, candidates)
    passed, us = fleet.timed(
        lambda: list(scheduler_filter.filter_all(hosts, spec)))
    return Outcome(tuple(state.host for state in passed),
                   tuple(len(state.allocation_candidates)
                         for state in hosts), us / len(hosts))


def renewed(scheduler_filter: Any, hosts: Sequence[Any], spec: Any,
            candidates: int) -> Outcome:
    """Run a filter once on hosts whose records are new."""
    fleet.renew(hosts)
    return outcome(scheduler_filter, hosts, spec, candidates)


def peak(scheduler_filter: Any, hosts: Sequence[Any], spec: Any,
         candidates: int) -> float:
    """Measure the peak memory of a request, in bytes per host."""
    fleet.prepare(hosts, candidates)
    tracemalloc.start()
    list(scheduler_filter.filter_all(hosts, spec))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / len(hosts)


def memory(count: int) -> tuple[float, float]:
    """Measure the memory of the filter, in KiB.

    :returns: the memory that is kept after a request, without that of the
        hosts, and the peak memory for a single host
    """
    hosts = fleet.hosts(count, 4)
    spec = fleet.request(2, 1)
    scheduler_filter = filters.HPCTopologyFilter()
    tracemalloc.start()
    # First runs fill Python's caches and the dictionaries of the hosts.
    peak = max(filtered(scheduler_filter, hosts, spec) for _ in range(3))
    before = tracemalloc.get_traced_memory()[0]
    filtered(scheduler_filter, hosts, spec)
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return kept / 1024, peak / 1024


def filtered(scheduler_filter: Any, hosts: Sequence[Any], spec: Any) -> int:
    """Filter hosts one by one, and restore them.

    :returns: the peak memory for a single host, in bytes
    """
    peak = 0
    fleet.prepare(hosts)
    tracemalloc.reset_peak()
    for state in scheduler_filter.filter_all(hosts, spec):
        # The limits and candidates that the filter sets on a host are not
        # memory of the filter.
        fleet.prepare([state])
        now, most = tracemalloc.get_traced_memory()
        peak = max(peak, most - now)
        tracemalloc.reset_peak()
    fleet.prepare(hosts)
    gc.collect()
    return peak


HEADER = (f'{"case":<26}{"cells":>6}{"hosts":>12}{"pass":>6}{"equal":>6}'
          f'{"Nova us/host":>14}{"ours us/host":>13}{"new":>8}{"KiB/host":>9}'
          f'{"ratio":>8}'
          f'{"target":>8}  ok')


def row(result: Result) -> str:
    """Write one line of the table."""
    case = result.case
    hosts = str(result.hosts)
    if result.nova_hosts != result.hosts:
        hosts += f' ({result.nova_hosts})'
    return (f'{case.name:<26}{f"{case.cells}/{case.guest_cells}":>6}'
            f'{hosts:>12}{result.passed:>6}'
            f'{"yes" if result.equal else "NO":>6}{result.nova_us:>14.1f}'
            f'{result.ours_us:>13.1f}{result.new_us:>8.1f}'
            f'{result.peak_kib:>9.1f}'
            f'{f"{result.ratio:.0f}x":>8}'
            f'{f"{case.target}x":>8}  {"ok" if result.ok else "MISSED"}')


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0

"""Measure what HPCTopologyWeigher costs, beside Nova's own weighers.

    python benchmarks/weighers.py
    python benchmarks/weighers.py --hosts 100

The second table is for 1,000 hosts of 8 cells, with and without Python's
garbage collection, as nova-scheduler runs: the records of the hosts are
decoded anew for each request. It has the usual and the longest CPU time of a
request, and the memory that the weigher uses.

It weighs hosts that are all in other states. Before that, it has seen requests
of many kinds. The time is the CPU time of the process for each host: in a
fleet that the weigher has not seen before ("new"), and in one that it has,
which is the usual case since one request changes few hosts ("known"). The exit
status is 1 if HPCTopologyWeigher takes 200 us or more on hosts with 16 cells
that it knows.
"""

import argparse
import copy
import dataclasses
import gc
import itertools
import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

import fleet
from nova import objects
from nova.pci import stats
from nova.scheduler import weights as nova_weights

from hpcvirt.nova import config
from hpcvirt.nova import filters
from hpcvirt.nova import weights

LIMIT_US = 200.0


@dataclasses.dataclass(frozen=True)
class Case:
    """A fleet and a request."""

    cells: int
    guest_cells: int
    vfs: int = 0


CASES = (Case(2, 1), Case(2, 1, vfs=1), Case(8, 2), Case(8, 2, vfs=1),
         Case(16, 1), Case(16, 2), Case(16, 2, vfs=1), Case(16, 8))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all cases and print the table."""
    parser = argparse.ArgumentParser(
        prog='benchmarks/weighers.py',
        description='Measure what HPCTopologyWeigher costs.')
    parser.add_argument('--hosts', type=int, default=200,
                        help='hosts of each fleet (default: %(default)s)')
    options = parser.parse_args(arguments)
    fleet.configure()
    config.register()
    print(f'{"cells":>5}{"guest":>7}{"VFs":>5}{"pass":>6}{"new us":>9}'
          f'{"known us":>10}{"Nova us":>9}{"ratio":>7}')
    slowest = 0.0
    for case in CASES:
        known = measure(case, options.hosts)
        if case.cells == 16:
            slowest = max(slowest, known)
    print('\nhosts are      hosts  gc   usual ms  longest ms')
    for collect in (False, True):
        for name, count, spent in measure_requests(collect):
            print(f'{name:<13}{count:>7}{"on" if collect else "off":>5}'
                  f'{statistics.median(spent):>10.1f}{max(spent):>12.1f}',
                  flush=True)
    print(f'{measure_memory():.1f} MiB in use, at most')
    return 0 if slowest < LIMIT_US else 1


def measure(case: Case, count: int) -> float:
    """Measure a case, and print a line.

    :returns: the time of HPCTopologyWeigher for a host that it knows
    """
    hosts = fleet.hosts(count, case.cells)
    for state in hosts:
        state.aggregates = []
    spec = fleet.request(case.guest_cells, case.vfs)
    fleet.prepare(hosts)
    passed = list(filters.HPCTopologyFilter().filter_all(hosts, spec))
    room = weights.HPCTopologyWeigher()
    for request in requests(case.cells):
        room.weigh_objects(weighed(hosts[:1]), request)
    new = timed([room], passed, spec)
    known = min(timed([room], passed, spec) for _ in range(5))
    novas = [weigher() for weigher in nova_weights.all_weighers()]
    theirs = min(timed(novas, passed, spec) for _ in range(3))
    print(f'{case.cells:>5}{case.guest_cells:>7}{case.vfs:>5}'
          f'{len(passed):>6}{new:>9.1f}{known:>10.1f}'
          f'{theirs:>9.1f}{known / theirs:>7.1f}', flush=True)
    return known


def measure_requests(collect: bool) -> Iterator[tuple[str, int, list[float]]]:
    """Measure requests as they come to the scheduler, in milliseconds."""
    written = [(state, state.numa_topology._to_json(),
                state.pci_stats.to_device_pools_obj())
               for state in fleet.hosts(1000, 8)]
    (gc.enable if collect else gc.disable)()
    for count, runs in ((1000, 5), (8, 9)):
        some = written[:count]
        rooms = [warm(decode(written[:1])) for _ in range(runs)]
        yield 'never seen', count, [
            schedule(room, some, fleet.request(2)) for room in rooms]
        yield 'known', count, [
            schedule(rooms[0], some, fleet.request(2)) for _ in range(runs)]
        yield 'of a new kind', count, [
            schedule(rooms[0], some, fleet.request(2, pcpus=pcpus))
            for pcpus in (3, 5, 6, 7, 9)]
    gc.enable()


def schedule(room: Any, written: Sequence[Any], spec: Any) -> float:
    """Schedule a request; only the weigher is measured."""
    hosts = decode(written)
    objects_ = weighed(list(
        filters.HPCTopologyFilter().filter_all(hosts, spec)))
    start = time.process_time()
    room.weigh_objects(objects_, spec)
    return (time.process_time() - start) * 1e3


def decode(written: Sequence[Any]) -> list[Any]:
    """Decode records of hosts as Nova does for each request."""
    hosts = []
    for known, topology, pools in written:
        state = copy.copy(known)
        state.aggregates = []
        state.numa_topology = objects.NUMATopology.obj_from_db_obj(topology)
        state.pci_stats = stats.PciDeviceStats(
            state.numa_topology, stats=pools,
            dev_filter=fleet.NO_DEVICE_FILTER)
        hosts.append(state)
    fleet.prepare(hosts)
    return hosts


def measure_memory() -> float:
    """Measure the memory in use for 1,000 hosts of 8 cells, in MiB."""
    hosts = fleet.hosts(1000, 8)
    room, spec = warm(hosts[:1]), fleet.request(2)
    fleet.prepare(hosts)
    passed = weighed(list(
        filters.HPCTopologyFilter().filter_all(hosts, spec)))
    tracemalloc.start()
    room.weigh_objects(passed, spec)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return used / (1 << 20)


def warm(hosts: Sequence[Any]) -> Any:
    """Make a weigher that has seen requests of many kinds."""
    for state in hosts:
        state.aggregates = []
    room = weights.HPCTopologyWeigher()
    for each in requests(8):
        room.weigh_objects(weighed(hosts), each)
    return room


def requests(cells: int) -> list[Any]:
    """Build requests of many kinds, with and without VFs."""
    found = [fleet.request(1, vfs, pcpus=pcpus)
             for pcpus, vfs in itertools.product((1, 2, 4, 8, 16), (0, 1))]
    number = 2
    while number <= cells:
        found += [fleet.request(number, pcpus=pcpus) for pcpus in (8, 16)]
        number *= 2
    return found


def weighed(hosts: Sequence[Any]) -> list[Any]:
    """Wrap hosts as the scheduler does."""
    return [nova_weights.WeighedHost(state, 0.0) for state in hosts]


def timed(weighers: Sequence[Any], hosts: Sequence[Any], spec: Any) -> float:
    """Measure the time of weighers for each host, in microseconds.

    HPCTopologyFilter comes first, as in the scheduler, and is not counted.
    """
    # Earlier runs have left what the picks of a request change, and ratings.
    fleet.prepare(hosts)
    for state in hosts:
        vars(state).pop(weights._RATED, None)
    list(filters.HPCTopologyFilter().filter_all(hosts, spec))
    objects = weighed(hosts)
    start = time.process_time()
    for weigher in weighers:
        weigher.weigh_objects(objects, spec)
    return (time.process_time() - start) * 1e6 / len(hosts)


if __name__ == '__main__':
    sys.exit(main())

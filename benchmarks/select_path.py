# SPDX-License-Identifier: Apache-2.0

"""Measure the whole select path of nova-scheduler.

Run it from the root of the repository with the Python of an environment that
has Nova::

    python -m benchmarks.select_path                   all cases
    python -m benchmarks.select_path --hosts 100,1000  fleets of these sizes
    python -m benchmarks.select_path --only VF         some of the cases

``SchedulerManager.select_destinations`` answers a request like nova-scheduler:
it parses Placement's response, makes HostStates from rows of the database, and
filters, weighs, consumes and chooses alternates. "hpcvirt" is
HPCTopologyFilter with its weighers and Nova's; "Nova" is NUMATopologyFilter,
for VFs with PciPassthroughFilter, and Nova's weighers. Both have Nova's other
default filters and get the same hosts in the same run.

The time is the CPU time in milliseconds of a process that answers one request,
in total and of its steps. "read" turns rows into HostStates; "rest" is
everything else, such as Placement's response, copies of candidates and
alternates. The memory is the peak of the process, less its memory before the
request. Nothing is extrapolated: if Nova takes too long, it gets fewer hosts,
as shown in the table, or none.
"""

import argparse
import collections
import dataclasses
import gc
import multiprocessing
import os
import pathlib
import sys
import time
import uuid
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import fleet
import select_fleet
from nova import context as nova_context
from nova.scheduler import host_manager
from oslo_messaging.rpc import dispatcher

SIZES = 100, 1000, 5000, 10000
STEPS = 'read', 'filter', 'weigh', 'consume'


@dataclasses.dataclass(frozen=True)
class Case:
    """A fleet and a request.

    :ivar most: limit of the hosts of each side: Nova's, then hpcvirt's
    """

    name: str
    cells: int
    guest_cells: int
    vfs: int = 0
    instances: int = 1
    occupancy: fleet.Occupancy = fleet.at_random
    nics: tuple[int | None, ...] = (None, None)
    most: tuple[int, int] = (10000, 10000)


CASES = (
    Case('usual', 8, 2, most=(1000, 10000)),
    Case('one VF', 4, 2, vfs=1, most=(1000, 10000)),
    Case('one VF', 8, 2, vfs=1, most=(5000, 10000)),
    Case('one VF', 8, 4, vfs=1, most=(1000, 10000)),
    Case('no NUMA topology', 8, 0, most=(1000, 10000)),
    Case('10 instances', 8, 2, instances=10, most=(1000, 10000)),
    Case('10 instances, VF', 8, 2, vfs=1, instances=10, most=(100, 10000)),
    Case('100 instances', 8, 2, instances=100, most=(100, 10000)),
    Case('100 instances, VF', 8, 2, vfs=1, instances=100, most=(0, 10000)),
    Case('no fit', 16, 8, occupancy=fleet.busy(*range(7, 16)),
         most=(0, 10000)),
)


@dataclasses.dataclass(frozen=True)
class Side:
    """The filters and weighers of a scheduler."""

    name: str
    filters: tuple[str, ...]
    weighers: tuple[str, ...] = ()


def sides(case: Case) -> tuple[Side, Side]:
    """Return the sides of a case."""
    devices = ('PciPassthroughFilter',) if case.vfs else ()
    return (Side('Nova', ('NUMATopologyFilter', *devices)),
            Side('hpcvirt', ('HPCTopologyFilter',),
                 ('hpcvirt.nova.weights.all_weighers',)))


@dataclasses.dataclass(frozen=True)
class Answer:
    """The cost of answering a request.

    :ivar hosts: number of hosts of the fleet
    :ivar chosen: number of instances that got a host
    :ivar ms: CPU time
    :ivar steps: CPU time of each step
    :ivar mib: memory
    """

    hosts: int
    chosen: int
    ms: float
    steps: dict[str, float]
    mib: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(
        prog='benchmarks/select_path.py',
        description='Measure the whole select path of nova-scheduler.')
    parser.add_argument('--hosts', type=_sizes, default=SIZES,
                        help='sizes of the fleets, separated by commas '
                        '(default: %(default)s)')
    parser.add_argument('--only', default='', metavar='TEXT',
                        help='run the cases whose name contains this text')
    options = parser.parse_args(arguments)
    fleet.configure()
    print(f'{"case":<18}{"cells":>6}{"hosts":>6} {"by":<8}{"chosen":>7}'
          f'{"ms":>10}{"us/host":>9}'
          + ''.join(f'{step:>10}' for step in STEPS)
          + f'{"rest":>10}{"MiB":>7}{"ratio":>7}')
    for case in CASES:
        if options.only in case.name:
            run(case, options.hosts)
    return 0


def run(case: Case, sizes: Sequence[int]) -> None:
    """Measure a case, and print its rows."""
    states = fleet.hosts(select_fleet.DIFFERENT, case.cells, case.occupancy,
                         case.nics)
    for size in sizes:
        if size > max(case.most):
            continue
        database = select_fleet.Database(size, states)
        answers = {
            side.name: in_child(case, side, database)
            for side, most in zip(sides(case), case.most, strict=True)
            if size <= most}
        novas = answers.get('Nova')
        for name, found in answers.items():
            ratio = ('' if novas is None or novas is found
                     else f'{novas.ms / found.ms:.1f}x')
            print(f'{case.name:<18}'
                  f'{f"{case.cells}/{case.guest_cells}":>6}{size:>6} '
                  f'{name:<8}{found.chosen:>7}'
                  f'{found.ms:>10.0f}{found.ms / size * 1000:>9.0f}'
                  + ''.join(f'{found.steps[step]:>10.0f}' for step in STEPS)
                  + f'{found.ms - sum(found.steps.values()):>10.0f}'
                  f'{found.mib:>7.0f}{ratio:>7}', flush=True)


def answer(case: Case, side: Side, database: select_fleet.Database) -> Answer:
    """Answer the request of a case."""
    select_fleet.configure(side.filters, side.weighers)
    scheduler = select_fleet.scheduler(database)
    steps: collections.Counter[str] = collections.Counter()
    _watch(scheduler, steps)
    # The first request of a process fills its caches.
    spec = select_fleet.request(case.guest_cells, case.vfs, pcpus=4)
    small = select_fleet.Database(
        2, fleet.hosts(2, case.cells, case.occupancy))
    big, database.nodes = database.nodes, small.nodes
    select(scheduler, spec, 1)
    database.nodes = big
    database.refresh()
    steps.clear()
    spec = select_fleet.request(case.guest_cells, case.vfs, pcpus=4)
    gc.collect()
    before = _memory('VmRSS')
    pathlib.Path('/proc/self/clear_refs').write_text('5')
    start = time.process_time()
    chosen = select(scheduler, spec, case.instances)
    spent = time.process_time() - start
    return Answer(len(database.nodes), chosen, spent * 1000,
                  {step: steps[step] * 1000 for step in STEPS},
                  (_memory('VmHWM') - before) / 1024)


def select(scheduler: Any, spec: Any, instances: int) -> int:
    """Request hosts, and return the number of instances that get one."""
    spec.num_instances = instances
    try:
        return len(scheduler.select_destinations(
            nova_context.get_admin_context(), spec_obj=spec,
            instance_uuids=[str(uuid.UUID(int=number))
                            for number in range(instances)],
            return_objects=True, return_alternates=True))
    except dispatcher.ExpectedException:
        # There is no valid host.
        return 0


def _watch(scheduler: Any, steps: collections.Counter[str]) -> None:
    """Measure the time of the steps."""
    hosts = scheduler.host_manager

    def timed(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = time.process_time()
            try:
                return function(*arguments)
            finally:
                steps[step] += time.process_time() - start
        return call

    read = hosts.get_host_states_by_uuids
    hosts.get_host_states_by_uuids = timed(
        'read', lambda *arguments: iter(list(read(*arguments))))
    filtered = timed('filter', hosts.get_filtered_hosts)
    # The candidates are copied while the hosts are listed.
    hosts.get_filtered_hosts = lambda states, spec, index: filtered(
        list(states), spec, index)
    hosts.get_weighed_hosts = timed('weigh', hosts.get_weighed_hosts)
    consume = host_manager.HostState.consume_from_request
    host_manager.HostState.consume_from_request = timed('consume', consume)


def in_child(case: Case, side: Side,
             database: select_fleet.Database) -> Answer:
    """Answer a request in a separate process, to measure its memory."""
    context = multiprocessing.get_context('fork')
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(
        target=lambda: writer.send(answer(case, side, database)))
    child.start()
    writer.close()
    try:
        found: Answer = reader.recv()
    except EOFError:
        raise SystemExit('A process that answers a request has failed'
                         ) from None
    child.join()
    return found


def _memory(field: str) -> int:
    """Read a figure of the memory of this process, in KiB."""
    for line in pathlib.Path('/proc/self/status').read_text().splitlines():
        if line.startswith(f'{field}:'):
            return int(line.split()[1])
    raise SystemExit(f'/proc/self/status has no {field}')


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(','))


if __name__ == '__main__':
    sys.exit(main())

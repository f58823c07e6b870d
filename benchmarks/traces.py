# SPDX-License-Identifier: Apache-2.0

"""Convert research traces to the CSV of boots that hpcvirt simulate reads.

The format of a trace is detected by its content::

    python benchmarks/traces.py openb_pod_list_default.csv > openb_pods.csv
    python benchmarks/traces.py packing_trace_zone_a_v1.sqlite \
        --machine 64 262144 > azure.csv

``openb_pod_list_*.csv``
    The pods of Alibaba's cluster-trace-gpu-v2023 [FGD-Weng-2023]. Nova assigns
    whole GPUs, so a pod that requests a share of a GPU gets a whole one. The
    request has the time of the pod's creation; its life is the time from its
    scheduling to its end.
``packing_trace_zone_a_v1.sqlite``
    Azure's trace for packing [Azure-Hadary-2020]; or its table ``vm`` as CSV,
    with its table ``vmType`` as ``vmType.csv`` or ``vm_types.csv`` in the same
    folder. The sizes of types are fractions of the machine that --machine
    describes. If a type has fractions of several machines, that of the machine
    with the most types is used; for types that this machine lacks, that of the
    machine with the most of them.
``vmtable.csv``
    The virtual machines of the Azure public datasets of 2017 and 2019
    [Azure-Cortez-2017], which have no header. In the second dataset, sizes are
    classes; as by its authors, more than 24 CPUs count as 30, and more than
    64 GiB as 70.

The script prints on standard error what it left out or assumed.
"""

import argparse
import contextlib
import csv
import heapq
import math
import os
import re
import sqlite3
import sys
import urllib.parse
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.simulate import workload as workloads
from hpcvirt.simulate.read import log as logs
from hpcvirt.simulate.read import table as tables

#: CPUs and MiB of a machine.
Machine = tuple[int, int]

_OPENB = ('cpu_milli', 'memory_mib', 'num_gpu', 'gpu_milli',
          'creation_time', 'deletion_time', 'scheduled_time')
_WHOLE = 1000
_MAX_GPUS = 1024

_DATABASE = 'SQLite format 3'
_DAY_S = 86400
_MAX_DAYS = 1e6
#: The day at which the trace ends, for machines that were not deleted.
_LAST_DAY = '90'
#: A fraction is at most 1, a whole machine.
_MAX_PART = 1 + 1e-9
#: Names of the CSV files of types.
_TYPE_FILES = ('vmType.csv', 'vm_types.csv', 'vmType.csv.gz',
               'vm_types.csv.gz')

_MACHINES = ('vmid', 'subscriptionid', 'deploymentid', 'vmcreated',
             'vmdeleted', 'maxcpu', 'avgcpu', 'p95maxcpu', 'vmcategory',
             'vmcorecount', 'vmmemory')
_CATEGORIES = frozenset({'Delay-insensitive', 'Interactive', 'Unknown'})
_OPEN_CPUS = {'>24': '30'}
_OPEN_GIB = {'>64': '70'}
#: Times are those of samples, which are 5 minutes apart.
_SAMPLE_S = 300


def read(path: str, machine: Machine) -> workloads.Workload:
    """Read a trace.

    :param machine: for traces with fractions of machines
    :raises InvalidInput: with the file, and the row that is wrong
    """
    log = logs.Log(path)
    first = log.first
    columns = set(tables.columns(first))
    reader: Callable[[logs.Log, Machine], workloads.Workload]
    if columns >= set(_OPENB):
        reader = _read_pods
    elif first.startswith(_DATABASE):
        reader = _read_database
    elif columns >= {'vmtypeid', 'starttime', 'endtime'}:
        reader = _read_tables
    elif _is_machine(first.split(',')):
        reader = _read_machines
    else:
        raise exception.InvalidInput(log.where, 'is no trace that is known')
    return reader(log, machine)


def _read_pods(log: logs.Log, _machine: Machine) -> workloads.Workload:
    """Read the pods that were scheduled."""
    table = tables.Table(log)
    never = shares = 0
    for (milli, memory, gpus, gpu_milli, created, deleted,
         scheduled) in table.rows(*_OPENB):
        begin = table.time(created, 'creation_time')
        cpus = table.number(milli, 'cpu_milli', logs.MAX_CPUS * _WHOLE)
        mib = table.whole(memory, 'memory_mib', logs.MAX_MIB)
        count = table.whole(gpus, 'num_gpu', _MAX_GPUS)
        life = (table.time(deleted, 'deletion_time')
                - table.time(scheduled, 'scheduled_time')
                if deleted and scheduled else 0)
        if life <= 0:
            never += 1
            continue
        if count and table.number(gpu_milli, 'gpu_milli', 1e9) < _WHOLE:
            shares += 1
        log.add(begin, life, max(1, math.ceil(cpus / _WHOLE)), mib, 1, '', 0,
                count)
    return log.workload((
        *logs.note_count(never, 'pod that was never scheduled or did not live',
                         'pods that were never scheduled or did not live',
                         'left out'),
        *logs.note_count(shares, 'pod that asks for a share of a GPU',
                         'pods that ask for a share of a GPU',
                         'given a whole one')))


class _DatabaseTable(tables.Table):
    """The rows of a table in a database; views are refused."""

    def __init__(self, log: logs.Log, database: sqlite3.Connection,
                 name: str) -> None:
        super().__init__(log, ())
        self._where = f'{log.where}: row {{}} of {name}'
        kinds = database.execute(
            'SELECT type, sql FROM sqlite_master '
            'WHERE lower(name) = lower(?)', (name,)).fetchall()
        if [kind for kind, _ in kinds] != ['table'] or re.search(
                r'\bvirtual\b|\bas\b', kinds[0][1], re.IGNORECASE):
            raise exception.InvalidInput(
                log.where, f'{name} is not a table of plain columns')
        self._cursor = database.execute(f'SELECT * FROM {name}')  # noqa: S608
        self._number = 0

    def fault(self, what: str) -> exception.InvalidInput:
        return exception.InvalidInput(self._where.format(self._number), what)

    def rows(self, *wanted: str) -> Iterator[tuple[str, ...]]:
        names = [column[0].lower() for column in self._cursor.description]
        places = [names.index(name) if name in names else -1
                  for name in wanted]
        for row in self._cursor:
            self._number += 1
            if self._number > logs.MAX_LINES:
                raise self.fault(f'follows {logs.MAX_LINES:,} rows, the most '
                                 'that are read')
            yield tuple('' if place < 0 or row[place] is None
                        else str(row[place]) for place in places)


def _read_database(log: logs.Log, machine: Machine) -> workloads.Workload:
    if log.path == input_file.STDIN:
        raise exception.InvalidInput(
            log.where, 'is a database, which is read only from a file')
    path = urllib.parse.quote(os.path.abspath(log.path))
    try:
        with contextlib.closing(sqlite3.connect(
                f'file:{path}?mode=ro&immutable=1', uri=True)) as database:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, logs.LONGEST)
            return _read_parts(log, machine, *(
                _DatabaseTable(log, database, query) for query in (
                    'vmType', 'vm')))
    except sqlite3.Error as exc:
        raise exception.InvalidInput(
            log.where, f'cannot be read as a database of SQLite ({exc}); '
            'expand it first if it is compressed') from exc


def _read_tables(log: logs.Log, machine: Machine) -> workloads.Workload:
    folder = os.path.dirname(log.path)
    for name in _TYPE_FILES:
        path = os.path.join(folder, name)
        if log.path != input_file.STDIN and os.path.exists(path):
            return _read_parts(log, machine, tables.Table(logs.Log(path)),
                               tables.Table(log))
    raise exception.InvalidInput(
        log.where, f'has no {_TYPE_FILES[0]} next to it, which has the sizes '
        'of its types')


def _read_parts(log: logs.Log, machine: Machine, types: tables.Table,
                machines: tables.Table) -> workloads.Workload:
    parts = _sizes(types)
    cpus, memory = machine
    lasting = low = never = 0
    for kind, priority, start, end in machines.rows(
            'vmtypeid', 'priority', 'starttime', 'endtime'):
        if kind not in parts:
            raise machines.fault(f'vmTypeId {kind[:40]!r} has no size')
        begin = machines.number(start, 'starttime', _MAX_DAYS, -_MAX_DAYS)
        until = machines.number(end or _LAST_DAY, 'endtime', _MAX_DAYS,
                                -_MAX_DAYS)
        if until <= begin:
            never += 1
            continue
        low += priority == '1'
        lasting += not end
        core, mib = parts[kind]
        # 0.1 of 30 CPUs are 3, not 4.
        log.add(begin * _DAY_S, (until - begin) * _DAY_S,
                max(1, math.ceil(core * cpus - 1e-6)),
                math.ceil(mib * memory - 1e-6), 1, '', 0, 0)
    return log.workload((
        f'Virtual machines are parts of one of {cpus} CPUs, {memory} MiB.',
        *logs.note_count(low, 'machine of low priority',
                         'machines of low priority',
                         'not evicted for others, as it may have been'),
        *logs.note_count(lasting, 'machine that was not deleted',
                         'machines that were not deleted',
                         f'taken to run until day {_LAST_DAY}'),
        *logs.note_count(never, 'machine that did not live',
                         'machines that did not live', 'left out')))


def _sizes(table: tables.Table) -> Mapping[str, tuple[float, float]]:
    """Read the fractions of CPUs and memory of each type."""
    machines: dict[str, dict[str, tuple[float, float]]] = {}
    for kind, machine, core, memory in table.rows('vmtypeid', 'machineid',
                                                  'core', 'memory'):
        machines.setdefault(machine, {})[kind] = (
            table.number(core, 'core', _MAX_PART),
            table.number(memory, 'memory', _MAX_PART))
    found: dict[str, tuple[float, float]] = {}
    sizes = list(machines.values())
    # The gain of a machine can only decrease, so the first of the heap is
    # counted again, and is taken if its gain is still the same.
    heap = [(-len(own), number) for number, own in enumerate(sizes)]
    heapq.heapify(heap)
    while heap:
        count, number = heapq.heappop(heap)
        missing = sizes[number].keys() - found.keys()
        if len(missing) == -count:
            found.update((kind, sizes[number][kind]) for kind in missing)
        elif missing:
            heapq.heappush(heap, (-len(missing), number))
    return found


def _is_machine(fields: Sequence[str]) -> bool:
    return len(fields) == len(_MACHINES) and (
        fields[8].strip() in _CATEGORIES
        or bool(re.match('vmid', fields[0], re.IGNORECASE)))


def _read_machines(log: logs.Log, _machine: Machine) -> workloads.Workload:
    table = tables.Table(log, _MACHINES)
    opened = 0
    rows = table.rows('vmcreated', 'vmdeleted', 'vmcorecount', 'vmmemory')
    if log.first.lower().startswith('vmid'):
        next(rows, None)
    for created, deleted, cores, gib in rows:
        begin = table.time(created, 'vmcreated')
        end = table.time(deleted, 'vmdeleted')
        opened += cores in _OPEN_CPUS or gib in _OPEN_GIB
        cpus = table.whole(_OPEN_CPUS.get(cores, cores), 'vmcorecount',
                           logs.MAX_CPUS, 1)
        memory = table.number(_OPEN_GIB.get(gib, gib), 'vmmemory',
                              logs.MAX_MIB)
        log.add(begin, max(end - begin, _SAMPLE_S), cpus,
                round(memory * 1024), 1, '', 0, 0)
    return log.workload(logs.note_count(
        opened, 'machine of an open class', 'machines of an open class',
        'taken to have 30 CPUs, or 70 GiB'))


def main(argv: Sequence[str] | None = None) -> int:
    """Print a trace as CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('trace', help='a file; "-" is standard input')
    parser.add_argument(
        '--machine', nargs=2, type=int, metavar=('CPUS', 'MIB'),
        default=(64, 64 * 4096), help='the machine of which virtual machines '
        'have parts (64 CPUs, 262144 MiB by default)')
    args = parser.parse_args(argv)
    try:
        workload = read(args.trace, tuple(args.machine))
    except exception.HpcvirtError as exc:
        print(f'traces: {exc}', file=sys.stderr)
        return 2
    for note in workload.notes:
        print(note, file=sys.stderr)
    rows = csv.writer(sys.stdout)
    rows.writerow(('created_at', 'deleted_at', 'vcpus', 'memory_mb', 'gpus'))
    rows.writerows(
        (f'{job.time:.6f}', f'{job.time + job.duration:.6f}', job.cpus,
         job.memory_mib, job.gpus) for job in workload.jobs)
    return 0


if __name__ == '__main__':
    sys.exit(main())

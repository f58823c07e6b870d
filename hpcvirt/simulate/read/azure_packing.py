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

"""Read the Azure trace for packing of 2020.

The trace is a database of SQLite with the tables ``vm`` and ``vmType``. It is
also read as CSV: the table ``vm``, with the table ``vmType`` in a file of the
name ``vmType.csv`` or ``vm_types.csv`` in the same folder.

The sizes of the types are parts of a machine, which is as large as the largest
flavor. A type can have parts of several machines; they are taken of
the machine that has the most types, and for other types of that which has the
most of these. Source: [Azure-Hadary-2020].
"""

import contextlib
import math
import os
import sqlite3
import urllib.parse
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.simulate import workload as workloads
from hpcvirt.simulate.read import log as logs
from hpcvirt.simulate.read import table as tables

_DAY_S = 86400
_MAGIC = 'SQLite format 3'
_MOST_DAYS = 1e6
#: The day at which the trace ends, for machines that were not deleted.
_LAST_DAY = '90'
#: A part is at most 1, a whole machine.
_MOST_PART = 1 + 1e-9
#: What CSV files of the types are called.
_TYPE_FILES = ('vmType.csv', 'vm_types.csv', 'vmType.csv.gz',
               'vm_types.csv.gz')

#: A type of virtual machines -> its parts of a machine: of CPUs and memory.
_Types = Mapping[str, tuple[float, float]]


def recognizes(first: str) -> bool:
    """Whether a log begins like this."""
    return first.startswith(_MAGIC) or {
        'vmtypeid', 'starttime', 'endtime'} <= set(tables.columns(first))


def read(log: logs.Log) -> workloads.Workload:
    """Read the virtual machines.

    :raises InvalidInput: naming the row at fault
    """
    if not log.first.startswith(_MAGIC):
        return _read(log, tables.Table(logs.Log(_types_file(log))),
                     tables.Table(log))
    if log.path == input_file.STDIN:
        raise exception.InvalidInput(
            log.where, 'is a database, which is read only from a file')
    path = urllib.parse.quote(os.path.abspath(log.path))
    try:
        with contextlib.closing(sqlite3.connect(
                f'file:{path}?mode=ro&immutable=1', uri=True)) as database:
            return _read(log, *(
                _DatabaseTable(log.where, database, query) for query in (
                    'SELECT * FROM vmType', 'SELECT * FROM vm')))
    except sqlite3.Error as exc:
        raise exception.InvalidInput(
            log.where, f'cannot be read as a database of SQLite ({exc}); '
            'expand it first if it is compressed') from exc


class _DatabaseTable(tables.Values):
    """A table of a database."""

    def __init__(self, where: str, database: sqlite3.Connection,
                 query: str) -> None:
        self._where = where
        self._database = database
        self._query = query
        self._number = 0

    def fault(self, what: str) -> exception.InvalidInput:
        return exception.InvalidInput(
            f'{self._where}: row {self._number} of {self._query}', what)

    def rows(self, *wanted: str) -> Iterator[tuple[str, ...]]:
        cursor = self._database.execute(self._query)
        names = [column[0].lower() for column in cursor.description]
        places = [names.index(name) if name in names else -1
                  for name in wanted]
        for row in cursor:
            self._number += 1
            yield tuple('' if place < 0 or row[place] is None
                        else str(row[place]) for place in places)


def _types_file(log: logs.Log) -> str:
    folder = os.path.dirname(log.path)
    for name in _TYPE_FILES:
        path = os.path.join(folder, name)
        if log.path != input_file.STDIN and os.path.exists(path):
            return path
    raise exception.InvalidInput(
        log.where, f'has no {_TYPE_FILES[0]} next to it, which has the sizes '
        'of its types')


def _read(log: logs.Log, types: tables.Values,
          machines: tables.Values) -> workloads.Workload:
    parts = _types(types)
    cpus, memory = log.machine
    lasting = low = never = 0
    for kind, priority, start, end in machines.rows(
            'vmtypeid', 'priority', 'starttime', 'endtime'):
        if kind not in parts:
            raise machines.fault(f'vmTypeId {kind[:40]!r} has no size')
        begin = machines.number(start, 'starttime', _MOST_DAYS, -_MOST_DAYS)
        until = machines.number(end or _LAST_DAY, 'endtime', _MOST_DAYS,
                                -_MOST_DAYS)
        if until <= begin:
            never += 1
            continue
        low += priority == '1'
        lasting += not end
        core, mib = parts[kind]
        log.add(begin * _DAY_S, (until - begin) * _DAY_S,
                max(1, _whole(core * cpus)), _whole(mib * memory), 1, '', 0,
                0)
    return log.workload((
        f'Virtual machines are parts of one of {cpus} CPUs, {memory} MiB.',
        *logs.counted(low, 'machine of low priority',
                      'machines of low priority',
                      'not evicted for others, as it may have been'),
        *logs.counted(lasting, 'machine that was not deleted',
                      'machines that were not deleted',
                      f'taken to run until day {_LAST_DAY}'),
        *logs.counted(never, 'machine that did not live',
                      'machines that did not live', 'left out')))


def _types(table: tables.Values) -> _Types:
    """Read the sizes of types, each of the machine with the most types."""
    machines: dict[str, dict[str, tuple[float, float]]] = {}
    for kind, machine, core, memory in table.rows('vmtypeid', 'machineid',
                                                  'core', 'memory'):
        machines.setdefault(machine, {})[kind] = (
            table.number(core, 'core', _MOST_PART),
            table.number(memory, 'memory', _MOST_PART))
    found: dict[str, tuple[float, float]] = {}
    while machines:
        best = max(machines, key=lambda machine: len(
            machines[machine].keys() - found.keys()))
        found = machines.pop(best) | found
    return found


def _whole(value: float) -> int:
    # 0.1 of 30 CPUs are 3, not 4.
    return math.ceil(value - 1e-6)

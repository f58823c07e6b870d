# SPDX-License-Identifier: Apache-2.0

"""Read a table of the instances that a cloud has booted and deleted.

``created_at``
    The time of the request.
``deleted_at``
    The time of the deletion; empty for an instance that is still running,
    which then lives until the end of the log.
``vcpus``, ``memory_mb``
    The size of the instance; not needed if ``flavor`` has it.
``flavor``
    The name of the flavor, or the flavor in JSON as in Nova's database.
``vfs``, ``gpus``
    The number of virtual functions and whole GPUs; 0 without the column.
``extra_specs``
    The extra specs of the flavor in JSON. Without this column a flavor is
    only a name, which counts if the fleet has a flavor of this name and size.
``uuid``
    The id of the instance; repeated rows are left out.
``reservation_id``
    The id of the request; instances with the same id are placed or refused
    together.

The columns have these names in any order; other columns are ignored. Times
are in UTC, or in seconds.
"""

from collections.abc import Hashable
from collections.abc import Mapping
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import workload as workloads
from hpcvirt.simulate.read import log as logs
from hpcvirt.simulate.read import table as tables

_COLUMNS = ('created_at', 'deleted_at', 'vcpus', 'memory_mb', 'flavor',
            'extra_specs', 'vfs', 'gpus', 'uuid', 'reservation_id')
_MAX_DEVICES = 1024

#: CPUs, memory, the name of the flavor that the log describes, and devices.
_Size = tuple[int, int, str, int, int]


def recognizes(first: str) -> bool:
    """Whether this is the first line of such a table."""
    return {'created_at', 'deleted_at'} <= set(tables.columns(first))


def read(log: logs.Log) -> workloads.Workload:
    """Read the instances.

    :raises InvalidInput: with the line that is wrong
    """
    table = tables.Table(log)
    flavors = _Flavors(log, table)
    requests: dict[tuple[str, _Size], list[tuple[float, float | None]]] = {}
    known: set[str] = set()
    repeated = 0
    end = 0.0
    for number, row in enumerate(table.rows(*_COLUMNS)):
        if number == logs.MAX_JOBS:
            raise log.fault(f'follows {number:,} instances, the most that '
                            'are read')
        created, deleted, *described, vfs, gpus, uuid, reservation = row
        if uuid and uuid in known:
            repeated += 1
            continue
        known.add(uuid)
        begin = table.time(created, 'created_at')
        until = table.time(deleted, 'deleted_at') if deleted else None
        end = max(end, begin, until or 0)
        size = (*flavors.parse(*described),
                table.whole(vfs or '0', 'vfs', _MAX_DEVICES),
                table.whole(gpus or '0', 'gpus', _MAX_DEVICES))
        group = reservation or f'line {log.number}'
        requests.setdefault((group, size), []).append((begin, until))
    running = never = together = 0
    for (_, size), boots in requests.items():
        lives = [(end if until is None else until) - begin
                 for begin, until in boots]
        lived = [life for life in lives if life > 0]
        never += len(lives) - len(lived)
        if not lived:
            continue
        running += sum(until is None for _, until in boots)
        together += len(lived) if len(lived) > 1 else 0
        vcpus, memory, name, *devices = size
        log.add(min(begin for begin, _ in boots), sum(lived) / len(lived),
                vcpus, memory, len(lived), name, *devices)
    notes = (
        *logs.note_count(running, 'instance that was not deleted',
                         'instances that were not deleted',
                         'taken to run until the last time in the log'),
        *logs.note_count(together, 'instance that was requested together with '
                         'another', 'instances that were requested together',
                         'placed or refused together, and taken to live for '
                         'the mean of their lives'),
        *logs.note_count(never, 'instance that did not live',
                         'instances that did not live', 'left out'),
        *logs.note_count(repeated, 'row that repeats an instance',
                         'rows that repeat an instance', 'left out'))
    return log.workload(notes, flavors.described)


class _Flavors:
    """The flavors that a log describes.

    :ivar described: name to flavor; later flavors of a name get a number
    """

    def __init__(self, log: logs.Log, table: tables.Table) -> None:
        self._log = log
        self._table = table
        self._known: dict[tuple[str, ...], tuple[int, int, str]] = {}
        self.described: dict[str, flavor_model.Flavor] = {}
        self._names: dict[Hashable, str] = {}
        self._last: dict[str, int] = {}

    def parse(self, *size: str) -> tuple[int, int, str]:
        """Parse CPUs, memory, and the name of the flavor if it is described.

        :param size: ``vcpus``, ``memory_mb``, ``flavor`` and ``extra_specs``
        """
        if size not in self._known:
            self._known[size] = self._read(*size)
        return self._known[size]

    def _read(self, vcpus: str, memory: str, flavor: str,
              specs: str) -> tuple[int, int, str]:
        name, extra_specs = flavor, None
        if flavor.startswith('{'):
            data: Any = self._in_json(flavor, 'flavor')
            for key in ('cur', 'nova_object.data'):
                data = data.get(key, data)
                if not isinstance(data, Mapping):
                    raise self._log.fault('flavor: is not a flavor of Nova')
            name = str(data.get('name', ''))
            vcpus = str(data.get('vcpus', ''))
            memory = str(data.get('memory_mb', ''))
            extra_specs = data.get('extra_specs')
        elif specs:
            extra_specs = self._in_json(specs, 'extra_specs')
        cpus = self._table.whole(vcpus, 'vcpus', logs.MAX_CPUS, 1)
        mib = self._table.whole(memory, 'memory_mb', logs.MAX_MIB)
        if extra_specs is None:
            # The fleet may have a flavor of this name.
            return cpus, mib, name
        if not isinstance(extra_specs, Mapping):
            raise self._log.fault('extra_specs: are not a mapping')
        return cpus, mib, self._describe(name or 'flavor', cpus, mib, {
            str(key): str(value) for key, value in extra_specs.items()})

    def _describe(self, name: str, cpus: int, mib: int,
                  specs: Mapping[str, str]) -> str:
        """Record a flavor, and return its name; changed ones get a number."""
        key = name, cpus, mib, tuple(sorted(specs.items()))
        if key not in self._names:
            own, number = name, self._last.get(name, 1)
            while own in self.described:
                number += 1
                own = f'{name} ({number})'
            self._names[key], self._last[name] = own, number
            self.described[own] = flavor_model.Flavor(own, cpus, mib, 0,
                                                      specs)
        return self._names[key]

    def _in_json(self, text: str, name: str) -> Mapping[str, object]:
        try:
            value = serialization.json_value(text, name)
        except exception.InvalidInput as exc:
            raise self._log.fault(str(exc)) from exc
        if not isinstance(value, Mapping):
            raise self._log.fault(f'{name}: is not a mapping')
        return value

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

"""Read a table of the instances that a cloud has booted and deleted.

``created_at``
    When the instance was requested.
``deleted_at``
    When it was deleted; empty if it is still running, which it then does to
    the end of the log.
``vcpus``, ``memory_mb``
    Its size; not needed if ``flavor`` describes it.
``flavor``
    The name of its flavor; or all of the flavor in JSON, as Nova's database
    has it.
``extra_specs``
    The extra specs of its flavor in JSON. Without this column a flavor is
    only a name.
``uuid``
    The instance; a row that repeats one is left out.
``reservation_id``
    Instances with the same one were requested together, and are placed or
    refused together.

Columns have these names in any order; others are ignored. A time is in UTC,
or in seconds.
"""

import json
from collections.abc import Mapping
from typing import Any

from hpcvirt.flavors import catalogue
from hpcvirt.simulate import workload as workloads
from hpcvirt.simulate.read import log as logs
from hpcvirt.simulate.read import table as tables

_COLUMNS = ('created_at', 'deleted_at', 'vcpus', 'memory_mb', 'flavor',
            'extra_specs', 'uuid', 'reservation_id')

#: When an instance was created and deleted, its CPUs and memory, and the name
#: of the flavor that the log describes.
_Boot = tuple[float, float | None, int, int, str]


def recognizes(first: str) -> bool:
    """Whether a log begins like this."""
    return {'created_at', 'deleted_at'} <= set(tables.columns(first))


def read(log: logs.Log) -> workloads.Workload:
    """Read the instances.

    :raises InvalidInput: naming the line at fault
    """
    table = tables.Table(log)
    flavors = _Flavors(log, table)
    requests: dict[tuple[str, int, int, str], list[_Boot]] = {}
    known: set[str] = set()
    repeated = 0
    end = 0.0
    for number, row in enumerate(table.rows(*_COLUMNS)):
        if number == logs.MOST_JOBS:
            raise log.fault(f'follows {number:,} instances, the most that '
                            'are read')
        created, deleted, *size, uuid, reservation = row
        if uuid and uuid in known:
            repeated += 1
            continue
        known.add(uuid)
        begin = table.time(created, 'created_at')
        until = table.time(deleted, 'deleted_at') if deleted else None
        end = max(end, begin, until or 0)
        vcpus, memory, name = flavors.of(*size)
        group = reservation or f'line {log.number}'
        requests.setdefault((group, vcpus, memory, name), []).append(
            (begin, until, vcpus, memory, name))
    running = never = together = 0
    for boots in requests.values():
        lives = [(end if until is None else until) - begin
                 for begin, until, *_ in boots]
        lived = [life for life in lives if life > 0]
        never += len(lives) - len(lived)
        if not lived:
            continue
        running += sum(until is None for _, until, *_ in boots)
        together += len(lived) if len(lived) > 1 else 0
        _, _, vcpus, memory, name = boots[0]
        log.add(min(boot[0] for boot in boots), sum(lived) / len(lived),
                vcpus, memory, len(lived), name, 0, 0)
    return log.workload((
        *logs.counted(running, 'instance that was not deleted',
                      'instances that were not deleted',
                      'taken to run until the last time in the log'),
        *logs.counted(together, 'instance that was requested together with '
                      'another', 'instances that were requested together',
                      'placed or refused together, and taken to live for the '
                      'mean of their lives'),
        *logs.counted(never, 'instance that did not live',
                      'instances that did not live', 'left out'),
        *logs.counted(repeated, 'row that repeats an instance',
                      'rows that repeat an instance', 'left out')),
        flavors.described)


class _Flavors:
    """The flavors that a log describes.

    :ivar described: by name; of two with one name, the second has a number
    """

    def __init__(self, log: logs.Log, table: tables.Table) -> None:
        self._log = log
        self._table = table
        self._known: dict[tuple[str, ...], tuple[int, int, str]] = {}
        self.described: dict[str, catalogue.Flavor] = {}

    def of(self, *size: str) -> tuple[int, int, str]:
        """Read CPUs, memory, and the name of the flavor if it is described.

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
                    raise self._log.fault('flavor: is not one of Nova')
            name = str(data.get('name', ''))
            vcpus = str(data.get('vcpus', ''))
            memory = str(data.get('memory_mb', ''))
            extra_specs = data.get('extra_specs')
        elif specs:
            extra_specs = self._in_json(specs, 'extra_specs')
        cpus = self._table.whole(vcpus, 'vcpus', logs.MOST_CPUS, 1)
        mib = self._table.whole(memory, 'memory_mb', logs.MOST_MIB)
        if extra_specs is None:
            return cpus, mib, ''
        if not isinstance(extra_specs, Mapping):
            raise self._log.fault('extra_specs: are not a mapping')
        return cpus, mib, self._describe(name or 'flavor', cpus, mib, {
            str(key): str(value) for key, value in extra_specs.items()})

    def _describe(self, name: str, cpus: int, mib: int,
                  specs: Mapping[str, str]) -> str:
        """Keep a flavor; of one that has changed, both."""
        number = 1
        while True:
            own = name if number == 1 else f'{name} ({number})'
            flavor = catalogue.Flavor(own, cpus, mib, 0, specs)
            if self.described.setdefault(own, flavor) == flavor:
                return own
            number += 1

    def _in_json(self, text: str, name: str) -> Mapping[str, object]:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise self._log.fault(f'{name}: is not JSON ({exc})') from exc
        if not isinstance(value, Mapping):
            raise self._log.fault(f'{name}: is not a mapping')
        return value

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

"""Write the moves that make room, as a document and in words."""

import collections
from typing import Any

from hpcvirt.fit import reasons
from hpcvirt.flavors import table
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import state

SCHEMA_VERSION = 1


def document(fleet: state.Fleet,
             plan: make_room.Plan | None) -> dict[str, Any]:
    """Turn a plan into dicts, lists, numbers and strings."""
    return {
        'schema_version': SCHEMA_VERSION,
        'fits': plan is not None,
        'moves': [{'id': move.id, 'from': move.source, 'to': move.target,
                   'cells': list(move.cells)}
                  for move in (plan.moves if plan else ())],
        'then': {'host': plan.host, 'cells': list(plan.cells)}
        if plan else None,
        'broken': capacity_report.broken(fleet),
    }


def text(fleet: state.Fleet, name: str, plan: make_room.Plan | None,
         most: int, width: int | None = None) -> str:
    """Describe a plan.

    :param name: the flavor
    :param most: the most moves that were allowed
    :param width: columns of the terminal, None if there is none
    """
    lines = _lines(fleet, name, plan, most)
    if fleet.broken:
        lines += ['', capacity_report.broken_in_words(
            fleet, width or table.WIDTH).rstrip('\n')]
    return '\n'.join(lines) + '\n'


def _lines(fleet: state.Fleet, name: str, plan: make_room.Plan | None,
           most: int) -> list[str]:
    if plan is None:
        instances = [instance for host in fleet.hosts
                     for instance in host.instances]
        why = collections.Counter(filter(None, map(moving.stays, instances)))
        number = table.counted(len(instances), 'instance')
        moves = table.counted(most, 'move')
        return [f'{name} does not fit, and would not after {moves} either.',
                f'{why.total()} of {number} cannot move'
                + (':' if why else '.'),
                *(f'  {reason}: {count}'
                  for reason, count in sorted(why.items()))]
    where = _where(plan.host, plan.cells)
    if not plan.moves:
        return [f'{name} fits now, on {where}. Nothing has to move.']
    return [
        f'{name} fits after {table.counted(len(plan.moves), "move")}:',
        *(f'{number:3}. {move.id} from {move.source} to '
          f'{_where(move.target, move.cells)}'
          for number, move in enumerate(plan.moves, 1)),
        f'Then it fits on {where}.']


def _where(host: str, cells: tuple[int, ...]) -> str:
    return f'{host}, {reasons.cells(cells)}' if cells else host

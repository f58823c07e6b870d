# SPDX-License-Identifier: Apache-2.0

"""Write the moves that empty hosts, as a document and as text."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from hpcvirt import words
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import drain
from hpcvirt.fleet import move_report
from hpcvirt.fleet import moving
from hpcvirt.fleet import state

SCHEMA_VERSION = 1


def document(fleet: state.Fleet, plan: drain.DrainPlan) -> dict[str, Any]:
    """Write a plan as dicts, lists, numbers and strings."""
    return {
        'schema_version': SCHEMA_VERSION,
        'empty': not plan.obstacles,
        'waves': [list(wave.hosts) for wave in plan.waves],
        'moves': [{'wave': number, **move}
                  for number, wave in enumerate(plan.waves, 1)
                  for move in move_report.list_moves(wave.moves)],
        'left': [{'id': one.instance.id, 'host': one.instance.host,
                  'flavor': one.instance.flavor.name, 'reason': one.reason,
                  'helps': list(one.helps)} for one in plan.obstacles],
        'proven': plan.proven,
        'broken': capacity_report.list_broken(fleet),
    }


def text(fleet: state.Fleet, plan: drain.DrainPlan,
         width: int | None = None) -> str:
    """Describe a plan.

    :param width: the columns of the terminal; None without a terminal
    """
    lines = []
    for number, wave in enumerate(plan.waves, 1):
        moves = words.count_noun(len(wave.moves), 'move')
        if wave.hosts:
            lines.append(
                (f'Wave {number}: ' if len(plan.waves) > 1 else '')
                + words.join_names(wave.hosts, 'hosts')
                + (' is' if len(wave.hosts) == 1 else ' are') + ' empty'
                + (f' after {moves}:' if wave.moves else '.'))
        elif wave.moves:
            lines.append(f'No host can be emptied, but {moves} can be made:')
        lines += [f'{place:3}. {move_report.format_move(move)}'
                  for place, move in enumerate(wave.moves, 1)]
    if plan.obstacles:
        lines.append(f'{words.count_noun(len(plan.obstacles), "instance")} '
                     'cannot leave:')
    for one in plan.obstacles:
        lines.append(
            f'  {one.instance.id} on {one.instance.host}: {one.reason}.'
            + (f' What would help: {"; ".join(one.helps)}.'
               if one.helps else ''))
    if not plan.proven and len(plan.waves) == 1:
        lines.append('There are too many plans to try all of them; there may '
                     'be a better one.')
    return move_report.format_lines(fleet, lines, width)


def text_of_end(fleet: state.Fleet, plan: drain.DrainPlan,
                left: Sequence[moving.Move], width: int | None = None) -> str:
    """Say what is left after moves were made; see :func:`text`."""
    if not left:
        return text(fleet, dataclasses.replace(plan, waves=(
            dataclasses.replace(plan.waves[0], moves=()),)), width)
    return move_report.format_lines(fleet, [
        'Not all moves were made. Left:',
        *(f'     {move_report.format_move(move)}' for move in left)], width)

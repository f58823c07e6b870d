# SPDX-License-Identifier: Apache-2.0

"""Write moves that make room or empty hosts, as a document and as text."""

import collections
import dataclasses
import itertools
import textwrap
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.fit import reasons
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import drain
from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import state

SCHEMA_VERSION = 1

#: What to do after a move failed.
ADVICE = ('Nothing further was moved. Remove the cause, and run this again '
          'for a new plan.\n')


@dataclasses.dataclass(frozen=True)
class MoveRequest:
    """The arguments of :func:`hpcvirt.fleet.make_room.keep_room`.

    :ivar single: whether a single flavor was named
    """

    most: int
    cold: bool = False
    together: bool = True
    single: bool = False


def document(fleet: state.Fleet, plan: make_room.ReservePlan,
             asked: MoveRequest) -> dict[str, Any]:
    """Write a plan as dicts, lists, numbers and strings."""
    kinds: list[dict[str, Any]] = [{
        'flavor': kept.target.guest.name, 'count': kept.target.count,
        'fits': kept.plan is not None, 'places': [
            {'host': host, 'cells': list(cells)} for host, cells
            in (kept.plan.places if kept.plan else ())]}
        for kept in plan.found]
    room: dict[str, Any] = {'standing': kinds}
    if asked.single:
        places = kinds[0]['places']
        room = {'then': places[0] if places else None, 'places': places}
    return {
        'schema_version': SCHEMA_VERSION,
        'fits': not plan.waiting and all(kind['fits'] for kind in kinds),
        'moves': list_moves(plan.moves),
        'waiting': plan.waiting, 'why_waiting': plan.why,
        **room,
        'broken': capacity_report.list_broken(fleet),
    }


def drain_document(fleet: state.Fleet,
                   plan: drain.DrainPlan) -> dict[str, Any]:
    """Write the moves that empty hosts, as :func:`document` does."""
    moves: list[dict[str, Any]] = []
    for number, wave in enumerate(plan.waves, 1):
        moves += [{'wave': number, **move} for move in list_moves(wave.moves)]
    return {
        'schema_version': SCHEMA_VERSION,
        'empty': not plan.obstacles,
        'waves': [list(wave.hosts) for wave in plan.waves],
        'moves': moves,
        'left': [{'id': one.instance.id, 'host': one.instance.host,
                  'flavor': one.instance.flavor.name, 'reason': one.reason,
                  'helps': list(one.helps)} for one in plan.obstacles],
        'proven': plan.proven,
        'broken': capacity_report.list_broken(fleet),
    }


def list_moves(moves: Iterable[moving.Move]) -> list[dict[str, Any]]:
    """Write moves as dicts."""
    return [{'id': move.id, 'from': move.source, 'to': move.target,
             'cells': list(move.cells),
             'kind': 'cold' if move.cold else 'live'}
            for move in moves]


def list_made(made: Iterable[moving.MoveAttempt]) -> list[dict[str, Any]]:
    """Write moves that were begun, with their outcome."""
    rows: list[dict[str, Any]] = []
    for attempt in made:
        outcome = {'done': attempt.failure is None, 'failure': attempt.failure}
        rows += [row | outcome for row in list_moves([attempt.move])]
    return rows


def text(fleet: state.Fleet, plan: make_room.ReservePlan,
         asked: MoveRequest, width: int | None = None) -> str:
    """Describe a plan.

    :param width: the columns of the terminal; None without a terminal
    """
    lines: list[str] = []
    if not asked.single:
        lines.append(
            'Room for all of these at once, each beside those above it:'
            if asked.together else 'Room for any one of these:')
    for kept in plan.found:
        lines += [*([''] if lines else []), *_lines(fleet, kept, asked)]
    if plan.waiting:
        moves = words.count_noun(plan.waiting, 'move')
        lines += ['', f'{moves} must wait: {plan.why}.']
    return _format(fleet, lines, width)


def drain_text(fleet: state.Fleet, plan: drain.DrainPlan,
               width: int | None = None) -> str:
    """Describe the moves that empty hosts; see :func:`text`."""
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
        lines += _number(wave.moves)
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
    return _format(fleet, lines, width)


def _format(fleet: state.Fleet, lines: Sequence[str],
            width: int | None) -> str:
    """Wrap lines, and add the broken hosts."""
    width = width or text_table.WIDTH
    wrapped: list[str] = []
    for line in lines:
        wrapped += textwrap.wrap(
            line, width, subsequent_indent='  ', break_long_words=False,
            break_on_hyphens=False) or ['']
    if fleet.broken:
        wrapped += ['', capacity_report.format_broken(
            fleet, width).rstrip('\n')]
    return '\n'.join(wrapped) + '\n'


def _lines(fleet: state.Fleet, kept: make_room.RoomPlan,
           asked: MoveRequest) -> list[str]:
    plan, count = kept.plan, kept.target.count
    name = kept.target.guest.name
    subject, fits, does = ((name, 'fits', 'does') if count == 1 else
                           (f'{count} instances of {name}', 'fit', 'do'))
    if plan is None:
        instances = list(itertools.chain.from_iterable(
            host.instances for host in fleet.hosts))
        why = collections.Counter(filter(None, (
            moving.stays(instance, asked.cold) for instance in instances)))
        freed = 0
        if not asked.cold:
            freed = sum(moving.stays(instance, False) is not None
                        and moving.stays(instance, True) is None
                        for instance in instances)
        number = words.count_noun(len(instances), 'instance')
        moves = words.count_noun(asked.most, 'move')
        return [(f'{subject} {does} not fit, and would not after {moves} '
                'either.'),
                *([f'{why.total()} of {number} cannot move:'] if why else ()),
                *(f'  {reason}: {own}'
                  for reason, own in sorted(why.items())),
                *([f'With --cold, {freed} of these can move.'] if freed
                  else ())]
    places = '; '.join(
        _where(*place) + (f' ({number} times)' if number > 1 else '')
        for place, number in collections.Counter(plan.places).items())
    if not plan.moves:
        return [f'{subject} {fits} now, on {places}. Nothing has to move.']
    return [
        f'{subject} {fits} after {words.count_noun(len(plan.moves), "move")}:',
        *_number(plan.moves),
        f'Then {"it fits" if count == 1 else "they fit"} on {places}.']


def progress(made: moving.MoveAttempt) -> str:
    """Say whether a move was made."""
    move = made.move
    if made.failure is None:
        return f'{move.id} is on {_where(move.target, move.cells)}.\n'
    return f'{move.id} did not move as planned: {made.failure}\n'


def _number(moves: Sequence[moving.Move]) -> list[str]:
    return [f'{number:3}. {move.id} from {move.source} to '
            f'{_where(move.target, move.cells)}'
            + (' (cold)' if move.cold else '')
            for number, move in enumerate(moves, 1)]


def _where(host: str, cells: tuple[int, ...]) -> str:
    return f'{host}, {reasons.cells(cells)}' if cells else host

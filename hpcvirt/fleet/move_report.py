# SPDX-License-Identifier: Apache-2.0

"""Write the moves that make room, as a document and as text."""

import collections
import dataclasses
import textwrap
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.fit import reasons
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import moving
from hpcvirt.fleet import standing
from hpcvirt.fleet import state

SCHEMA_VERSION = 1

#: What to do after a move failed.
ADVICE = ('Nothing further was moved. Remove the cause, and run this again '
          'for a new plan.\n')


@dataclasses.dataclass(frozen=True)
class MoveRequest:
    """The arguments of :func:`hpcvirt.fleet.make_room.search`."""

    most: int
    count: int = 1
    cold: bool = False


def document(fleet: state.Fleet,
             plan: moving.MovePlan | None) -> dict[str, Any]:
    """Write a plan as dicts, lists, numbers and strings."""
    places = _places_of(plan)
    return {
        'schema_version': SCHEMA_VERSION,
        'fits': plan is not None,
        'moves': list_moves(plan.moves if plan else ()),
        'then': places[0] if places else None,
        'places': places,
        'broken': capacity_report.list_broken(fleet),
    }


def standing_document(fleet: state.Fleet,
                      plan: standing.StandingPlan) -> dict[str, Any]:
    """Write the moves for several kinds, as :func:`document` does."""
    return {
        'schema_version': SCHEMA_VERSION,
        'fits': not plan.waiting and all(
            kept.plan is not None for kept in plan.found),
        'moves': list_moves(plan.moves),
        'waiting': plan.waiting, 'why_waiting': plan.why,
        'standing': [{
            'flavor': kept.wanted.flavor.name, 'count': kept.wanted.count,
            'fits': kept.plan is not None, 'places': _places_of(kept.plan)}
            for kept in plan.found],
        'broken': capacity_report.list_broken(fleet),
    }


def list_moves(moves: Iterable[moving.Move]) -> list[dict[str, Any]]:
    """Write moves as dicts."""
    return [{'id': move.id, 'from': move.source, 'to': move.target,
             'cells': list(move.cells),
             'kind': 'cold' if move.cold else 'live'}
            for move in moves]


def _places_of(plan: moving.MovePlan | None) -> list[dict[str, Any]]:
    return [{'host': host, 'cells': list(cells)}
            for host, cells in (plan.places if plan else ())]


def text(fleet: state.Fleet, name: str, plan: moving.MovePlan | None,
         asked: MoveRequest, width: int | None = None) -> str:
    """Describe a plan.

    :param name: the name of the flavor
    :param width: the columns of the terminal; None without a terminal
    """
    return format_lines(fleet, _lines(fleet, name, plan, asked), width)


def standing_text(fleet: state.Fleet, plan: standing.StandingPlan,
                  asked: MoveRequest, together: bool,
                  width: int | None = None) -> str:
    """Describe the moves for several kinds; see :func:`text`."""
    lines = ['Room for all of these at once, each beside those above it:'
             if together else 'Room for any one of these:']
    for kept in plan.found:
        lines += ['', *_lines(fleet, kept.wanted.flavor.name, kept.plan,
                              dataclasses.replace(
                                  asked, count=kept.wanted.count))]
    if plan.waiting:
        moves = words.count_noun(plan.waiting, 'move')
        lines += ['', f'{moves} must wait: {plan.why}.']
    return format_lines(fleet, lines, width)


def format_lines(fleet: state.Fleet, lines: Sequence[str],
                 width: int | None) -> str:
    """Wrap lines, and add the broken hosts; see :func:`text`."""
    width = width or text_table.WIDTH
    lines = [part for line in lines for part in textwrap.wrap(
        line, width, subsequent_indent='  ', break_long_words=False,
        break_on_hyphens=False) or ['']]
    if fleet.broken:
        lines += ['', capacity_report.format_broken(
            fleet, width).rstrip('\n')]
    return '\n'.join(lines) + '\n'


def _lines(fleet: state.Fleet, name: str, plan: moving.MovePlan | None,
           asked: MoveRequest) -> list[str]:
    subject, fits, does = ((name, 'fits', 'does') if asked.count == 1 else
                           (f'{asked.count} instances of {name}', 'fit', 'do'))
    if plan is None:
        instances = [instance for host in fleet.hosts
                     for instance in host.instances]
        why = collections.Counter(filter(None, (
            moving.stays(instance, asked.cold) for instance in instances)))
        number = words.count_noun(len(instances), 'instance')
        moves = words.count_noun(asked.most, 'move')
        return [(f'{subject} {does} not fit, and would not after {moves} '
                'either.'),
                f'{why.total()} of {number} cannot move'
                + (':' if why else '.'),
                *(f'  {reason}: {count}'
                  for reason, count in sorted(why.items()))]
    if not plan.moves:
        return [(f'{subject} {fits} now, on {_places(plan)}. '
                'Nothing has to move.')]
    return [
        f'{subject} {fits} after {words.count_noun(len(plan.moves), "move")}:',
        *(f'{number:3}. {format_move(move)}'
          for number, move in enumerate(plan.moves, 1)),
        (f'Then {"it fits" if asked.count == 1 else "they fit"} on '
        f'{_places(plan)}.')]


def progress(move: moving.Move, why: str | None) -> str:
    """Say whether a move was made.

    :param why: why it was not made; None if it was
    """
    if why is None:
        return f'{move.id} is on {_where(move.target, move.cells)}.\n'
    return f'{move.id} did not move as planned: {why}\n'


def format_move(move: moving.Move) -> str:
    """Name the instance of a move, its source and its target."""
    return (f'{move.id} from {move.source} to '
            f'{_where(move.target, move.cells)}'
            + (' (cold)' if move.cold else ''))


def _places(plan: moving.MovePlan) -> str:
    return '; '.join(_where(host, cells) for host, cells in plan.places)


def _where(host: str, cells: tuple[int, ...]) -> str:
    return f'{host}, {reasons.cells(cells)}' if cells else host

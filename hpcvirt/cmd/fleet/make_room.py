# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt make-room``: move the fewest instances so that others fit."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import terminal
from hpcvirt.cmd.fleet import arguments
from hpcvirt.cmd.fleet import execution
from hpcvirt.fleet import guest
from hpcvirt.fleet import make_room
from hpcvirt.fleet import move_report
from hpcvirt.fleet import moving
from hpcvirt.model import flavor as flavor_model

#: Two moves cannot make room for more instances.
MAX_INSTANCES = 1000


class MakeRoom(command.Report):
    """Find the fewest moves that make room for an instance.

    Find the fewest instances to move to other hosts so that one or more
    instances of a flavor fit, and the order of the moves. With --apply, carry
    out the moves one after the other. The rows are the moves.
    """

    epilog = arguments.EPILOG + """
With --apply, the cloud is selected as in every OpenStack client: by
clouds.yaml (OS_CLOUD or --os-cloud), or by the other OS_* variables. Exit
status: 0 if the instances fit, now or after the moves; 1 if no moves suffice;
2 if the input or the cloud cannot be used; 3 if a move failed, so that later
ones were not begun.
"""
    rows = 'moves'
    fields = ('id', 'from', 'to', 'cells', 'kind')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_flavor(parser)
        parser.add_argument(
            '--standing', metavar='NAME=N', action='append', default=[],
            help='instead of --flavor: keep room for N instances of this '
            'flavor, at the same time as for those of other --standing '
            'options; may be given several times')
        parser.add_argument(
            '--count', metavar='N', type=_count, default=1,
            help='number of instances that must fit at the same time, on any '
            'hosts (default: 1)')
        parser.add_argument(
            '--moves', metavar='K', type=int, default=2, choices=range(3),
            help='maximum number of moves, 0 to 2 (default: 2)')
        parser.add_argument(
            '--cold', action='store_true', help='allow cold migrations, as '
            'few as possible, of instances that cannot be live-migrated, such '
            'as those with virtual functions')
        parser.add_argument(
            '--apply', action='store_true', help='carry out the moves, and '
            'stop at the first that fails; without it they are only printed')
        cloud_arguments.add(parser)
        arguments.add(parser)

    def answer(self, parsed_args: argparse.Namespace) -> command.CommandResult:
        """Find the moves, and carry them out with --apply."""
        plans, document, text = _search(parsed_args)
        moves = [move for plan in plans if plan for move in plan.moves]
        done = True
        if parsed_args.apply and moves:
            # The format table prints the plan before its progress.
            shown = (parsed_args.formatter == 'table'
                     and not parsed_args.columns)
            if shown:
                sys.stdout.write(text)
                sys.stdout.flush()
                text = ''
            carrier = execution.Execution(parsed_args, shown)
            done = carrier.carry_out(moves)
            for row, attempt in zip(document['moves'], carrier.attempts,
                                    strict=False):
                row.update(attempt.document)
            if shown and not done:
                text = move_report.ADVICE
        return command.CommandResult(
            document, lambda: text,
            3 if not done else 0 if document['fits'] else 1)


def _search(args: argparse.Namespace) -> tuple[
        Sequence[moving.MovePlan | None], dict[str, Any], str]:
    """Search for the moves.

    :returns: the plan for each flavor, their document and their text
    """
    if bool(args.flavor) == bool(args.standing):
        raise exception.InvalidInput(
            'make-room', 'needs either --flavor or --standing')
    if args.standing and args.count != 1:
        raise exception.InvalidInput(
            '--count', 'belongs to --flavor; --standing has its own numbers')
    fleet, flavors = arguments.read(args)
    asked = move_report.MoveRequest(args.moves, args.count, args.cold)
    if args.standing:
        found = make_room.keep_room(
            [_wanted(word, args, flavors) for word in args.standing],
            fleet.hosts, args.moves, args.cold)
        return ([kept.plan for kept in found],
                move_report.standing_document(fleet, found),
                move_report.standing_text(fleet, found, asked,
                                          terminal.width()))
    flavor = arguments.find_flavor(args.flavor, flavors, args.fleet)
    plan = make_room.search(guest.compile_flavor(flavor), fleet.hosts,
                            args.moves, args.count, args.cold)
    return [plan], move_report.document(fleet, plan), move_report.text(
        fleet, flavor.name, plan, asked, terminal.width())


_count = command.whole_number(1, MAX_INSTANCES)


def _wanted(word: str, args: argparse.Namespace,
            flavors: Sequence[flavor_model.Flavor]) -> make_room.Wanted:
    name, equals, number = word.rpartition('=')
    try:
        count = _count(number)
    except argparse.ArgumentTypeError:
        count = 0
    if not equals or not name or not count:
        raise exception.InvalidInput(
            '--standing', f'{word[:64]!r} is not NAME=N, such as '
            'hpc.16c1n.2m=2')
    return make_room.Wanted(
        arguments.find_flavor(name, flavors, args.fleet, '--standing'),
        count)

# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt make-room``: move the fewest instances so that others fit."""

import argparse
import sys
from typing import Any

from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import terminal
from hpcvirt.cmd.fleet import arguments
from hpcvirt.cmd.fleet import execution
from hpcvirt.cmd.fleet import standing
from hpcvirt.fleet import guest
from hpcvirt.fleet import make_room
from hpcvirt.fleet import move_report
from hpcvirt.fleet import moving
from hpcvirt.fleet import standing as standings


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
        standing.add_arguments(parser)
        cloud_arguments.add(parser)
        arguments.add(parser)

    def answer(self, parsed_args: argparse.Namespace) -> command.CommandResult:
        """Find the moves, and carry them out with --apply."""
        standing.check(parsed_args)
        plan, document, text = _search(parsed_args)
        moves = plan.moves if plan else ()
        attempts: list[execution.MoveAttempt] = []
        if parsed_args.apply and moves:
            # The format table prints the plan before its progress.
            shown = (parsed_args.formatter == 'table'
                     and not parsed_args.columns)
            if shown:
                sys.stdout.write(text)
                sys.stdout.flush()
                text = ''
            carrier = execution.Execution(
                parsed_args, shown, lambda: not standing.is_quiet(parsed_args))
            done = carrier.carry_out(moves)
            document['fits'] &= done
            attempts = carrier.attempts
            for row, attempt in zip(document['moves'], attempts, strict=False):
                row.update(attempt.document)
            if shown and not done:
                text = move_report.ADVICE if carrier.attempts and (
                    carrier.attempts[-1].failure) else (
                    'The other moves must wait: these are quiet hours.\n')
        failed = any(attempt.failure for attempt in attempts)
        if parsed_args.textfile and isinstance(plan, standings.StandingPlan):
            standing.write_metrics(
                parsed_args.textfile, plan,
                [each.move for each in attempts if not each.failure], failed)
        return command.CommandResult(
            document, lambda: text,
            3 if failed else 0 if document['fits'] else 1)


def _search(args: argparse.Namespace) -> tuple[
        moving.MovePlan | standings.StandingPlan | None, dict[str, Any], str]:
    """Search for the moves.

    :returns: the plan, its document and its text
    """
    fleet, flavors = arguments.read(args)
    asked = move_report.MoveRequest(args.moves, args.count, args.cold)
    if args.standing:
        kept = standing.search(args, fleet, flavors)
        return (kept, move_report.standing_document(fleet, kept),
                move_report.standing_text(
                    fleet, kept, asked, all(args.standing), terminal.width()))
    flavor = arguments.find_flavor(args.flavor, flavors, args.fleet)
    plan = make_room.search(guest.compile_flavor(flavor), fleet.hosts,
                            args.moves, args.count, args.cold)
    return plan, move_report.document(fleet, plan), move_report.text(
        fleet, flavor.name, plan, asked, terminal.width())


_count = command.whole_number(1, standing.MAX_INSTANCES)

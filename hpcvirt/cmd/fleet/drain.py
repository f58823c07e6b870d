# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt drain``: empty hosts by migrations, all at once or in waves."""

import argparse
import math
import time
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import output
from hpcvirt.cmd.fleet import arguments
from hpcvirt.fleet import drain
from hpcvirt.fleet import move_report
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.model import quarantine

#: The most plans for one drain. The cloud changes between two of them.
MAX_PLANS = 20


class DrainHosts(command.Report):
    """Empty hosts by migrations.

    Find the migrations after which hosts have no instances, in their order,
    or the fewest instances that cannot leave, and why. With --rolling, plan
    waves of hosts that are empty at the same time, as for an upgrade. The
    rows are the moves.
    """

    epilog = arguments.EPILOG + """
With --apply, the hosts are put in quarantine by the holder "drain" first,
unless they take no new instances already, and stay in it. If a move fails or
the cloud has changed, the cloud is read again and a new plan is made. Exit
status: 0 if the hosts are empty, now or after the moves; 1 if instances cannot
leave; 2 if the input or the cloud cannot be used; 3 if moves were not begun.
To make room for one flavor rather than empty hosts, see make-room.
"""
    rows = 'moves'
    fields = ('wave', 'id', 'from', 'to', 'cells', 'kind')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('host', metavar='HOST', nargs='*',
                            help='a host to empty')
        parser.add_argument('--aggregate', metavar='NAME', help='empty the '
                            'hosts of this aggregate, too')
        parser.add_argument(
            '--rolling', metavar='K', type=command.whole_number(1, 1000),
            help='empty the hosts in waves of K; those of an earlier wave '
            'take instances again. With --apply, only the first wave is '
            'emptied')
        parser.add_argument('--cold', action='store_true', help='allow cold '
                            'migrations of instances that cannot be '
                            'live-migrated, and after a live migration failed')
        parser.add_argument(
            '--deadline', metavar='MINUTES',
            type=command.whole_number(1, 100_000), help='with --apply, begin '
            'no move later than that many minutes after the start')
        cloud_arguments.add_apply(parser, 'moves')
        arguments.add(parser)

    def answer(self, parsed_args: argparse.Namespace) -> command.CommandResult:
        """Plan the moves, and carry them out with --apply."""
        args = parsed_args
        if args.deadline and not args.apply:
            raise exception.InvalidInput('--deadline', 'needs --apply')
        if args.apply and args.fleet is not None:
            raise exception.InvalidInput(
                '--apply', 'needs the live cloud, which is read again')
        end = time.monotonic() + 60 * (args.deadline or math.inf)
        fleet, _ = arguments.read(args)
        names = list(dict.fromkeys((*args.host, *(
            host.name for host in fleet.hosts
            if args.aggregate in host.aggregates))))
        if not names:
            raise exception.InvalidInput('drain', 'no host is named' + (
                f', and the aggregate {args.aggregate[:64]!r} has none'
                if args.aggregate else ''))
        _check_hosts(fleet, names)
        if args.apply and not args.rolling:
            # The plan is made when no new instances come any more.
            return _empty(args, fleet, names, names, end)
        plan = (drain.plan_waves(fleet.hosts, names, args.rolling, args.cold)
                if args.rolling else
                drain.plan(fleet.hosts, names, args.cold))
        if args.apply and plan.waves:
            return _empty(args, fleet, plan.waves[0].hosts, names, end)
        return command.CommandResult(
            move_report.drain_document(fleet, plan),
            lambda: move_report.drain_text(fleet, plan, output.width()),
            1 if plan.obstacles else 0)


def _empty(args: argparse.Namespace, fleet: state.Fleet,
           drained: Sequence[str], names: Sequence[str],
           end: float) -> command.CommandResult:
    """Keep new instances away, and move the others.

    Plan again from what is found in the cloud until no move is left.

    :param drained: the hosts to empty now
    :param names: all hosts to empty, now or later
    :param end: the time after which no move begins
    """
    # The client libraries take half a second to load.
    from hpcvirt.cloud import migrations
    migrator = migrations.Migrator(cloud_arguments.connect(args))
    cloud = cloud_arguments.connect_quarantine(args)
    for host in fleet.hosts:
        if host.name in drained and not host.state.closed:
            cloud.hold(host.name, cloud_arguments.make_hold(
                quarantine.DRAIN, 'is drained'))
    made: list[moving.MoveAttempt] = []
    for number in range(MAX_PLANS + 1):
        fleet, _ = arguments.read(args)
        _check_hosts(fleet, drained, closed=True)
        plan = drain.plan_again(fleet.hosts, drained, args.cold, names, made)
        if (not plan.moves or number == MAX_PLANS
                or time.monotonic() >= end):
            break
        arguments.show(args, move_report.drain_text(fleet, plan,
                                                    output.width()))
        made += migrator.carry_out_all(
            plan.moves, lambda: time.monotonic() < end,
            lambda done: arguments.show(args, move_report.progress(done)))
    document = move_report.drain_document(fleet, plan) | {
        'moves': [*move_report.list_made(made),
                  *move_report.list_moves(plan.moves)]}
    heading, status = '', 0
    if plan.moves:
        heading, status = 'Not all moves were made.\n', 3
    elif plan.obstacles:
        status = 1
    return command.CommandResult(
        document, lambda: heading + move_report.drain_text(
            fleet, plan, output.width()), status)


def _check_hosts(fleet: state.Fleet, names: Sequence[str],
                 closed: bool = False) -> None:
    """Check that hosts can be emptied.

    :param closed: whether they must take no new instances
    :raises InvalidInput: naming a host that is unknown, broken or not closed
    """
    known = {host.name: host for host in fleet.hosts}
    for name in names:
        if name not in known:
            raise exception.InvalidInput(
                f'host {name[:64]}', fleet.broken.get(name) or (
                    'is not in the fleet' + words.nearest(name, known)))
        if closed and known[name].state.closed is None:
            raise exception.InvalidInput(
                f'host {name}', 'is in quarantine, but may get new instances: '
                'enable HPCTopologyFilter, or disable its nova-compute')

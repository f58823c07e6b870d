# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt drain``: empty hosts by migrations, all at once or in waves."""

import argparse
import collections
import dataclasses
import datetime
import math
import sys
import time
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import hosts
from hpcvirt.cmd import terminal
from hpcvirt.cmd.fleet import arguments
from hpcvirt.cmd.fleet import execution
from hpcvirt.cmd.host import quarantine as host_quarantine
from hpcvirt.fleet import assemble
from hpcvirt.fleet import drain
from hpcvirt.fleet import drain_report
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
the cloud has changed, the cloud is read again and a new plan is made; with
--fleet, a move that fails ends the drain. Exit status: 0 if the hosts are
empty, now or after the moves; 1 if instances cannot leave; 2 if the input or
the cloud cannot be used; 3 if moves were not begun.
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
        parser.add_argument('--apply', action='store_true', help='carry out '
                            'the moves; without it they are only printed')
        cloud_arguments.add(parser)
        arguments.add(parser)

    def answer(self, parsed_args: argparse.Namespace) -> command.CommandResult:
        """Plan the moves, and carry them out with --apply."""
        args = parsed_args
        if args.deadline and not args.apply:
            raise exception.InvalidInput('--deadline', 'needs --apply')
        fleet, members = _read(args)
        names = _find_hosts(args, fleet, members)
        plan = (drain.plan_waves(fleet.hosts, names, args.rolling, args.cold)
                if args.rolling else
                drain.plan(fleet.hosts, names, args.cold))
        done = True
        rows = None
        if args.apply and plan.waves:
            # The format table prints the plan before its progress.
            shown = args.formatter == 'table' and not args.columns
            _show(fleet, plan, shown)
            drained = plan.waves[0].hosts if args.rolling else names
            fleet, plan, done, rows = _apply(args, fleet, plan, drained,
                                             names, shown)
        document = drain_report.document(fleet, plan)
        if rows is not None:
            document['moves'] = rows
        return command.CommandResult(
            document, lambda: (
                '' if done else 'Not all moves were made. What is left:\n'
            ) + drain_report.text(fleet, plan, terminal.width()),
            3 if not done else 1 if plan.obstacles else 0)


def _read(args: argparse.Namespace,
          ) -> tuple[state.Fleet, Mapping[str, Collection[str]]]:
    """Read the fleet.

    :returns: the fleet; and host -> its aggregates
    """
    if args.fleet is None:
        view = arguments.look(args)
        return view.fleet, {
            name: [each.name for each in found.aggregates]
            for name, found in view.found.states.items()}
    document = hosts.read_fleet(args.fleet)
    fleet, _ = assemble.make_fleet(document)
    hosts.warn(fleet.warnings)
    return fleet, {name: [own.aggregate or '']
                   for own in document.classes.values() for name in own.names}


def _find_hosts(args: argparse.Namespace, fleet: state.Fleet,
                members: Mapping[str, Collection[str]]) -> list[str]:
    """List the hosts to empty.

    :raises InvalidInput: if there are none, or if one is unknown or broken
    """
    found = [*args.host, *(name for name, own in members.items()
                           if args.aggregate and args.aggregate in own)]
    if not found:
        raise exception.InvalidInput('drain', 'no host is named' + (
            f', and the aggregate {args.aggregate[:64]!r} has none'
            if args.aggregate else ''))
    known = {host.name for host in fleet.hosts}
    for name in found:
        if name not in known:
            raise exception.InvalidInput(
                f'host {name[:64]}', fleet.broken.get(name) or (
                    'is not in the fleet' + words.nearest(name, known)))
    return list(dict.fromkeys(found))


def _apply(args: argparse.Namespace, fleet: state.Fleet,
           plan: drain.DrainPlan, drained: Sequence[str],
           last: Sequence[str], shown: bool,
           ) -> tuple[state.Fleet, drain.DrainPlan, bool,
                      list[dict[str, Any]]]:
    """Carry out a plan, and plan again when the cloud changes.

    :param drained: the hosts to empty now
    :param last: all hosts to empty, now or later
    :returns: the fleet and the plan that were read last; whether no moves are
        left; and all moves, with the outcome of those that were begun
    """
    end = time.monotonic() + 60 * args.deadline if args.deadline else math.inf
    carrier = execution.Execution(args, shown, lambda: time.monotonic() < end)
    _hold(args, [host.name for host in fleet.hosts if host.name in drained
                 and host.state.closed is None])
    expected = list(plan.waves[0].moves)

    def plan_again() -> Sequence[moving.Move]:
        nonlocal fleet, plan
        fleet, _ = _read(args)
        for host in fleet.hosts:
            if host.name in drained and host.state.closed is None:
                raise exception.InvalidInput(
                    f'host {host.name}', 'is in quarantine, but may get new '
                    'instances: enable HPCTopologyFilter, or disable its '
                    'nova-compute')
        failed = collections.defaultdict(list)
        for attempt in carrier.attempts:
            if attempt.failure is not None:
                failed[attempt.move.id].append((attempt.move, attempt.failure))
        plan = drain.plan(drain.leave_out(fleet.hosts, args.cold, failed),
                          drained, args.cold, last)
        made = {attempt.move for attempt in carrier.attempts}
        if [move for move in expected if move not in made] != [*plan.moves]:
            _show(fleet, plan, shown, 'The cloud has changed.\n')
        expected[:] = plan.moves
        return plan.moves
    if args.fleet is None:
        done = carrier.carry_out_plans(plan_again, MAX_PLANS)
        left = plan.moves
    else:
        done = carrier.carry_out(expected)
        left = tuple(expected[len(carrier.attempts):])
        plan = dataclasses.replace(plan, waves=(drain.Wave(
            plan.waves[0].hosts, tuple(expected[sum(
                each.failure is None for each in carrier.attempts):])),))
    return fleet, plan, done, [
        *({**row, **attempt.document} for row, attempt in zip(
            move_report.list_moves(each.move for each in carrier.attempts),
            carrier.attempts, strict=True)), *move_report.list_moves(left)]


def _hold(args: argparse.Namespace, names: Sequence[str]) -> None:
    """Put hosts in quarantine."""
    if names:
        cloud = cloud_arguments.connect_quarantine(args)
        since = datetime.datetime.now(datetime.UTC).strftime(
            '%Y-%m-%dT%H:%M:%SZ')
        for name in names:
            cloud.hold(name, quarantine.Hold(
                quarantine.DRAIN, 'is drained', since,
                host_quarantine.name_user()))


def _show(fleet: state.Fleet, plan: drain.DrainPlan, shown: bool,
          heading: str = '') -> None:
    if shown:
        sys.stdout.write(heading + drain_report.text(fleet, plan,
                                                     terminal.width()))
        sys.stdout.flush()

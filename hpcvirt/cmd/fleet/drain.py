# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt drain``: empty hosts by migrations, all at once or in waves."""

import argparse
import collections
import math
import sys
import time
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import hosts
from hpcvirt.cmd import terminal
from hpcvirt.cmd.fleet import arguments
from hpcvirt.cmd.fleet import execution
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
        end = time.monotonic() + 60 * (args.deadline or math.inf)
        fleet, members = _read(args)
        names = list(dict.fromkeys((*args.host, *(
            name for name, own in members.items()
            if args.aggregate and args.aggregate in own))))
        if not names:
            raise exception.InvalidInput('drain', 'no host is named' + (
                f', and the aggregate {args.aggregate[:64]!r} has none'
                if args.aggregate else ''))
        _check_hosts(fleet, names)
        plan = (drain.plan_waves(fleet.hosts, names, args.rolling, args.cold)
                if args.rolling else
                drain.plan(fleet.hosts, names, args.cold))
        if not args.apply or not plan.waves:
            return command.CommandResult(
                drain_report.document(fleet, plan),
                lambda: drain_report.text(fleet, plan, terminal.width()),
                1 if plan.obstacles else 0)
        drained = plan.waves[0].hosts if args.rolling else names
        return _Drainage(args, drained, names, fleet, plan).carry_out(end)


class _Drainage:
    """Carries out a plan, and plans again when the cloud changes."""

    def __init__(self, args: argparse.Namespace, drained: Sequence[str],
                 names: Sequence[str], fleet: state.Fleet,
                 plan: drain.DrainPlan) -> None:
        """Remember what was planned.

        :param drained: the hosts to empty now
        :param names: all hosts to empty, now or later
        """
        self._args, self._drained, self._names = args, drained, names
        self._fleet, self._plan = fleet, plan
        self._left = plan.waves[0].moves
        # The format table prints the plan before its progress.
        self._shown = args.formatter == 'table' and not args.columns

    def carry_out(self, end: float) -> command.CommandResult:
        """Keep new instances away, and move the others.

        :param end: the time after which no move begins
        """
        args = self._args
        self._show()
        self._carrier = execution.Execution(
            args, self._shown, lambda: time.monotonic() < end)
        self._hold([host.name for host in self._fleet.hosts
                    if host.name in self._drained and not host.state.closed])
        done = (self._carrier.carry_out_plans(self._plan_again, MAX_PLANS)
                if args.fleet is None else self._carrier.carry_out(self._left))
        made = self._carrier.attempts
        if args.fleet is not None:
            self._left = self._left[len(made):]
        document = drain_report.document(self._fleet, self._plan) | {
            'moves': [*({**row, **attempt.document} for row, attempt in zip(
                move_report.list_moves(each.move for each in made), made,
                strict=True)), *move_report.list_moves(self._left)]}
        return command.CommandResult(
            document, lambda: drain_report.text_of_end(
                self._fleet, self._plan, self._left, terminal.width()),
            3 if not done else 1 if self._plan.obstacles else 0)

    def _plan_again(self) -> Sequence[moving.Move]:
        """Read the cloud, and plan what is left to do."""
        self._fleet, _ = _read(self._args)
        _check_hosts(self._fleet, self._drained, closed=True)
        failed = collections.defaultdict(list)
        for each in self._carrier.attempts:
            if each.failure is not None:
                failed[each.move.id].append((each.move, each.failure))
        self._plan = drain.plan(
            drain.leave_out(self._fleet.hosts, self._args.cold, failed),
            self._drained, self._args.cold, self._names)
        begun = {each.move for each in self._carrier.attempts}
        expected = tuple(move for move in self._left if move not in begun)
        self._left = self._plan.moves
        if expected != self._left:
            self._show('The cloud has changed.\n')
        return self._left

    def _hold(self, names: Sequence[str]) -> None:
        """Put hosts in quarantine."""
        if names:
            cloud = cloud_arguments.connect_quarantine(self._args)
            for name in names:
                cloud.hold(name, cloud_arguments.make_hold(
                    quarantine.DRAIN, 'is drained'))

    def _show(self, heading: str = '') -> None:
        if self._shown:
            sys.stdout.write(heading + drain_report.text(
                self._fleet, self._plan, terminal.width()))
            sys.stdout.flush()


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

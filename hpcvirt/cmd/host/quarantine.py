# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host quarantine`` and ``release``: keep new instances away."""

import abc
import argparse
import contextlib
import datetime
import getpass
import socket
import sys
from collections.abc import Callable
from typing import Any

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.model import quarantine

_EPILOG = """\
Without --apply, the command only prints the steps. The user needs the roles to
change aggregates of Nova and traits of Placement. Exit status: 0 if the host
is as requested, or without --apply could be changed; 2 if the input or the
cloud cannot be used. In this case, completed steps are not undone; repeat the
command.
"""

#: The longest reason that fits into the metadata of an aggregate.
_MAX_CHARACTERS = 150


class _HostCommand(command.Command):
    """A command that shows the quarantine of a host, and changes it."""

    epilog = _EPILOG

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('host', metavar='HOST', help='a compute host, as '
                            '"openstack compute service list" names it')
        cloud_arguments.add_apply(parser)

    @abc.abstractmethod
    def plan(self, args: argparse.Namespace,
             holds: tuple[quarantine.Hold, ...], is_marked: bool | None,
             ) -> tuple[list[str], Callable[[Any], None]]:
        """Plan the change.

        :param holds: the holds that are on the host now
        :param is_marked: whether the host has the trait, None if unknown
        :returns: the steps, and a function that takes them, given the
            Quarantine of a cloud
        """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print the state and the steps, and with --apply take them."""
        args = parsed_args
        cloud = cloud_arguments.connect_quarantine(args)
        is_marked = None
        holds = cloud.holds(args.host)
        # Without Placement, the trait is unknown, but Nova can be changed.
        with contextlib.suppress(exception.Unreachable):
            is_marked = cloud.is_marked(args.host)
        steps, change = self.plan(args, holds, is_marked)
        lines = [_state(args.host, holds)]
        lines += [f'  to do: {step}' for step in steps]
        if not steps:
            lines.append('Nothing is to be done.')
        elif not args.apply:
            lines.append('Nothing was changed; use --apply to do it.')
        sys.stdout.write(printable.lines(lines))
        sys.stdout.flush()
        if args.apply and steps:
            change(cloud)
            sys.stdout.write(printable.lines([
                f'Done. {_state(args.host, cloud.holds(args.host))}']))


class QuarantineHost(_HostCommand):
    """Keep new instances away from a host.

    Put a compute host in quarantine: HPCTopologyFilter sends no new instances
    there, whatever their flavor. Instances on the host keep running. The host
    gets a trait, and joins an aggregate whose metadata contain the reason.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument('--reason', required=True, metavar='TEXT',
                            type=_reason, help='why, in at most '
                            f'{_MAX_CHARACTERS} characters')

    def plan(self, args: argparse.Namespace,
             holds: tuple[quarantine.Hold, ...], is_marked: bool | None,
             ) -> tuple[list[str], Callable[[Any], None]]:
        own = next((hold for hold in holds
                    if hold.holder == quarantine.OPERATOR), None)
        hold = quarantine.Hold(
            quarantine.OPERATOR, args.reason,
            own.since if own is not None and own.since else _now(), _who())
        steps = []
        if own is None:
            steps.append('add the host to the aggregate '
                         + quarantine.aggregate_name(quarantine.OPERATOR))
        if own is None or own.reason != args.reason:
            steps.append(f'note the reason: {args.reason}')
        if not is_marked:
            steps.append(f'set the trait {quarantine.TRAIT}')
        return steps, lambda cloud: cloud.hold(args.host, hold)


class ReleaseHost(_HostCommand):
    """Let new instances start on a host again.

    Release a compute host that "hpcvirt host quarantine" put in quarantine. It
    stays in quarantine as long as another holder has it in quarantine.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            '--holder', choices=quarantine.HOLDERS,
            default=quarantine.OPERATOR,
            help='whose quarantine ends (default: %(default)s, that of '
            '"hpcvirt host quarantine")')

    def plan(self, args: argparse.Namespace,
             holds: tuple[quarantine.Hold, ...], is_marked: bool | None,
             ) -> tuple[list[str], Callable[[Any], None]]:
        others = [hold for hold in holds if hold.holder != args.holder]
        steps = []
        if len(others) < len(holds):
            steps.append('remove the host from the aggregate '
                         + quarantine.aggregate_name(args.holder))
        if is_marked is not False and not others:
            steps.append(f'remove the trait {quarantine.TRAIT}')
        return steps, lambda cloud: cloud.release(args.host, args.holder)


def _reason(word: str) -> str:
    reason = printable.one_line(word).strip()
    if not 1 <= len(reason) <= _MAX_CHARACTERS:
        raise argparse.ArgumentTypeError(
            f'has {len(reason)} characters; 1 to {_MAX_CHARACTERS} are '
            'possible')
    return reason


def _state(host: str, holds: tuple[quarantine.Hold, ...]) -> str:
    if not holds:
        return f'{host} is not in quarantine.'
    return f'{host} is in quarantine: {quarantine.sentence(holds)}'


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime('%Y-%m-%dT%H:%M:%SZ')


def _who() -> str:
    """Name the user and the machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = 'unknown'
    return f'{user}@{socket.gethostname()}'.replace(' ', '_')

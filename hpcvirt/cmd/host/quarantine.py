# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host quarantine`` and ``release``: keep new instances away."""

import argparse
import contextlib
import datetime
import getpass
import socket
import sys
from typing import Any

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.model import quarantine

_EPILOG = """\
Without --apply the steps are only printed. The user needs the roles to change
aggregates of Nova and traits of Placement. Exit status: 0 if the host is as
requested, or without --apply could be changed; 2 if the input or the cloud
cannot be used. What was done until then stays: repeat the command.
"""

#: The longest reason that the metadata of an aggregate have room for.
_MAX_CHARACTERS = 150


class QuarantineHost(command.Command):
    """Keep new instances away from a host.

    Put a compute host in quarantine: HPCTopologyFilter sends no new instance
    there, whatever its flavor. Instances that run on the host are not
    touched. The host gets a trait, and joins an aggregate whose metadata say
    why.
    """

    epilog = _EPILOG

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_arguments(parser)
        parser.add_argument('--reason', required=True, metavar='TEXT',
                            help='why, in at most '
                            f'{_MAX_CHARACTERS} characters')

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Put a host in quarantine."""
        args = parsed_args
        reason = printable.one_line(args.reason).strip()
        if not reason:
            raise exception.InvalidInput('--reason', 'is empty')
        if len(reason) > _MAX_CHARACTERS:
            raise exception.InvalidInput(
                '--reason', f'has {len(reason)} characters, at most '
                f'{_MAX_CHARACTERS} are possible')
        cloud, holds, is_marked = _look(args)
        own = next((hold for hold in holds
                    if hold.holder == quarantine.OPERATOR), None)
        hold = quarantine.Hold(
            quarantine.OPERATOR, reason,
            own.since if own is not None and own.since else _now(), _who())
        steps = []
        if own is None:
            steps.append('add the host to the aggregate '
                         + quarantine.aggregate_name(quarantine.OPERATOR))
        if own is None or own.reason != reason:
            steps.append(f'note the reason: {reason}')
        if not is_marked:
            steps.append(f'set the trait {quarantine.TRAIT}')
        _print(args, holds, steps)
        if args.apply and steps:
            cloud.hold(args.host, hold)
            _print_end(args, cloud)
        return 0


class ReleaseHost(command.Command):
    """Let new instances on a host again.

    Release a compute host from the quarantine that "hpcvirt host quarantine"
    has put it in. It stays in quarantine as long as somebody else holds it.
    """

    epilog = _EPILOG

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_arguments(parser)
        parser.add_argument(
            '--holder', choices=quarantine.HOLDERS,
            default=quarantine.OPERATOR,
            help='whose quarantine ends (default: %(default)s, that of '
            '"hpcvirt host quarantine")')

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Release a host."""
        args = parsed_args
        cloud, holds, is_marked = _look(args)
        others = [hold for hold in holds if hold.holder != args.holder]
        steps = []
        if len(others) < len(holds):
            steps.append('remove the host from the aggregate '
                         + quarantine.aggregate_name(args.holder))
        if is_marked is not False and not others:
            steps.append(f'remove the trait {quarantine.TRAIT}')
        _print(args, holds, steps)
        if args.apply and steps:
            cloud.release(args.host, args.holder)
            _print_end(args, cloud)
        return 0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('host', metavar='HOST', help='a compute host, as '
                        '"openstack compute service list" names it')
    cloud_arguments.add(parser)
    parser.add_argument('--apply', action='store_true',
                        help='change the cloud; without it the steps are only '
                        'printed')


def _look(args: argparse.Namespace,
          ) -> tuple[Any, tuple[quarantine.Hold, ...], bool | None]:
    """Connect to the cloud and read the state of the host.

    Without Placement it is not known whether the host has the trait, but Nova
    can be told already.
    """
    cloud = cloud_arguments.connect_quarantine(args)
    is_marked = None
    holds = cloud.holds(args.host)
    with contextlib.suppress(exception.Unreachable):
        is_marked = cloud.is_marked(args.host)
    return cloud, holds, is_marked


def _print(args: argparse.Namespace, holds: tuple[quarantine.Hold, ...],
           steps: list[str]) -> None:
    lines = [_state(args.host, holds)]
    lines += [f'  to do: {step}' for step in steps]
    if not steps:
        lines.append('Nothing is to be done.')
    elif not args.apply:
        lines.append('Nothing was changed; use --apply to do it.')
    sys.stdout.write(printable.lines(lines))
    sys.stdout.flush()


def _print_end(args: argparse.Namespace, cloud: Any) -> None:
    sys.stdout.write(printable.lines([
        f'Done. {_state(args.host, cloud.holds(args.host))}']))


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

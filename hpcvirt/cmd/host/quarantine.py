# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host quarantine`` and ``release``: keep new instances away."""

import argparse
import contextlib
import sys
from collections.abc import Iterable

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
    """Changes the quarantine of a host by one holder; no reason ends it."""

    epilog = _EPILOG

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('host', metavar='HOST', help='a compute host, as '
                            '"openstack compute service list" names it')
        cloud_arguments.add_apply(parser)

    def take_action(self, args: argparse.Namespace) -> None:
        """Print the state and the steps, and with --apply take them."""
        cloud = cloud_arguments.connect_quarantine(args)
        is_marked = None
        holds = cloud.holds(args.host)
        # Without Placement, the trait is unknown, but Nova can be changed.
        with contextlib.suppress(exception.Unreachable):
            is_marked = cloud.is_marked(args.host)
        own = [hold for hold in holds if hold.holder == args.holder]
        aggregate = quarantine.aggregate_name(args.holder)
        steps = []
        if args.reason is None:
            if own:
                steps.append(f'remove the host from the aggregate {aggregate}')
            if is_marked is not False and len(own) == len(holds):
                steps.append(f'remove the trait {quarantine.TRAIT}')
        else:
            if not own:
                steps.append(f'add the host to the aggregate {aggregate}')
            if not own or own[0].reason != args.reason:
                steps.append(f'note the reason: {args.reason}')
            if not is_marked:
                steps.append(f'set the trait {quarantine.TRAIT}')
        lines = [_state(args.host, holds)]
        lines += [f'  to do: {step}' for step in steps]
        if not steps:
            lines.append('Nothing is to be done.')
        elif not args.apply:
            lines.append('Nothing was changed; use --apply to do it.')
        sys.stdout.write(printable.lines(lines))
        sys.stdout.flush()
        if not args.apply or not steps:
            return
        if args.reason is None:
            cloud.release(args.host, args.holder)
        else:
            cloud.hold(args.host, cloud_arguments.make_hold(
                args.holder, args.reason, own[0].since if own else None))
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
        parser.set_defaults(holder=quarantine.OPERATOR)


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
        parser.set_defaults(reason=None)


def _reason(word: str) -> str:
    reason = printable.one_line(word).strip()
    if not 1 <= len(reason) <= _MAX_CHARACTERS:
        raise argparse.ArgumentTypeError(
            f'has {len(reason)} characters; 1 to {_MAX_CHARACTERS} are '
            'possible')
    return reason


def _state(host: str, holds: Iterable[quarantine.Hold]) -> str:
    reason = quarantine.sentence(holds)
    return (f'{host} is in quarantine: {reason}' if reason
            else f'{host} is not in quarantine.')

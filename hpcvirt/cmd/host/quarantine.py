# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host quarantine``: keep new instances away from a host."""

import argparse
import contextlib
import sys
from collections.abc import Iterable

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import output
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


class QuarantineHost(command.Command):
    """Keep new instances away from a host, or release it.

    HPCTopologyFilter sends no new instances to a compute host in quarantine,
    whatever their flavor. Instances on it keep running. The host gets a trait,
    and joins an aggregate whose metadata contain the reason. A host that is
    released stays in quarantine as long as another holder has it there.
    """

    epilog = _EPILOG

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('host', metavar='HOST', help='a compute host, as '
                            '"openstack compute service list" names it')
        wanted = parser.add_mutually_exclusive_group(required=True)
        wanted.add_argument('--reason', metavar='TEXT', type=_reason,
                            help='why the host is put in quarantine, in at '
                            f'most {_MAX_CHARACTERS} characters')
        wanted.add_argument('--release', action='store_true',
                            help='let new instances start on the host again')
        parser.add_argument(
            '--holder', choices=quarantine.HOLDERS,
            default=quarantine.OPERATOR,
            help='with --release, whose quarantine ends (default: '
            '%(default)s, that of this command)')
        cloud_arguments.add_apply(parser)

    def take_action(self, args: argparse.Namespace) -> None:
        """Print the state and the steps, and with --apply take them."""
        if not args.release and args.holder != quarantine.OPERATOR:
            raise exception.InvalidInput('--holder', 'needs --release')
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
            lines.append(output.NOT_APPLIED)
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

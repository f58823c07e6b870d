# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt explain``: say why a guest fits on no host."""

import argparse
import dataclasses

from hpcvirt import exception
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import terminal
from hpcvirt.cmd.fleet import arguments
from hpcvirt.cmd.fleet import explain_log
from hpcvirt.fleet import changes
from hpcvirt.fleet import explain_report
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import verdict

_OPTIONS = ('image', 'port', 'server')


class ExplainRefusal(command.Report):
    """Say why an instance fits on no host.

    Say of each host whether it takes one more instance of a flavor, which
    step of Nova refuses it and why, and with which small change it would fit.
    With --scheduler-log, explain a request that nova-scheduler has refused.
    The rows are the hosts; the exit status is 1 if none takes the instance.
    """

    epilog = arguments.EPILOG
    rows = 'hosts'
    fields = ('name', 'fits', 'step', 'code', 'reason', 'weight')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_flavor(parser)
        parser.add_argument('--image', metavar='NAME|UUID',
                            help='an image, whose properties count; only in '
                            'a live cloud')
        parser.add_argument('--port', metavar='UUID', action='append',
                            default=[], help='a port of Neutron, which may '
                            'need a PCI device; may be given several times; '
                            'only in a live cloud')
        parser.add_argument('--server', metavar='UUID',
                            help='say where this instance could be migrated '
                            'to; only in a live cloud')
        parser.add_argument('--hosts', metavar='LIST',
                            help='explain these hosts only: n1,n2')
        arguments.add(parser)
        explain_log.add(parser)

    def answer(self, parsed_args: argparse.Namespace) -> command.CommandResult:
        """Find the verdicts, or what a log has of them."""
        if parsed_args.scheduler_log is not None:
            return explain_log.explain(parsed_args)
        if parsed_args.request_id is not None:
            raise exception.InvalidInput(
                '--request-id', 'needs --scheduler-log')
        found = _explain(parsed_args)
        fits = any(item.fits for item in found.verdicts)
        nearest = () if fits else changes.nearest(found.guest, found.hosts)
        return command.CommandResult(
            explain_report.document(found.verdicts, nearest),
            lambda: explain_report.text(found.name, found.verdicts, nearest,
                                        terminal.width()),
            status=0 if fits else 1)


def _explain(args: argparse.Namespace) -> verdict.Explanation:
    """Explain what the arguments ask for.

    :raises InvalidInput: for an argument that cannot be used
    :raises Unreachable: if the cloud cannot be read
    """
    if args.server is not None and (
            args.flavor is not None or args.image is not None or args.port):
        raise exception.InvalidInput(
            '--server', 'has its own flavor, image and ports')
    if args.server is None and args.flavor is None:
        raise exception.InvalidInput('--flavor', 'is missing')
    found = _ask_cloud(args) if args.fleet is None else _read_file(args)
    if args.hosts is None:
        return found
    wanted = {name.strip() for name in args.hosts.split(',')}
    unknown = wanted - {item.name for item in found.verdicts}
    if unknown:
        raise exception.InvalidInput(
            '--hosts', f'{min(unknown)[:64]!r} is not a host')
    return dataclasses.replace(
        found,
        verdicts=tuple(item for item in found.verdicts
                       if item.name in wanted),
        hosts=tuple(host for host in found.hosts if host.name in wanted))


def _read_file(args: argparse.Namespace) -> verdict.Explanation:
    for option in _OPTIONS:
        if getattr(args, option):
            raise exception.InvalidInput(
                f'--{option}', 'needs a cloud, and cannot be used with '
                '--fleet')
    fleet, flavors = arguments.read(args)
    flavor = arguments.find_flavor(args.flavor, flavors, args.fleet)
    guest = guests.compile_flavor(flavor)
    return verdict.Explanation(flavor.name, verdict.judge(guest, fleet),
                               guest, fleet.hosts)


def _ask_cloud(args: argparse.Namespace) -> verdict.Explanation:
    view = arguments.look(args)
    with extras.nova():
        from hpcvirt.controller import explanation
        from hpcvirt.controller import settings
    with settings.convert_errors():
        found: verdict.Explanation = (
            explanation.explain_move(view, args.server) if args.server
            else explanation.explain_boot(
                view, arguments.find_flavor(args.flavor, view.flavors),
                args.image, args.port))
    return found

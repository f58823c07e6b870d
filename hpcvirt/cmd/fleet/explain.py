# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt explain``: explain why an instance fits on no host."""

import argparse
import dataclasses

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import words
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.cmd.fleet import arguments
from hpcvirt.cmd.fleet import history_file
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import changes
from hpcvirt.fleet import explain_report
from hpcvirt.fleet import log_line
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import verdict


class ExplainRefusal(command.Report):
    """Explain why an instance fits on no host.

    Print for each host whether one more instance of a flavor fits, which step
    of Nova refuses it and why, and with which small change it would fit. With
    --scheduler-log, explain a request that nova-scheduler has refused. The
    rows are the hosts; the exit status is 1 if the instance fits on no host.
    """

    epilog = arguments.EPILOG
    rows = 'hosts'
    fields = ('name', 'class', 'fits', 'step', 'code', 'reason', 'weight')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_flavor(parser)
        parser.add_argument('--image', metavar='NAME|UUID',
                            help='image whose properties are considered; only '
                            'in a live cloud')
        parser.add_argument('--port', metavar='UUID', action='append',
                            default=[], help='port of Neutron, which may need '
                            'a PCI device; may be given several times; only '
                            'in a live cloud')
        parser.add_argument('--server', metavar='UUID',
                            help='explain to which hosts this instance can be '
                            'migrated; only in a live cloud')
        parser.add_argument('--hosts', metavar='LIST',
                            help='explain only these hosts: n1,n2')
        arguments.add(parser)
        parser.add_argument(
            '--scheduler-log', metavar='FILE', action='append', default=[],
            help='explain a refusal in this log of nova-scheduler, or a '
            'failure in that of nova-conductor, and summarize shadow mode, '
            'without hosts or a flavor; the log may be compressed by gzip or '
            'written by journalctl, - is standard input; may be given several '
            'times')
        parser.add_argument(
            '--request-id', metavar='ID',
            help='the request of a log or history to explain (req-...), or '
            'the UUID of its instance (default: the last refused request)')
        parser.add_argument(
            '--history', metavar='FILE',
            help='add the refusals of --scheduler-log to this file, unless it '
            'has them, and explain those that it has')
        for name, when in (('since', 'from'), ('until', 'before')):
            parser.add_argument(
                f'--{name}', metavar='TIME', type=_time,
                help=f'only what a log or history has {when} this time, such '
                'as 2026-11-24 or 2026-11-24T09:30')

    def answer(self, parsed_args: argparse.Namespace) -> command.CommandResult:
        """Judge the hosts, or read the verdicts in a log."""
        if parsed_args.scheduler_log or parsed_args.history is not None:
            return _explain_log(parsed_args)
        for option in ('request_id', 'since', 'until'):
            if getattr(parsed_args, option) is not None:
                raise exception.InvalidInput(
                    f'--{option.replace("_", "-")}',
                    'needs --scheduler-log or --history')
        found = verdict.place_hosts(_explain(parsed_args))
        fits = any(item.fits for item in found.verdicts)
        tried = () if fits else changes.try_all(found.guest, found.hosts)
        return command.CommandResult(
            explain_report.document(found.verdicts, tried),
            lambda: explain_report.text(found.name, found.verdicts, tried,
                                        output.width()),
            status=0 if fits else 1)


def _explain(args: argparse.Namespace) -> verdict.Explanation:
    """Explain the request of the arguments.

    :raises InvalidInput: for an invalid argument
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
            '--hosts', f'{min(unknown)[:64]!r} is not a host'
            + words.nearest(min(unknown), [
                item.name for item in found.verdicts]))
    return dataclasses.replace(
        found,
        verdicts=tuple(item for item in found.verdicts
                       if item.name in wanted),
        hosts=tuple(host for host in found.hosts if host.name in wanted))


def _read_file(args: argparse.Namespace) -> verdict.Explanation:
    for option in ('image', 'port', 'server'):
        if getattr(args, option):
            raise exception.InvalidInput(
                f'--{option}', 'needs a cloud, and cannot be used with '
                '--fleet')
    fleet, flavors = arguments.read(args)
    flavor = arguments.find_flavor(args.flavor, flavors, fleet, args.fleet)
    guest = compiled_flavor.make(flavor)
    return verdict.Explanation(flavor.name, verdict.judge(guest, fleet),
                               guest, fleet.hosts)


def _ask_cloud(args: argparse.Namespace) -> verdict.Explanation:
    view = arguments.look(args)
    with extras.nova():
        from hpcvirt.nova_live import explanation
        from hpcvirt.nova_live import settings
    with settings.convert_errors():
        found: verdict.Explanation = (
            explanation.explain_move(view, args.server) if args.server
            else explanation.explain_boot(
                view, arguments.find_flavor(args.flavor, view.flavors,
                                            view.fleet),
                args.image, args.port))
    return found


def _explain_log(args: argparse.Namespace) -> command.CommandResult:
    """Explain a refusal in logs, list the others, and summarize shadow mode.

    :raises InvalidInput: if the log has none of these, or for an option that
        has no effect
    """
    for option in ('flavor', 'image', 'port', 'server', 'hosts', 'fleet'):
        if getattr(args, option):
            raise exception.InvalidInput(
                f'--{option}', 'is not for --scheduler-log or --history, '
                'whose lines have the request and the hosts')
    paths = args.scheduler_log
    if args.history is not None:
        if paths:
            added = history_file.add(args.history, history_file.lines(*paths))
            if added.unreadable:
                output.complain(
                    f'hpcvirt: {explain_report.count_unreadable(added)}')
        paths = [args.history]
    found = log_reading.read(history_file.lines(*paths), args.request_id,
                             args.since or '', args.until or '~')
    if not found.refusals and not found.shadow:
        raise exception.InvalidInput(
            ', '.join(map(input_file.name, paths)),
            _explain_empty(found, args.request_id))
    return command.CommandResult(
        explain_report.log_document(found),
        lambda: explain_report.log_text(found, output.width()),
        status=1 if found.refusals else 0)


def _time(word: str) -> str:
    try:
        return log_line.normalize_time(word)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(
            'must be a time such as 2026-11-24 or 2026-11-24T09:30, not '
            f'{word[:40]!r}') from exc


def _explain_empty(found: log_reading.Found, request: str | None) -> str:
    cut = (f'; {explain_report.count_unreadable(found)}'
           if found.unreadable else '')
    if found.others:
        return (f'has no refusal and no comparison of {request!r:.66}, but '
                f'{words.count_noun(found.others, "line")} about other '
                f'requests{cut}')
    hint = _explain_log_form(found)
    if hint is None:
        hint = ('has no refused request and no comparison of '
                'HPCTopologyFilter, which logs them at INFO level')
    return hint + cut


def _explain_log_form(found: log_reading.Found) -> str | None:
    """Say why a log is not one that says why requests are refused."""
    if found.no_valid_host:
        return ('is a log of nova-conductor, which says that there is no '
                'valid host, but not why: give the log of nova-scheduler')
    if found.services and log_reading.SCHEDULER not in found.services:
        nothing = (', and no build in it has failed'
                   if log_reading.CONDUCTOR in found.services else '')
        return (f'is a log of {" and ".join(sorted(found.services))}{nothing}'
                ': refusals are in the log of nova-scheduler')
    if found.has_fields:
        return ('has a line for each field: give the output of journalctl '
                'with --output short-iso or json')
    if found.blobs:
        return (f'has {words.count_noun(found.blobs, "line")} of blob data: '
                'give the output of journalctl with --all')
    if found.formless:
        return (f'has {words.count_noun(found.formless, "line")} about '
                'refusals, but not as nova-scheduler or journalctl writes '
                'them: give its log itself, not an export of Loki or '
                'OpenSearch, nor a copy without time and level or with broken '
                'lines')
    return None

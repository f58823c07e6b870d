# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt explain --scheduler-log``: explain what was refused."""

import argparse
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import words
from hpcvirt.cmd import command
from hpcvirt.cmd import output
from hpcvirt.cmd import terminal
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import log_report

#: A line of the filter is much shorter.
_LONGEST_LINE = 256 * 1024

#: Options that describe a request to a fleet.
_OF_FLEETS = ('flavor', 'image', 'port', 'server', 'hosts', 'fleet')


def add(parser: argparse.ArgumentParser) -> None:
    """Add --scheduler-log and --request-id."""
    parser.add_argument(
        '--scheduler-log', metavar='FILE',
        help='explain what nova-scheduler has '
        'refused, and sum up shadow mode: its log, also as gzip or journalctl '
        'write it, - for standard input; no hosts and no flavor are needed')
    parser.add_argument(
        '--request-id', metavar='ID',
        help='with --scheduler-log: the request to '
        'explain (req-...), or the UUID of its instance; the last refused one '
        'by default')


def explain(args: argparse.Namespace) -> command.CommandResult:
    """Find the last refusal, the list of others and shadow mode.

    :raises InvalidInput: if the log has nothing of these, or for an option
        that has no effect
    """
    for option in _OF_FLEETS:
        if getattr(args, option):
            raise exception.InvalidInput(
                f'--{option}',
                'is not for --scheduler-log, which has what was asked '
                'for and the hosts')
    found = log_reading.read(_lines(args.scheduler_log), args.request_id)
    if not found.refusals and not found.shadow.requests:
        raise exception.InvalidInput(input_file.name(args.scheduler_log),
                                     _nothing(found, args.request_id))
    return command.CommandResult(
        log_report.document(found),
        lambda: log_report.text(found, terminal.width()),
        status=1 if found.refusals else 0)


def _lines(path: str) -> Iterator[bytes]:
    """Read the log, as far as it can be read."""
    try:
        yield from input_file.lines(path, _LONGEST_LINE)
    except input_file.Damaged as exc:
        output.complain(f'hpcvirt: {exc}')


def _nothing(found: log_reading.Found, request: str | None) -> str:
    cut = (f'; {words.count_noun(found.unreadable, "line")} of hpcvirt cannot '
           'be read, and may be cut' if found.unreadable else '')
    if request is None:
        return ('has no refused request and no comparison of '
                f'HPCTopologyFilter, which logs them at INFO level{cut}')
    return (f'has no refusal and no comparison of {request[:64]!r}, but '
            f'{found.others} of other requests{cut}')

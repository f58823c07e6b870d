# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""``hpcvirt explain --log``: explain what the scheduler has refused."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.cmd import output
from hpcvirt.cmd import terminal
from hpcvirt.flavors import table
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import refusal_report
from hpcvirt.fleet import shadow_report

#: A line of a refusal is much shorter, also if it is escaped twice.
_LONGEST_LINE = 256 * 1024

#: Options that describe a request to a fleet.
_OF_FLEETS = ('flavor', 'image', 'port', 'server', 'hosts', 'topology',
              'usage', 'flavors')


def add(parser: argparse.ArgumentParser) -> None:
    """Add --log and --request-id."""
    parser.add_argument(
        '--log', metavar='FILE', help='explain what nova-scheduler has '
        'refused, and sum up shadow mode: its log, also as gzip or journalctl '
        'write it, - for standard input; no hosts and no flavor are needed')
    parser.add_argument(
        '--request-id', metavar='ID', help='with --log: the request to '
        'explain (req-...), or the UUID of its instance; the last refused one '
        'by default')


def run(args: argparse.Namespace) -> int:
    """Print the last refusal, the list of others and shadow mode.

    :raises InvalidInput: if the log has nothing of these, or for an option
        that has no effect
    """
    for option in _OF_FLEETS:
        if getattr(args, option):
            raise exception.InvalidInput(
                f'--{option}', 'is not for --log, which has what was asked '
                'for and the hosts')
    found = log_reading.read(_lines(args.log), args.request_id)
    if not found.refusals and not found.shadow.requests:
        raise exception.InvalidInput(input_file.name(args.log),
                                     _nothing(found, args.request_id))
    if args.format == 'json':
        sys.stdout.write(json.dumps(_document(found), indent=1) + '\n')
    else:
        sys.stdout.write(_text(found, terminal.width()))
    return 1 if found.refusals else 0


def _lines(path: str) -> Iterator[bytes]:
    """Read the log, as far as it can be read."""
    try:
        yield from input_file.lines(path, _LONGEST_LINE)
    except input_file.Damaged as exc:
        output.complain(f'hpcvirt: {exc}')


def _nothing(found: log_reading.Found, request: str | None) -> str:
    cut = (f'; {table.counted(found.unreadable, "line")} of hpcvirt cannot '
           'be read, and may be cut' if found.unreadable else '')
    if request is None:
        return ('has no refused request and no comparison of '
                f'HPCTopologyFilter, which logs them at INFO level{cut}')
    return (f'has no refusal and no comparison of {request[:64]!r}, but '
            f'{found.others} of other requests{cut}')


def _document(found: log_reading.Found) -> dict[str, Any]:
    last = refusal_report.document(found.refusals[-1]) if (
        found.refusals) else {'schema_version': 1, 'fits': None, 'hosts': [],
                              'nearest': [], 'refused': None}
    return {**last,
            'refusals': [refusal_report.brief(item)
                         for item in found.refusals],
            'shadow': shadow_report.document(found.shadow)
            if found.shadow.requests else None,
            'unreadable': found.unreadable}


def _text(found: log_reading.Found, width: int | None) -> str:
    blocks = []
    if found.refusals:
        items = list(found.refusals)
        blocks.append(refusal_report.text(items[-1], width))
        if items[:-1]:
            blocks.append(refusal_report.others(
                items[:-1], found.refused - 1, width))
    if found.shadow.requests:
        blocks.append(shadow_report.text(found.shadow, width))
    if found.unreadable:
        blocks.append(
            f'{table.counted(found.unreadable, "line")} of hpcvirt cannot be '
            'read; a line may be cut.\n')
    return '\n'.join(blocks)

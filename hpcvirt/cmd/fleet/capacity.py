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

"""``hpcvirt capacity``: count what a fleet still takes."""

import argparse
import datetime
import json
import sys
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.cmd import extras
from hpcvirt.cmd import html_file
from hpcvirt.cmd import terminal
from hpcvirt.cmd.fleet import arguments
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import count
from hpcvirt.fleet import metrics


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.epilog = arguments.EPILOG
    parser.add_argument(
        '--flavor', metavar='NAME|FILE', action='append', default=[],
        help='count only this flavor, or that in the file; may be given '
        'several times')
    arguments.add(parser)
    parser.add_argument(
        '--html', metavar='FILE', help='write one self-contained page; an '
        'existing file is replaced only if it is such a page')
    serve = parser.add_argument_group(
        'for Prometheus', 'hpcvirt[exporter] is needed; SIGTERM ends it')
    serve.add_argument(
        '--serve', metavar='ADDRESS', nargs='?', const='127.0.0.1:9834',
        help='serve the counts as metrics on this host and port, '
        '%(const)s if none is given; there is neither encryption nor a '
        'password')
    serve.add_argument(
        '--interval', metavar='SECONDS', type=int, default=60,
        help='read the fleet again at a scrape if the last reading is older '
        '(%(default)s by default)')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the counts, or serve them."""
    if args.serve is not None:
        return _serve(args)
    if args.html is not None:
        if args.format != 'table':
            raise exception.InvalidInput('--format', 'is not for --html')
        with extras.bench():
            from hpcvirt.cmd.fleet import capacity_page
    fleet, flavors = arguments.read(args)
    found = count.count(fleet, chosen(args, flavors))
    if args.html is not None:
        now = datetime.datetime.now(datetime.UTC)
        html_file.write(args.html, capacity_page.page(
            fleet, found, f'{now:%Y-%m-%d %H:%M} UTC'), capacity_page.TITLE)
        print(args.html)
        return 0
    if args.format == 'json':
        document = capacity_report.document(fleet, found)
        sys.stdout.write(json.dumps(document, indent=1) + '\n')
    else:
        sys.stdout.write(capacity_report.text(fleet, found,
                                              terminal.width()))
    return 0


def _serve(args: argparse.Namespace) -> int:
    with extras.named('exporter'):
        from hpcvirt.cmd.fleet import exporter
    if args.format != 'table' or args.html is not None:
        option = '--format' if args.html is None else '--html'
        raise exception.InvalidInput(option, 'is not for --serve')
    if args.interval < 0:
        raise exception.InvalidInput(
            '--interval', f'must not be negative, as {args.interval} is')
    if input_file.STDIN in (args.usage, args.flavors):
        raise exception.InvalidInput(
            '--serve', 'reads files again and again, which standard input '
            'cannot be')

    def read() -> Sequence[metrics.Family]:
        fleet, flavors = arguments.read(args)
        return [*metrics.families(
            fleet, count.count(fleet, chosen(args, flavors)))]

    exporter.serve(read, exporter.address(args.serve), args.interval)
    return 0


def chosen(args: argparse.Namespace,
           flavors: Sequence[catalogue.Flavor]) -> list[catalogue.Flavor]:
    """Find the flavors that are counted.

    :raises InvalidInput: if one that is named does not exist
    """
    if not args.flavor:
        return list(flavors)
    return [arguments.chosen(argparse.Namespace(
        **{**vars(args), 'flavor': name}), flavors)
        for name in dict.fromkeys(args.flavor)]

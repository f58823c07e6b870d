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

"""``hpcvirt make-room``: find the fewest moves after which a guest fits."""

import argparse
import json
import sys

from hpcvirt.cmd import terminal
from hpcvirt.cmd.fleet import arguments
from hpcvirt.fleet import guest
from hpcvirt.fleet import make_room
from hpcvirt.fleet import move_report

_ABOUT = """\
Find the fewest instances to move to other hosts so that one more instance of
a flavor fits, or several more, and the order of the moves. Nothing is moved.
"""

#: More than this many instances at once have no plan of so few moves.
MOST_INSTANCES = 1000


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _ABOUT
    parser.epilog = arguments.EPILOG
    arguments.add_flavor(parser)
    parser.add_argument('--count', metavar='N', type=_count, default=1,
                        help='the number of instances that must fit at once, '
                        'on any hosts (1 by default)')
    parser.add_argument('--moves', metavar='K', type=int, default=2,
                        choices=range(4), help='the most moves, 0 to 3 (2 by '
                        'default)')
    parser.add_argument('--cold', action='store_true', help='allow cold '
                        'migrations, as few as possible, of instances that '
                        'cannot be live-migrated, such as those with virtual '
                        'functions')
    arguments.add(parser)
    parser.set_defaults(run=run)


def _count(word: str) -> int:
    number = int(word)
    if not 1 <= number <= MOST_INSTANCES:
        raise argparse.ArgumentTypeError(
            f'must be from 1 to {MOST_INSTANCES}, not {number}')
    return number


def run(args: argparse.Namespace) -> int:
    """Print the moves."""
    fleet, flavors = arguments.read(args)
    flavor = arguments.chosen(args, flavors)
    plan = make_room.search(guest.of_flavor(flavor), fleet.hosts, args.moves,
                            args.count, args.cold)
    if args.format == 'json':
        document = move_report.document(fleet, plan)
        sys.stdout.write(json.dumps(document, indent=1) + '\n')
    else:
        asked = move_report.Asked(args.moves, args.count, args.cold)
        sys.stdout.write(move_report.text(fleet, flavor.name, plan, asked,
                                          terminal.width()))
    return 0 if plan else 1

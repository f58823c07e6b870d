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

"""``hpcvirt make-room``: move the fewest instances so that a guest fits."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import terminal
from hpcvirt.cmd.fleet import arguments
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import guest
from hpcvirt.fleet import make_room
from hpcvirt.fleet import move_report
from hpcvirt.fleet import moving
from hpcvirt.fleet import standing

_ABOUT = """\
Find the fewest instances to move to other hosts so that one more instance of
a flavor fits, or several more, and the order of the moves. With --apply, make
the moves, one after the other.
"""

_EPILOG = arguments.EPILOG + """
With --apply, the cloud is chosen as by every OpenStack client: clouds.yaml
(OS_CLOUD or --os-cloud), or the other OS_* variables. Exit status: 0 if the
instances fit, now or after the moves; 1 if no moves are enough; 2 if the input
or the cloud cannot be used; 3 if a move did not do as planned, and those after
it were not begun.
"""

#: More than this many instances at once have no plan of so few moves.
MOST_INSTANCES = 1000


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _ABOUT
    parser.epilog = _EPILOG
    arguments.add_flavor(parser, required=False)
    parser.add_argument('--standing', metavar='NAME=N', action='append',
                        default=[], help='in place of --flavor: keep room for '
                        'N instances of this flavor, and for those of each '
                        'other --standing at once; may be given several '
                        'times')
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
    parser.add_argument('--apply', action='store_true',
                        help='make the moves, and stop at the first that '
                        'does not do as planned; without it they are only '
                        'printed')
    cloud_arguments.add(parser)
    arguments.add(parser)
    parser.set_defaults(run=run)


def _count(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= MOST_INSTANCES:
        raise argparse.ArgumentTypeError(
            f'must be a number from 1 to {MOST_INSTANCES}, not '
            f'{word[:20]!r}')
    return int(word)


def run(args: argparse.Namespace) -> int:
    """Print the moves, and with --apply make them."""
    if bool(args.flavor) == bool(args.standing):
        raise exception.InvalidInput(
            'make-room', 'needs either --flavor or --standing')
    if args.standing and args.count != 1:
        raise exception.InvalidInput(
            '--count', 'belongs to --flavor; --standing has its own numbers')
    fleet, flavors = arguments.read(args)
    asked = move_report.Asked(args.moves, args.count, args.cold)
    if args.standing:
        found = standing.search(
            [_wanted(word, args, flavors) for word in args.standing],
            fleet.hosts, args.moves, args.cold)
        plans = [kept.plan for kept in found]
        document = move_report.standing_document(fleet, found)
        text = move_report.standing_text(fleet, found, asked,
                                         terminal.width())
    else:
        flavor = arguments.chosen(args, flavors)
        plans = [make_room.search(guest.of_flavor(flavor), fleet.hosts,
                                  args.moves, args.count, args.cold)]
        document = move_report.document(fleet, plans[0])
        text = move_report.text(fleet, flavor.name, plans[0], asked,
                                terminal.width())
    if args.format != 'json':
        sys.stdout.write(text)
        sys.stdout.flush()
    moves = [move for plan in plans if plan for move in plan.moves]
    done = (not args.apply or not moves
            or _apply(moves, document['moves'], args))
    if args.format == 'json':
        sys.stdout.write(json.dumps(document, indent=1) + '\n')
    return 3 if not done else 0 if document['fits'] else 1


def _wanted(word: str, args: argparse.Namespace,
            flavors: Sequence[catalogue.Flavor]) -> standing.Wanted:
    name, equals, number = word.rpartition('=')
    try:
        count = _count(number)
    except argparse.ArgumentTypeError:
        count = 0
    if not equals or not name or not count:
        raise exception.InvalidInput(
            '--standing', f'{word[:64]!r} is not NAME=N, such as '
            'hpc.16c1n.2m=2')
    return standing.Wanted(arguments.chosen(argparse.Namespace(
        flavor=name, flavors=args.flavors), flavors), count)


def _apply(moves: Sequence[moving.Move], documents: list[dict[str, Any]],
           args: argparse.Namespace) -> bool:
    """Make moves, and say so; stop at the first that is not as planned."""
    # The client libraries take half a second to load.
    from hpcvirt.cloud import migrations
    migrator = migrations.Migrator(cloud_arguments.connect(args))
    for move, document in zip(moves, documents, strict=True):
        try:
            why = migrator.carry_out(move)
        except exception.Unreachable as exc:
            why = str(exc)
        document |= {'done': why is None, 'failure': why}
        if args.format != 'json':
            sys.stdout.write(move_report.progress(move, why))
            sys.stdout.flush()
        if why is not None:
            return False
    return True

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

from hpcvirt import exception
from hpcvirt.cmd import terminal
from hpcvirt.cmd.fleet import arguments
from hpcvirt.fleet import guest
from hpcvirt.fleet import make_room
from hpcvirt.fleet import move_report
from hpcvirt.fleet import moving

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
    parser.add_argument('--apply', action='store_true',
                        help='make the moves, and stop at the first that '
                        'does not do as planned; without it they are only '
                        'printed')
    parser.add_argument('--os-cloud', metavar='NAME',
                        help='an entry of clouds.yaml (default: OS_CLOUD), '
                        'for --apply')
    arguments.add(parser)
    parser.set_defaults(run=run)


def _count(word: str) -> int:
    number = int(word)
    if not 1 <= number <= MOST_INSTANCES:
        raise argparse.ArgumentTypeError(
            f'must be from 1 to {MOST_INSTANCES}, not {number}')
    return number


def run(args: argparse.Namespace) -> int:
    """Print the moves, and with --apply make them."""
    fleet, flavors = arguments.read(args)
    flavor = arguments.chosen(args, flavors)
    plan = make_room.search(guest.of_flavor(flavor), fleet.hosts, args.moves,
                            args.count, args.cold)
    document = move_report.document(fleet, plan)
    if args.format != 'json':
        asked = move_report.Asked(args.moves, args.count, args.cold)
        sys.stdout.write(move_report.text(fleet, flavor.name, plan, asked,
                                          terminal.width()))
        sys.stdout.flush()
    why = None
    if args.apply and plan is not None:
        for move, shown in zip(plan.moves, document['moves'], strict=True):
            why = _carry_out(move, args)
            shown |= {'done': why is None, 'failure': why}
            if args.format != 'json':
                sys.stdout.write(move_report.progress(move, why))
                sys.stdout.flush()
            if why is not None:
                break
    if args.format == 'json':
        sys.stdout.write(json.dumps(document, indent=1) + '\n')
    return 3 if why is not None else 0 if plan else 1


def _carry_out(move: moving.Move, args: argparse.Namespace) -> str | None:
    # The client libraries take half a second to load.
    from hpcvirt.cloud import migrations
    from hpcvirt.cloud import session
    try:
        return migrations.Migrator(
            session.compute(args.os_cloud)).carry_out(move)
    except exception.Unreachable as exc:
        return str(exc)

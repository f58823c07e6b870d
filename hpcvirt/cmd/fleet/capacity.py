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
import json
import sys
from collections.abc import Sequence

from hpcvirt.cmd import terminal
from hpcvirt.cmd.fleet import arguments
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import count


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.epilog = arguments.EPILOG
    parser.add_argument(
        '--flavor', metavar='NAME', action='append', default=[],
        help='count only this flavor; may be given several times')
    arguments.add(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the counts."""
    fleet, flavors = arguments.read(args)
    found = count.count(fleet, chosen(args, flavors))
    if args.format == 'json':
        document = capacity_report.document(fleet, found)
        sys.stdout.write(json.dumps(document, indent=1) + '\n')
    else:
        sys.stdout.write(capacity_report.text(fleet, found,
                                              terminal.width()))
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

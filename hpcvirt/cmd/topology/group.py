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

"""``hpcvirt topology group``: find hosts that are alike, and odd ones."""

import argparse
import json
import sys

from hpcvirt.cmd import fleet_arguments
from hpcvirt.cmd import terminal
from hpcvirt.topology import source
from hpcvirt.topology.alike import classes
from hpcvirt.topology.alike import report

_ABOUT = """\
Group hosts into classes of alike ones, and say how odd hosts differ from their
class: a missing memory module, SMT switched off, another NPS or SNC setting, a
card on another cell. The exit status is 1 if a host is odd.
"""

_EPILOG = """\
PATH is anything that "hpcvirt topology show" reads. Hosts must have different
names; NAME=PATH gives a host the name NAME.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'group', help='find hosts that are alike, and odd ones',
        description=_ABOUT, epilog=_EPILOG)
    parser.add_argument('path', metavar='PATH', nargs='+',
                        help='the topology of a host')
    parser.add_argument('--source', choices=source.SOURCES, default='auto',
                        help='the format of every PATH; auto (the default) '
                        'detects it')
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table',
                        help='text for people (the default) or a document '
                        'for programs')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the classes."""
    groups = classes.group(fleet_arguments.read_hosts(args.path, args.source))
    if args.format == 'json':
        sys.stdout.write(json.dumps(report.document(groups), indent=1) + '\n')
    else:
        sys.stdout.write(report.table(groups, terminal.width()))
    return 1 if any(group.odd for group in groups) else 0

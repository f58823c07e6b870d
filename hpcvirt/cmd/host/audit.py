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

"""``hpcvirt host audit``: find what costs guests of a host performance."""

import argparse
import json
import pathlib
import sys

from hpcvirt.cmd import fleet_arguments
from hpcvirt.cmd import terminal

_ABOUT = """\
Read the state of a compute host and report what is not as HPC guests need it:
what was found, what is expected, why, and the change. Nothing is changed.
"""

_EPILOG = """\
Run it as root: what cannot be read is reported as unknown, never as fine. Exit
status: 0 if there is nothing but notes, 1 if there is an error, a warning or
something unknown, 2 if there is no host to read.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'audit', help='find what costs guests of a host performance',
        description=_ABOUT, epilog=_EPILOG)
    parser.add_argument('--root', metavar='DIR', default='/',
                        help='a directory with a copy of the sys, proc and '
                        'etc of another host (default: this host)')
    parser.add_argument('--profile', metavar='NAME|FILE',
                        help='compare the host with the settings that the '
                        'flavors of this profile need, as "hpcvirt flavor '
                        'plan" works them out (default: judge the host by '
                        'itself)')
    parser.add_argument('--format', choices=('table', 'json', 'nhc'),
                        default='table', help='text for people (the '
                        'default), a document for programs, or lines for the '
                        'configuration of LBNL Node Health Check')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the findings."""
    from hpcvirt.audit import audit
    from hpcvirt.audit.reading import host
    from hpcvirt.audit.report import json_document
    from hpcvirt.audit.report import nhc
    from hpcvirt.audit.report import table
    profile = (None if args.profile is None
               else fleet_arguments.read_profile(args.profile))
    result = audit.audit(host.read(pathlib.Path(args.root)), profile)
    if args.format == 'json':
        sys.stdout.write(
            json.dumps(json_document.document(result), indent=1) + '\n')
    elif args.format == 'nhc':
        sys.stdout.write('\n'.join(nhc.lines(result)) + '\n')
    else:
        sys.stdout.write(table.text(result, terminal.width()))
    return int(not result.is_clean)

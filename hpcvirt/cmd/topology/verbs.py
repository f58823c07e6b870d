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

"""``hpcvirt topology``: read, draw and group topologies of hosts."""

import argparse
import shutil
import sys

from hpcvirt import topology
from hpcvirt.cmd.topology import group
from hpcvirt.topology import snapshot
from hpcvirt.topology import source
from hpcvirt.topology.draw import boxes
from hpcvirt.topology.draw import diagram

_SHOW = """\
Without PATH the running machine is read. PATH may be the root directory (or
the sys directory) of a copy of the sysfs of another machine, the XML of
"virsh capabilities", the XML of "lstopo --of xml", the JSON of "openstack
baremetal node inventory save" or "introspection data save", or a snapshot: the
output of this command with --format json. PATH may be - for standard input:
"virsh capabilities | hpcvirt topology show -".
"""


def add_verbs(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of this noun."""
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', required=True)
    show = verbs.add_parser(
        'show', help='draw a host, or write it as a snapshot',
        description='Draw a host, or write it as a snapshot.', epilog=_SHOW)
    show.add_argument('path', metavar='PATH', nargs='?',
                      help='the file or directory to read; by default the '
                      'running machine')
    show.add_argument('--source', choices=source.SOURCES, default='auto',
                      help='the kind of PATH; auto (the default) decides by '
                      'the content')
    show.add_argument('--format', choices=('table', 'json'), default='table',
                      help='a drawing for people (the default) or a '
                      'snapshot for programs')
    show.set_defaults(run=run_show)
    group.add(verbs)


def run_show(args: argparse.Namespace) -> int:
    """Print one host."""
    host = topology.read(args.path, args.source)
    if args.format == 'json':
        text = snapshot.dumps(host)
    else:
        columns = shutil.get_terminal_size(fallback=(80, 24)).columns
        text = diagram.draw(host, min(max(columns, 60), 140))
    try:
        text.encode(sys.stdout.encoding or 'ascii')
    except UnicodeEncodeError:
        text = boxes.plain(text)
    sys.stdout.write(text)
    return 0

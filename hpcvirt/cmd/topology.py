# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt topology``: read, draw and group topologies of hosts."""

import argparse
import functools
import shutil
import sys

from hpcvirt import topology
from hpcvirt.cmd import command
from hpcvirt.cmd import terminal
from hpcvirt.model import host as host_model
from hpcvirt.topology import snapshot
from hpcvirt.topology import source
from hpcvirt.topology.alike import classes
from hpcvirt.topology.alike import report
from hpcvirt.topology.draw import boxes
from hpcvirt.topology.draw import diagram


class ShowTopology(command.Report):
    """Draw a host, or write it as a snapshot."""

    epilog = """\
Without PATH the running machine is read. PATH may be the root directory (or
the sys directory) of a copy of the sysfs of another machine, the XML of
"virsh capabilities", the XML of "lstopo --of xml", the JSON of "openstack
baremetal node inventory save" or "introspection data save", or a snapshot: the
output of this command with -f json. PATH may be - for standard input:
"virsh capabilities | hpcvirt topology show -". The rows are the cells.
"""
    rows = 'cells'
    fields = ('id', 'socket', 'cpus', 'memory_mib', 'pages')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('path', metavar='PATH', nargs='?',
                            help='the file or directory to read; by default '
                            'the running machine')
        parser.add_argument('--source', choices=source.SOURCES, default='auto',
                            help='the kind of PATH; auto (the default) '
                            'decides by the content')

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Read one host."""
        host = topology.read(args.path, args.source)
        return command.CommandResult(
            snapshot.make_json(host), functools.partial(_draw, host),
            others={'json': lambda: _encodable(snapshot.dumps(host))})


def _draw(host: host_model.Host) -> str:
    columns = shutil.get_terminal_size(fallback=(80, 24)).columns
    return _encodable(diagram.draw(host, min(max(columns, 60), 140)))


def _encodable(text: str) -> str:
    try:
        text.encode(sys.stdout.encoding or 'ascii')
    except UnicodeEncodeError:
        return boxes.plain(text)
    return text


class GroupTopologies(command.Report):
    """Find hosts that are alike, and odd ones.

    Group hosts into classes of alike ones, and say how odd hosts differ from
    their class: a missing memory module, SMT switched off, another NPS or SNC
    setting, a card on another cell. The exit status is 1 if a host is odd.
    """

    fields = ('example', 'hosts', 'odd', 'slots')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        # YAML takes a while to load.
        from hpcvirt.cmd import hosts
        hosts.add_hosts(parser, '+')

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Group the hosts."""
        from hpcvirt.cmd import hosts
        groups = classes.group(hosts.read_hosts(args.path, args.source))
        return command.CommandResult(
            report.document(groups),
            lambda: report.table(groups, terminal.width()),
            status=int(any(group.odd for group in groups)))

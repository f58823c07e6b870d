# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host show`` and ``group``: draw and compare topologies."""

import argparse
import functools
import shutil
import sys

from hpcvirt import topology
from hpcvirt.cmd import command
from hpcvirt.cmd import output
from hpcvirt.model import host as host_model
from hpcvirt.topology import snapshot
from hpcvirt.topology.alike import classes
from hpcvirt.topology.alike import report
from hpcvirt.topology.draw import boxes
from hpcvirt.topology.draw import diagram


class ShowHost(command.Report):
    """Draw the topology of a host, or write it as a snapshot."""

    epilog = """\
PATH is one of these: the root directory, or the directory sys, of a copy of
another machine's sysfs; the XML of "virsh capabilities" or of "lstopo --of
xml"; the JSON of "openstack baremetal node inventory save" or of "openstack
baremetal introspection data save"; a snapshot, which this command writes with
-f json; or - for standard input, as in "virsh capabilities | hpcvirt host
show -". The formats csv and value have one row for each host cell.
"""
    rows = 'cells'
    fields = ('id', 'socket', 'cpus', 'memory_mib', 'pages')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('path', metavar='PATH', nargs='?',
                            help='the file or directory to read (default: '
                            'the machine on which the command runs)')

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Read one host."""
        host = topology.read(args.path)
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


class GroupHosts(command.Report):
    """Group hosts that are alike, and find those that differ.

    Divide hosts into classes, and report how odd hosts differ from their
    class: a missing memory module, SMT switched off, another NPS or SNC
    setting, a card on another host cell. The exit status is 1 if a host is
    odd.
    """

    fields = ('example', 'hosts', 'odd', 'slots')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        # YAML takes a while to load.
        from hpcvirt.cmd import hosts
        hosts.add_hosts(parser, '+')

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Group the hosts."""
        from hpcvirt.cmd import hosts
        groups = classes.group(hosts.read_hosts(args.path))
        return command.CommandResult(
            report.document(groups),
            lambda: report.table(groups, output.width()),
            status=int(any(group.odd for group in groups)))

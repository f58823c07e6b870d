# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt fleet instance-topology``: write where devices of a guest are."""

import argparse
import dataclasses

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import output
from hpcvirt.instance_topology import description
from hpcvirt.instance_topology import functions
from hpcvirt.instance_topology import places
from hpcvirt.instance_topology import writers
from hpcvirt.topology import capture
from hpcvirt.topology import document
from hpcvirt.topology import domain


class WriteInstanceTopology(command.Report):
    """Write where the devices of an instance are, for programs in it.

    Print the devices with their guest cells and shared switches, or a file for
    the guest: nccl for NCCL_TOPO_FILE, ucx with values for UCX_NET_DEVICES,
    gres for gres.conf of Slurm. What is uncertain is left out, and said.
    """

    epilog = """\
The devices are those of --domain, or those that Placement has allocated. The
document of -f json is a vendor_data2.json for hpcvirt-guest-topology.
"""
    rows = 'functions'
    fields = ('address', 'vendor', 'product', 'cell', 'switch', 'speed_gts',
              'lanes')
    more_formats = ('nccl', 'ucx', 'gres')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('server', metavar='SERVER',
                            help='name or UUID of the instance')
        parser.add_argument('path', metavar='PATH', help='topology of its '
                            'compute host, as "hpcvirt host show" reads '
                            'it')
        for name, metavar, text in (
                ('domain', 'FILE', 'what "virsh dumpxml" prints of it'),
                ('guest', 'PATH', 'its root, or a copy or a capture of it')):
            parser.add_argument(f'--{name}', metavar=metavar, help=text)
        cloud_arguments.add(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Read the cloud and the files, and say what is certain."""
        made = _describe(args)
        seen = _see(args, made)
        if args.formatter in self.more_formats and not seen:
            raise exception.InvalidInput(
                f'--format {args.formatter}', 'needs the addresses in the '
                'guest, from --domain or --guest')
        try:
            found = places.arrange(made, seen)
        except ValueError as exc:
            raise exception.InvalidInput('--guest', str(exc)) from exc
        for note in found.notes if seen else made['notes']:
            output.complain(f'hpcvirt: {note}')
        rows = [dataclasses.asdict(each) for each in found.functions] or [
            {**each, 'product': '/'.join(each['products'])}
            for each in made['devices']]
        return command.CommandResult(
            {'schema_version': places.VERSION, places.ENTRY: made,
             'functions': rows},
            others={'nccl': lambda: writers.write_nccl(found),
                    'ucx': lambda: writers.write_ucx(found),
                    'gres': lambda: writers.write_gres(found)})


def _describe(args: argparse.Namespace) -> places.Description:
    from hpcvirt.cloud import servers
    host = topology.read(args.path)
    nova = cloud_arguments.connect(args)
    server = servers.look_up(nova, args.server)
    if args.domain is None:
        held = [*map(description.HeldDevice, cloud_arguments.connect_placement(
            args).list_devices(server.id))]
    else:
        file = document.TopologyDocument(args.domain)
        own = domain.read(file.data.decode(errors='replace'), file.path)
        if own.uuid != server.id:
            raise exception.InvalidInput(
                file.path, f'is the domain of {own.uuid}, not of {server.id}')
        held = [description.HeldDevice(address, own.guest_addresses.get(
            address)) for address in own.devices]
    made = description.describe(
        host, servers.read_cells(nova, server), held)
    node = servers.get_node(server) or host.name
    if node.partition('.')[0] != host.name.partition('.')[0]:
        made['notes'].append(f'the instance is on {node}, and {args.path} is '
                             f'the topology of {host.name}')
    return made


def _see(args: argparse.Namespace,
         made: places.Description) -> list[places.Function]:
    if args.guest is None:
        return [places.Function(each['address'], each['vendor'], ''.join(
            each['products'][:1])) for each in made['devices']
            if each['address']]
    try:
        with capture.open_root(args.guest) as root:
            return functions.read(str(root))
    except OSError as exc:
        raise exception.InvalidInput('--guest', str(exc)) from exc

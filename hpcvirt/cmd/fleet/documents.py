# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt fleet dump`` and ``show``: write and summarize documents."""

import argparse
import collections
import sys
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import hosts
from hpcvirt.cmd import output
from hpcvirt.cmd.fleet import arguments
from hpcvirt.deployment import ansible
from hpcvirt.flavors import warning
from hpcvirt.fleet import assemble
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import classes
from hpcvirt.fleet import document as documents
from hpcvirt.model import host as host_model

SCHEMA_VERSION = 1
_INVENTORY = 'inventory'

_HEADINGS = ('Class', 'Hosts', 'CPUs', 'GiB', 'Instances', 'Profile',
             'Aggregate', 'Traits')


class DumpFleet(command.Command):
    """Write the fleet of a live cloud as a document.

    Write the hosts with their data from Nova and Placement, the instances and
    the flavors as JSON to standard output. The command must run on a
    controller, and changes nothing. The document has no secrets: no
    credentials, user names or metadata.
    """

    epilog = 'All commands with --fleet read the document.'

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--anonymize', action='store_true', help='number the instances '
            'and projects instead of naming them, and leave out the reasons '
            'that operators gave for closed hosts; hosts, flavors, aggregates '
            'and traits keep their names')
        arguments.add_live(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Write the document."""
        view = arguments.look(parsed_args)
        with extras.nova():
            from hpcvirt.nova_live import fleet_dump
        document = fleet_dump.make_document(view)
        if parsed_args.anonymize:
            document = documents.replace_names(document)
        for part in documents.format_json(document):
            sys.stdout.write(part)


class ShowFleet(command.Report):
    """Summarize a fleet document.

    Print the number of hosts and instances of each class, and the hosts whose
    topology cannot be understood or whose instances cannot be there. The rows
    are the classes. The format inventory writes the hosts with their classes
    as an inventory of Ansible, for the playbooks of the collection
    hpcvirt.hpc; the topology of a host NAME=PATH need not exist yet.
    """

    rows = 'classes'
    fields = ('name', 'hosts', 'broken', 'cpus', 'memory_gib', 'instances',
              'profile', 'aggregate', 'traits', 'isolated')
    more_formats = (_INVENTORY,)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('fleet', metavar='FILE',
                            help='a fleet document, as YAML or JSON')

    def answer(self, parsed_args: argparse.Namespace) -> command.CommandResult:
        """Read and summarize the document."""
        if parsed_args.formatter == _INVENTORY:
            return command.CommandResult(None, others={
                _INVENTORY: lambda: _make_inventory(parsed_args.fleet)})
        document = hosts.read_fleet(parsed_args.fleet)
        plain = make_summary(document, _find_broken(document))
        return command.CommandResult(
            plain, lambda: '\n'.join(_draw(plain)) + '\n')


def _make_inventory(path: str) -> str:
    document = hosts.read_fleet(path, names_only=True)
    return ansible.class_inventory({
        name: own.names for name, own in document.classes.items()})


def _find_broken(document: documents.FleetDocument) -> Mapping[str, str]:
    """Find the hosts whose records are broken, and print warnings.

    The settings of hosts, which may need a plan, matter to instances only.

    :returns: host -> why
    """
    if not document.instances and not document.named:
        faults: dict[str, str] = {}
        for own in document.classes.values():
            for entry in own.hosts:
                if entry.fault is not None:
                    faults |= dict.fromkeys(entry.names, entry.fault)
        return faults
    fleet, _ = assemble.make_fleet(document)
    # An instance may contradict only the pages that are planned anew.
    codes = warning.OF_ANSWERS if fleet.broken else warning.OF_RECORDS
    hosts.warn(item for item in fleet.warnings if item.code in codes)
    return fleet.broken


def make_summary(document: documents.FleetDocument,
                 broken: Mapping[str, str]) -> dict[str, Any]:
    """Return the summary of a document, for JSON.

    :param broken: host -> why its record cannot be used
    """
    residents = collections.Counter([
        *(instance.host for instance in document.instances),
        *(instance.entry.host for instance in document.named)])
    return {
        'schema_version': SCHEMA_VERSION,
        'classes': [
            {'name': name, **_count_class(name, own, broken), 'instances': sum(
                residents[host] for host in own.names)}
            for name, own in document.classes.items()],
        'flavors': len(document.flavors),
        'instances': residents.total(),
        'broken': [{'name': host, 'reason': reason}
                   for host, reason in broken.items()],
    }


def _count_class(name: str, own: classes.FleetClass,
                 broken: Mapping[str, str]) -> dict[str, Any]:
    known = [(entry.topology, entry.count) for entry in own.hosts
             if isinstance(entry.topology, host_model.Host)]
    memory_mib = 0
    for topology, count in known:
        memory_mib += count * sum(cell.memory_mib for cell in topology.cells)
    return {
        'hosts': len(own.names),
        'broken': sum(host in broken for host in own.names),
        'cpus': sum(len(host.cpus) * count for host, count in known),
        'memory_gib': memory_mib // 1024,
        'profile': own.profile_name,
        'aggregate': ', '.join(own.name_aggregates(name)) or None,
        'traits': list(own.traits),
        'isolated': own.isolated}


def _draw(plain: dict[str, Any]) -> Iterator[str]:
    number = sum(each['hosts'] for each in plain['classes'])
    yield (f'{words.count_noun(number, "host")}, '
           f'{words.count_noun(plain["instances"], "instance")}, '
           + (words.count_noun(plain['flavors'], 'flavor')
              if plain['flavors'] else 'flavors as the profiles plan them'))
    yield ''
    yield text_table.draw(_HEADINGS, [[
        each['name'], str(each['hosts']), str(each['cpus']),
        str(each['memory_gib']), str(each['instances']), each['profile'],
        each['aggregate'] or '-', ', '.join(each['traits'])
        + (', isolated' if each['isolated'] else '') or '-']
        for each in plain['classes']],
        numbers=('Hosts', 'CPUs', 'GiB', 'Instances'),
        width=output.width()).rstrip('\n')
    if plain['broken']:
        yield ''
        yield capacity_report.list_hosts(
            'Broken records:', {each['name']: each['reason']
                                for each in plain['broken']},
            output.width() or text_table.WIDTH).rstrip('\n')

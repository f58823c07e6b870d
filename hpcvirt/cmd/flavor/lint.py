# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt flavor lint``: check existing flavors."""

import argparse
import os
import textwrap

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import printable
from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import hosts
from hpcvirt.cmd import output
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import host_part
from hpcvirt.flavors import lint
from hpcvirt.flavors import lint_hosts
from hpcvirt.flavors import warning
from hpcvirt.fleet import assemble
from hpcvirt.fleet import document as documents
from hpcvirt.fleet import moving
from hpcvirt.model import flavor as flavor_model

_EPILOG = """\
FILE is a plan of "hpcvirt flavor plan", or the output of "openstack flavor
show" or "openstack flavor list --long", as JSON or YAML, or - for standard
input. Any other argument is the NAME of a flavor in the cloud. --profile,
--cpus and --pages describe how the hosts of --host are divided, as for
"hpcvirt flavor plan".

The exit status is 0 if no finding is an error, 1 if one is, and 2 if the input
or the cloud cannot be used.
"""

_FILE_ENDINGS = ('.json', '.yaml', '.yml')


class LintFlavors(command.Report):
    """Check existing flavors.

    Report what Nova refuses, misplaces or wastes in a flavor. With --fleet or
    --host, also report the hosts on which it does not fit, and the CPUs and
    devices that it leaves unused on the other hosts.
    """

    epilog = _EPILOG
    rows = 'findings'
    fields = ('severity', 'code', 'flavor', 'key', 'message', 'advice')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('subject', metavar='FILE|NAME', nargs='+',
                            help='a file of flavors, or a flavor of the cloud')
        hosts.add_fleet(parser)
        parser.add_argument(
            '--host', metavar=hosts.METAVAR, dest='path', action='append',
            default=[], help='also check the flavors against this host; may '
            'be given more than once')
        hosts.add_division(parser)
        cloud_arguments.add(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Check the flavors."""
        part = host_part.build(args.cpus, args.pages)
        document = None
        if args.fleet is not None or args.path:
            document = hosts.read(args)
            if args.path:
                # A file that cannot be read is refused before others are.
                document.list_topologies()
        flavors = _flavors(args)
        on_hosts: dict[str, tuple[lint.LintFinding, ...]] = {}
        if document is not None:
            on_hosts = _check_hosts(flavors, document, part)
        findings: list[lint.LintFinding] = []
        for flavor in flavors:
            findings += lint.lint(flavor)
            findings += on_hosts.get(flavor.name, ())
        return command.CommandResult(
            {'schema_version': 1, 'flavors': [item.name for item in flavors],
             'findings': [_plain(item) for item in findings],
             'counts': _counts(findings)},
            lambda: _text(flavors, findings),
            status=int(any(item.severity is lint.LintSeverity.ERROR
                           for item in findings)))


def _check_hosts(flavors: list[flavor_model.Flavor],
                 document: documents.FleetDocument,
                 part: host_part.HostPart,
                 ) -> dict[str, tuple[lint.LintFinding, ...]]:
    """Check flavors against the hosts of a fleet, without its instances.

    :raises InvalidInput: for a host whose record is broken
    """
    fleet, planned = assemble.make_fleet(document, part)
    for name, why in fleet.broken.items():
        raise exception.InvalidInput(name, why)
    hosts.warn(item for item in fleet.warnings
               if item.code is warning.WarningCode.PLANNED_ANEW)
    states = {}
    for host in fleet.hosts:
        # Nova sends no instance to a closed host, whatever its flavor.
        if host.state.closed is None:
            states[host.name] = moving.leave_all(host.instances, host).state
    complete = [compiled_flavor.complete(flavor, fleet.alias_policies)
                for flavor in flavors]
    return lint_hosts.check_hosts(
        complete, states, () if document.flavors else planned,
        {host.name: host for host in fleet.planned})


def _plain(item: lint.LintFinding) -> dict[str, object]:
    return {'code': item.code, 'severity': item.severity.value,
            'flavor': item.flavor, 'key': item.key, 'message': item.message,
            'advice': item.advice, 'hosts': list(item.hosts)}


def _counts(findings: list[lint.LintFinding]) -> dict[str, int]:
    return {severity.value: sum(item.severity is severity for item in findings)
            for severity in lint.LintSeverity}


def _flavors(args: argparse.Namespace) -> list[flavor_model.Flavor]:
    """Read the flavors that the arguments name from files and the cloud."""
    flavors: list[flavor_model.Flavor] = []
    names = []
    for subject in args.subject:
        if _is_file(subject):
            flavors += hosts.read_flavors(subject)
        else:
            names.append(subject)
    if names:
        flavors += _from_cloud(names, args)
    return flavors


def _is_file(subject: str) -> bool:
    return (subject == input_file.STDIN or os.path.lexists(subject)
            or os.sep in subject or subject.endswith(_FILE_ENDINGS))


def _from_cloud(names: list[str],
                args: argparse.Namespace) -> list[flavor_model.Flavor]:
    # The client libraries take half a second to load; files need none.
    from hpcvirt.cloud import flavors as cloud_flavors
    try:
        existing = cloud_flavors.read(cloud_arguments.connect(args))
    except exception.Unreachable as exc:
        raise exception.Unreachable(
            f'{names[0]!r} is not a file, and {exc}') from exc
    found = []
    for name in names:
        same = [item.flavor for item in existing
                if name in (item.flavor.name, item.id)]
        if not same:
            raise exception.InvalidInput(
                name, 'is neither a file nor a flavor of the cloud')
        found += same
    return found


def _text(flavors: list[flavor_model.Flavor],
          findings: list[lint.LintFinding]) -> str:
    width = output.width() or text_table.WIDTH
    lines = []
    for flavor in flavors:
        mine = [item for item in findings if item.flavor == flavor.name]
        if mine:
            lines.append(flavor.name)
        for item in mine:
            lines += textwrap.wrap(
                f'{item.severity}: {item.code}: {item.key}: {item.message}. '
                f'Advice: {item.advice}.', width, initial_indent='  ',
                subsequent_indent='    ', break_on_hyphens=False)
    counts = ', '.join(words.count_noun(count, severity) for severity, count
                       in _counts(findings).items())
    lines.append(f'{words.count_noun(len(flavors), "flavor")}: {counts}.')
    return printable.lines(lines)

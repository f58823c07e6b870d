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

"""``hpcvirt flavor lint``: check existing flavors."""

import argparse
import json
import os
import sys
import textwrap

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import printable
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import fleet_arguments
from hpcvirt.cmd import terminal
from hpcvirt.cmd import yaml_file
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import finding
from hpcvirt.flavors import flavor_files
from hpcvirt.flavors import lint
from hpcvirt.flavors import lint_hosts
from hpcvirt.flavors import table

_ABOUT = """\
Check flavors for what Nova refuses, misplaces or wastes, and with --host for
the CPUs that they leave unused on hosts.
"""

_EPILOG = """\
FILE is a plan of "hpcvirt flavor plan", or the output of "openstack flavor
show" or "openstack flavor list --long", as JSON or YAML, - for standard input.
Any other argument is the NAME of a flavor in the cloud. --profile, --cpus and
--pages describe how the hosts are divided, as for "hpcvirt flavor plan". Exit
status: 0 if there are no errors, 1 if a finding is an error, 2 if the input
cannot be used.
"""

_MAX_BYTES = 16 * 1024 * 1024
_FILE_ENDINGS = ('.json', '.yaml', '.yml')


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    add_arguments(verbs.add_parser('lint', help='check existing flavors'))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _ABOUT
    parser.epilog = _EPILOG
    parser.add_argument('subject', metavar='FILE|NAME', nargs='+',
                        help='a file of flavors, or a flavor of the cloud')
    parser.add_argument('--host', metavar='PATH', action='append',
                        default=[], help='also check the flavors against this '
                        'host; may be given more than once')
    fleet_arguments.add_division(parser)
    cloud_arguments.add(parser)
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='text for people (the '
                        'default) or a document for programs')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the findings."""
    profile, part = fleet_arguments.read_division(args)
    hosts = fleet_arguments.read_hosts(args.host)
    flavors = _flavors(args)
    findings: list[finding.Finding] = []
    for flavor in flavors:
        findings += lint.lint(flavor)
        findings += lint_hosts.lint(flavor, hosts, profile, part)
    if args.format == 'json':
        sys.stdout.write(json.dumps({
            'schema_version': 1, 'flavors': [item.name for item in flavors],
            'findings': [_plain(item) for item in findings],
            'counts': _counts(findings),
        }, indent=1) + '\n')
    else:
        sys.stdout.write(_text(flavors, findings))
    return int(any(item.severity is finding.Severity.ERROR
                   for item in findings))


def _plain(item: finding.Finding) -> dict[str, object]:
    return {'code': item.code, 'severity': item.severity.value,
            'flavor': item.flavor, 'key': item.key, 'message': item.message,
            'advice': item.advice, 'hosts': list(item.hosts)}


def _counts(findings: list[finding.Finding]) -> dict[str, int]:
    return {severity.value: sum(item.severity is severity for item in findings)
            for severity in finding.Severity}


def _flavors(args: argparse.Namespace) -> list[catalogue.Flavor]:
    """Read the flavors of files, and the other ones from the cloud."""
    flavors: list[catalogue.Flavor] = []
    names = []
    for subject in args.subject:
        if _is_file(subject):
            flavors += flavor_files.flavors(
                yaml_file.read(subject, _MAX_BYTES),
                input_file.name(subject))
        else:
            names.append(subject)
    if names:
        flavors += _from_cloud(names, args)
    return flavors


def _is_file(subject: str) -> bool:
    return (subject == input_file.STDIN or os.path.lexists(subject)
            or os.sep in subject or subject.endswith(_FILE_ENDINGS))


def _from_cloud(names: list[str],
                args: argparse.Namespace) -> list[catalogue.Flavor]:
    # The client libraries take half a second to load, which files save.
    from hpcvirt.cloud import flavors as cloud_flavors
    try:
        existing = cloud_flavors.read(cloud_arguments.connect(args))
    except exception.Unreachable as exc:
        raise exception.Unreachable(
            f'{names[0]!r} is no file, and {exc}') from exc
    found = []
    for name in names:
        same = [item.flavor for item in existing
                if name in (item.flavor.name, item.id)]
        if not same:
            raise exception.InvalidInput(
                name, 'is neither a file nor a flavor of the cloud')
        found += same
    return found


def _text(flavors: list[catalogue.Flavor],
          findings: list[finding.Finding]) -> str:
    width = terminal.width() or table.WIDTH
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
    counts = ', '.join(table.counted(count, severity) for severity, count
                       in _counts(findings).items())
    lines.append(f'{table.counted(len(flavors), "flavor")}: {counts}.')
    return printable.lines(lines)

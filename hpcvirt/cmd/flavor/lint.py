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

"""``hpcvirt flavor lint``: check flavors that exist."""

import argparse
import dataclasses
import importlib
import json
import os
import sys
import textwrap

from hpcvirt import exception
from hpcvirt.cmd import fleet_arguments
from hpcvirt.cmd import yaml_file
from hpcvirt.cmd.flavor import apply
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import finding
from hpcvirt.flavors import flavor_files
from hpcvirt.flavors import lint
from hpcvirt.flavors import lint_hosts
from hpcvirt.flavors import profile as profiles

_ABOUT = """\
Check flavors for what Nova refuses, misplaces or wastes, and with --host for
what they strand on real hosts.
"""

_EPILOG = """\
A FILE is a plan of "hpcvirt flavor plan", or the output of "openstack flavor
show" or "openstack flavor list --long", as JSON or YAML. Anything that is no
file and does not look like one is the NAME of a flavor in the cloud. Status
0: no errors; 1: at least one finding is an error; 2: the input cannot be
used.
"""

_MAX_BYTES = 16 * 1024 * 1024
_WIDTH = 100
_FILE_ENDINGS = ('.json', '.yaml', '.yml')


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser('lint', help='check flavors that exist',
                              description=_ABOUT, epilog=_EPILOG)
    parser.add_argument('subject', metavar='FILE|NAME', nargs='+',
                        help='a file of flavors, or a flavor of the cloud')
    parser.add_argument('--host', metavar='PATH', action='append',
                        default=[], help='also hold the flavors against this '
                        'host; may be given more than once')
    parser.add_argument('--profile', metavar='FILE',
                        help='how the hosts are divided, see plan')
    apply.add_cloud(parser)
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='lines for people (the '
                        'default) or a document for programs')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the findings."""
    profile = (profiles.Profile() if args.profile is None
               else fleet_arguments.read_profile(args.profile))
    hosts = fleet_arguments.read_hosts(args.host)
    flavors = _flavors(args)
    found: list[finding.Finding] = []
    for flavor in flavors:
        found += lint.lint(flavor)
        for host in hosts:
            found += lint_hosts.lint(flavor, host, profile)
    if args.format == 'json':
        sys.stdout.write(json.dumps({
            'schema_version': 1, 'flavors': [item.name for item in flavors],
            'findings': [dataclasses.asdict(item) for item in found],
        }, indent=1) + '\n')
    else:
        sys.stdout.write(_text(flavors, found))
    return int(any(item.severity is finding.Severity.ERROR
                   for item in found))


def _flavors(args: argparse.Namespace) -> list[catalogue.Flavor]:
    """Read files, and ask the cloud for the rest."""
    flavors: list[catalogue.Flavor] = []
    names = []
    for subject in args.subject:
        if _is_file(subject):
            flavors += flavor_files.flavors(
                yaml_file.read(subject, _MAX_BYTES), subject)
        else:
            names.append(subject)
    if names:
        flavors += _from_cloud(names, args.os_cloud)
    return flavors


def _is_file(subject: str) -> bool:
    return (os.path.lexists(subject) or os.sep in subject
            or subject.endswith(_FILE_ENDINGS))


def _from_cloud(names: list[str],
                os_cloud: str | None) -> list[catalogue.Flavor]:
    # The client libraries take half a second to load: not for files.
    session = importlib.import_module('hpcvirt.cloud.session')
    cloud = importlib.import_module('hpcvirt.cloud.flavors')
    try:
        existing = cloud.read(session.compute(os_cloud))
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
          found: list[finding.Finding]) -> str:
    lines = []
    for flavor in flavors:
        mine = [item for item in found if item.flavor == flavor.name]
        if mine:
            lines.append(flavor.name)
        for item in mine:
            lines += textwrap.wrap(
                f'{item.severity}: {item.code}: {item.key}: {item.message}. '
                f'Advice: {item.advice}.', _WIDTH, initial_indent='  ',
                subsequent_indent='    ', break_on_hyphens=False)
    counts = ', '.join(
        f'{sum(item.severity is severity for item in found)} {severity}s'
        for severity in finding.Severity)
    lines.append(f'{len(flavors)} flavors: {counts}.')
    return '\n'.join(lines) + '\n'

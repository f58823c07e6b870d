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

"""``hpcvirt flavor plan``: plan flavors for hosts, and their settings."""

import argparse
import json
import sys
from typing import Any

import yaml

from hpcvirt import serialization
from hpcvirt.cmd import fleet_arguments
from hpcvirt.cmd import terminal
from hpcvirt.flavors import alternative
from hpcvirt.flavors import json_document
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner
from hpcvirt.flavors import shell
from hpcvirt.flavors import table

_ABOUT = """\
Divide hosts into guests that tile them, and print the flavors, the number of
instances of each that every host takes, and the settings that the hosts need.
Neither the hosts nor the cloud are changed.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    add_arguments(verbs.add_parser('plan', help='plan flavors for hosts'))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _ABOUT
    parser.epilog = fleet_arguments.EPILOG
    fleet_arguments.add(parser)
    parser.add_argument(
        '--format', choices=('table', 'json', 'yaml', 'shell'),
        default='table',
        help='a table for people (the default), a document for programs, or '
        'openstack commands to paste')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the plan."""
    hosts, profile, part = fleet_arguments.read(args)
    plan = planner.plan(hosts, profile, part)
    sys.stdout.write(_text(plan, alternative.of(plan, part), args.format))
    return 0


def _document(plan: plans.Plan,
              other: alternative.Alternative) -> dict[str, Any]:
    return {**json_document.document(plan),
            'alternative': serialization.to_plain(other)}


def _text(plan: plans.Plan, other: alternative.Alternative,
          form: str) -> str:
    if form == 'json':
        return json.dumps(_document(plan, other), indent=1) + '\n'
    if form == 'yaml':
        return yaml.safe_dump(_document(plan, other), sort_keys=False)
    if form == 'shell':
        return f'# {other.message}\n' + '\n'.join(
            shell.commands(plan)) + '\n'
    return table.table(plan, other, terminal.width())

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

"""The arguments that describe a fleet: its hosts, instances and flavors."""

import argparse
import dataclasses
import os
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt import topology
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import flavor_files
from hpcvirt.fleet import assemble
from hpcvirt.fleet import host_settings
from hpcvirt.fleet import state
from hpcvirt.fleet import usage_file
from hpcvirt.model import host as host_model

EPILOG = """\
A host whose record is broken (a topology that cannot be understood, an
instance on CPUs that the host does not have) is reported as broken and does
not stop the rest.
"""

#: Enough for 100,000 instances.
_MAX_BYTES = 256 * 1024 * 1024


def add(parser: argparse.ArgumentParser) -> None:
    """Add --topology, --usage, --flavors and --format."""
    parser.add_argument(
        '--topology', metavar='NAME=PATH', action='append', required=True,
        help='a host and its topology, which is anything that "hpcvirt '
        'topology show" reads; may be given once for each host')
    parser.add_argument(
        '--usage', metavar='FILE', required=True,
        help='the instances with their hosts, cells, CPUs and pages, as JSON')
    parser.add_argument(
        '--flavors', metavar='FILE', required=True,
        help='the flavors, and what the hosts give to guests: the output of '
        '"hpcvirt flavor plan --format json"')
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='a table for people (the '
                        'default) or a document for programs')


def add_flavor(parser: argparse.ArgumentParser) -> None:
    """Add --flavor."""
    parser.add_argument('--flavor', metavar='NAME', required=True,
                        help='the flavor, one of --flavors')


def chosen(args: argparse.Namespace,
           flavors: Sequence[catalogue.Flavor]) -> catalogue.Flavor:
    """Find the flavor that --flavor names.

    :raises InvalidInput: if it is not among the flavors
    """
    for flavor in flavors:
        if flavor.name == args.flavor:
            return flavor
    raise exception.InvalidInput(
        '--flavor', f'{args.flavor[:64]!r} is not a flavor of '
        f'{input_file.name(args.flavors)}; it has '
        + ', '.join(flavor.name for flavor in flavors[:20]))


def read(args: argparse.Namespace,
         ) -> tuple[state.Fleet, Sequence[catalogue.Flavor]]:
    """Read the fleet and the flavors.

    :raises InvalidInput: for a file or an argument that cannot be used
    """
    where = input_file.name(args.flavors)
    plan = serialization.json_value(
        input_file.content(args.flavors, _MAX_BYTES), where)
    settings = host_settings.read(plan, where)
    flavors = flavor_files.flavors(plan, where)
    instances = usage_file.read(input_file.content(args.usage, _MAX_BYTES),
                                input_file.name(args.usage))
    return assemble.fleet(_topologies(args.topology), settings,
                          instances), flavors


def _topologies(words: Sequence[str]) -> state.Topologies:
    hosts: dict[str, host_model.Host | exception.InvalidInput] = {}
    paths: dict[str, host_model.Host | exception.InvalidInput] = {}
    for word in words:
        name, equals, path = word.partition('=')
        if not equals or not name.strip() or not path:
            raise exception.InvalidInput(
                '--topology', f'{word[:64]!r} is not NAME=PATH')
        if name in hosts:
            raise exception.InvalidInput(
                '--topology', f'names the host {name[:64]!r} twice')
        if path not in paths:
            paths[path] = _topology(path)
        found = paths[path]
        hosts[name] = (found if isinstance(found, exception.InvalidInput)
                       else dataclasses.replace(found, name=name))
    return hosts


def _topology(path: str) -> host_model.Host | exception.InvalidInput:
    """Read a topology; a wrong content is the fault of the host alone."""
    if path != input_file.STDIN:
        try:
            os.stat(path)
        except (OSError, ValueError) as exc:
            raise exception.InvalidInput(
                path, 'cannot be read '
                f'({getattr(exc, "strerror", None) or exc})') from exc
    try:
        return topology.read(path)
    except exception.InvalidInput as exc:
        return exc

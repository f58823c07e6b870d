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

"""The arguments that describe a fleet: its hosts, instances and flavors.

Without ``--topology`` the fleet is read from the cloud, which works on a
controller.
"""

import argparse
import dataclasses
import functools
import os
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt import topology
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import flavor_files
from hpcvirt.fleet import assemble
from hpcvirt.fleet import guest as guests
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
    """Add the options that describe the fleet, and --format."""
    live = parser.add_argument_group(
        'on a controller', 'without --topology, the hosts, instances and '
        'flavors are read from the cloud')
    live.add_argument(
        '--config-file', metavar='FILE', action='append', default=[],
        help='a configuration file of Nova; may be given several times '
        '(without it, /etc/nova/nova.conf)')
    live.add_argument(
        '--config-dir', metavar='FOLDER', action='append', default=[],
        help='a folder with configuration files of Nova; may be given '
        'several times')
    files = parser.add_argument_group('from files')
    files.add_argument(
        '--topology', metavar='NAME=PATH', action='append', default=[],
        help='a host and its topology, which is anything that "hpcvirt '
        'topology show" reads; may be given once for each host')
    files.add_argument(
        '--usage', metavar='FILE',
        help='the instances with their hosts, cells, CPUs and pages, as JSON')
    files.add_argument(
        '--flavors', metavar='FILE',
        help='the flavors, and what the hosts give to guests: the output of '
        '"hpcvirt flavor plan --format json"')
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='a table for people (the '
                        'default) or a document for programs')


def add_flavor(parser: argparse.ArgumentParser,
               required: bool = True) -> None:
    """Add --flavor."""
    parser.add_argument('--flavor', metavar='NAME|FILE', required=required,
                        help='the flavor: one of the cloud or of --flavors, '
                        'or a file with one, such as the output of '
                        '"openstack flavor show -f json"')


def chosen(args: argparse.Namespace,
           flavors: Sequence[catalogue.Flavor]) -> catalogue.Flavor:
    """Find the flavor that --flavor names.

    :raises InvalidInput: if it is neither a flavor nor a file with one
    """
    for flavor in flavors:
        if flavor.name == args.flavor:
            return flavor
    if os.path.exists(args.flavor):
        return _of_file(args.flavor)
    where = (input_file.name(args.flavors) if args.flavors else 'the cloud')
    raise exception.InvalidInput(
        '--flavor', f'{args.flavor[:64]!r} is not a flavor of {where}, nor a '
        'file; there are ' + (', '.join(
            flavor.name for flavor in flavors[:20]) or 'no flavors'))


def _of_file(path: str) -> catalogue.Flavor:
    where = input_file.name(path)
    found = flavor_files.flavors(serialization.json_value(
        input_file.content(path, _MAX_BYTES), where), where)
    if len(found) != 1:
        raise exception.InvalidInput(
            where, f'has {len(found)} flavors; --flavor needs a file with '
            'one, or a name')
    return found[0]


def read(args: argparse.Namespace,
         ) -> tuple[state.Fleet, Sequence[catalogue.Flavor]]:
    """Read the fleet and the flavors.

    :raises InvalidInput: for a file or an argument that cannot be used
    :raises Unreachable: if the cloud cannot be read
    """
    if is_live(args):
        for option in ('usage', 'flavors'):
            if getattr(args, option) is not None:
                raise exception.InvalidInput(
                    f'--{option}', 'needs --topology; without both, the '
                    'cloud is read')
        view = look(args)
        return view.fleet, [flavor for flavor in view.flavors
                            if _is_accepted(flavor)]
    for option in ('usage', 'flavors'):
        if getattr(args, option) is None:
            raise exception.InvalidInput(
                '--topology', f'needs --{option}; without both, the cloud is '
                'read')
    where = input_file.name(args.flavors)
    plan = serialization.json_value(
        input_file.content(args.flavors, _MAX_BYTES), where)
    settings = host_settings.read(plan, where)
    flavors = flavor_files.flavors(plan, where)
    instances = usage_file.read(input_file.content(args.usage, _MAX_BYTES),
                                input_file.name(args.usage))
    return assemble.fleet(_topologies(args.topology), settings,
                          instances), flavors


def _is_accepted(flavor: catalogue.Flavor) -> bool:
    """Whether Nova accepts instances of a flavor of the cloud."""
    try:
        guests.of_flavor(flavor)
    except exception.InvalidInput as exc:
        _say(f'hpcvirt: {exc}; it is left out')
        return False
    return True


@functools.cache
def _say(line: str) -> None:
    """Print a line on standard error, once also if the cloud is read often."""
    output.complain(line)


def is_live(args: argparse.Namespace) -> bool:
    """Whether the fleet is that of the cloud."""
    return not args.topology


def look(args: argparse.Namespace) -> Any:
    """Look at the cloud.

    :returns: a :class:`hpcvirt.nova.controller.view.View`
    :raises InvalidInput: if nova.conf is wrong
    :raises Unreachable: if the cloud cannot be read
    """
    with extras.nova():
        from hpcvirt.nova.controller import settings
        from hpcvirt.nova.controller import view
    settings.load(tuple(args.config_file), tuple(args.config_dir))
    with settings.usable():
        return view.read()


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

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

"""The arguments of ``hpcvirt explain`` for requests to a cloud."""

import argparse
import dataclasses
from typing import Any

from hpcvirt import exception
from hpcvirt.cmd import extras
from hpcvirt.cmd.fleet import arguments
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state
from hpcvirt.fleet import verdict

_OPTIONS = ('image', 'port', 'server')


@dataclasses.dataclass(frozen=True)
class Explained:
    """The verdicts, and from where smaller changes can be looked for.

    :ivar name: what was asked for
    :ivar hosts: those on which a change of the guest might help
    """

    name: str
    verdicts: tuple[verdict.Verdict, ...]
    guest: guests.Guest
    hosts: tuple[state.FleetHost, ...]


def add(parser: argparse.ArgumentParser) -> None:
    """Add --image, --port, --server and --hosts."""
    parser.add_argument('--image', metavar='NAME|UUID',
                        help='an image, of which the properties count; only '
                        'on a controller')
    parser.add_argument('--port', metavar='UUID', action='append',
                        default=[], help='a port of Neutron, which may need '
                        'a PCI device; may be given several times; only on a '
                        'controller')
    parser.add_argument('--server', metavar='UUID',
                        help='say where this instance could be migrated to; '
                        'only on a controller')
    parser.add_argument('--hosts', metavar='LIST',
                        help='explain these hosts only: n1,n2')


def explain(args: argparse.Namespace) -> Explained:
    """Explain what the arguments ask for.

    :raises InvalidInput: for an argument that cannot be used
    :raises Unreachable: if the cloud cannot be read
    """
    if args.server is not None and (
            args.flavor is not None or args.image is not None or args.port):
        raise exception.InvalidInput(
            '--server', 'has its own flavor, image and ports')
    if args.server is None and args.flavor is None:
        raise exception.InvalidInput('--flavor', 'is missing')
    found = _of_cloud(args) if arguments.is_live(args) else _of_files(args)
    if args.hosts is None:
        return found
    wanted = {name.strip() for name in args.hosts.split(',')}
    unknown = wanted - {item.name for item in found.verdicts}
    if unknown:
        raise exception.InvalidInput(
            '--hosts', f'{min(unknown)[:64]!r} is not a host')
    return dataclasses.replace(
        found,
        verdicts=tuple(item for item in found.verdicts
                       if item.name in wanted),
        hosts=tuple(host for host in found.hosts if host.name in wanted))


def _of_files(args: argparse.Namespace) -> Explained:
    for option in _OPTIONS:
        if getattr(args, option):
            raise exception.InvalidInput(
                f'--{option}', 'needs a cloud, and cannot be used with '
                '--topology')
    fleet, flavors = arguments.read(args)
    flavor = arguments.chosen(args, flavors)
    guest = guests.of_flavor(flavor)
    return Explained(flavor.name, verdict.judge(guest, fleet), guest,
                     fleet.hosts)


def _of_cloud(args: argparse.Namespace) -> Explained:
    view = arguments.look(args)
    with extras.nova():
        from hpcvirt.nova.controller import explanation
        from hpcvirt.nova.controller import settings
    with settings.usable():
        found: Any = (
            explanation.of_server(view, args.server) if args.server
            else explanation.of_flavor(
                view, arguments.chosen(args, view.flavors), args.image,
                args.port))
    return Explained(found.name, found.verdicts, found.guest, found.hosts)

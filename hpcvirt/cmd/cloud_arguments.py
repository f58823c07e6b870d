# SPDX-License-Identifier: Apache-2.0

"""The arguments of commands that use a cloud."""

import argparse
import datetime
import getpass
import socket
import typing
from typing import Any

from hpcvirt.model import quarantine as quarantine_model

if typing.TYPE_CHECKING:
    from hpcvirt.cloud import placement
    from hpcvirt.cloud import quarantine


def add(parser: argparse.ArgumentParser) -> None:
    """Add --os-cloud."""
    parser.add_argument('--os-cloud', metavar='NAME',
                        help='an entry of clouds.yaml (default: OS_CLOUD)')
    parser.set_defaults(connect=None)


def add_apply(parser: argparse.ArgumentParser, what: str = 'steps') -> None:
    """Add --os-cloud and --apply.

    :param what: the plural noun for what the command prints
    """
    add(parser)
    parser.add_argument('--apply', action='store_true',
                        help=f'change the cloud; without it the {what} are '
                        'only printed')


def connect(args: argparse.Namespace) -> Any:
    """Create a novaclient for the cloud.

    A program with its own session, such as OpenStackClient, sets
    ``args.connect``, which is called unless --os-cloud names a cloud.

    :raises Unreachable: if the cloud is not configured or refuses access
    """
    if args.connect is not None and args.os_cloud is None:
        return args.connect()
    # The client libraries take half a second to load.
    from hpcvirt.cloud import session
    return session.compute(args.os_cloud)


def connect_placement(args: argparse.Namespace,
                      ) -> 'placement.PlacementClient':
    """Create a client for Placement; see :func:`connect`."""
    from hpcvirt.cloud import placement
    from hpcvirt.cloud import session
    make = getattr(args, 'connect_placement', None)
    return placement.PlacementClient(
        make() if make is not None and args.os_cloud is None
        else session.placement(args.os_cloud))


def connect_quarantine(args: argparse.Namespace) -> 'quarantine.Quarantine':
    """Create a client for the quarantine of hosts; see :func:`connect`."""
    from hpcvirt.cloud import quarantine
    return quarantine.Quarantine(connect(args), connect_placement(args))


def make_hold(holder: str, reason: str,
              since: str | None = None) -> quarantine_model.Hold:
    """Describe a hold by this user, since now or an earlier time."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = 'unknown'
    return quarantine_model.Hold(
        holder, reason, since or datetime.datetime.now(
            datetime.UTC).strftime('%Y-%m-%dT%H:%M:%SZ'),
        f'{user}@{socket.gethostname()}'.replace(' ', '_'))

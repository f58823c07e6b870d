# SPDX-License-Identifier: Apache-2.0

"""The arguments that name a fleet in use: a document, or the live cloud.

Without ``--fleet`` the command must run on a controller, and reads the fleet
from the cloud.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import words
from hpcvirt.cmd import extras
from hpcvirt.cmd import hosts
from hpcvirt.cmd import output
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import assemble
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model

EPILOG = """\
A host with an invalid record is reported as broken and otherwise ignored.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add --fleet and the options of a controller."""
    hosts.add_fleet(parser, ' (default: the live cloud, on a controller)')
    add_live(parser)


def add_live(parser: argparse.ArgumentParser) -> None:
    """Add --config-file."""
    parser.add_argument(
        '--config-file', metavar='PATH', action='append', default=[],
        help='a configuration file of Nova, or a folder of them; may be '
        'repeated (default: /etc/nova/nova.conf)')


def add_flavor(parser: argparse._ActionsContainer) -> None:
    """Add --flavor."""
    parser.add_argument('--flavor', metavar='NAME|FILE',
                        help='a flavor of the fleet, or a file with one '
                        'flavor, such as the output of "openstack flavor show '
                        '-f json"')


def find_flavor(name: str, flavors: Sequence[flavor_model.Flavor],
                fleet: state.Fleet, path: str | None = None,
                option: str = '--flavor') -> flavor_model.Flavor:
    """Return the flavor that an option names.

    :param path: the file of the fleet, for errors; None for the cloud
    :raises InvalidInput: if it is neither a flavor nor a file with one
    """
    for flavor in flavors:
        if flavor.name == name:
            return flavor
    if os.path.exists(name):
        found = hosts.read_flavors(name)
        if len(found) != 1:
            raise exception.InvalidInput(
                name, f'has {len(found)} flavors; {option} needs a file with '
                'a single flavor, or a name')
        return compiled_flavor.complete(found[0], fleet.alias_policies)
    names = [flavor.name for flavor in flavors]
    where = 'the cloud' if path is None else input_file.name(path)
    raise exception.InvalidInput(
        option, f'{name[:64]!r} is not a flavor of {where}, nor a '
        'file; there are ' + (', '.join(names[:20]) or 'no flavors')
        + words.nearest(name, names))


def read(args: argparse.Namespace,
         ) -> tuple[state.Fleet, Sequence[flavor_model.Flavor]]:
    """Read the fleet, and the flavors that Nova accepts.

    :raises InvalidInput: for an invalid file or argument
    :raises Unreachable: if the cloud cannot be read
    """
    if args.fleet is None:
        view = look(args)
        fleet, flavors = view.fleet, view.flavors
    else:
        fleet, flavors = assemble.make_fleet(hosts.read_fleet(args.fleet))
        _warn(fleet)
    return fleet, [flavor for flavor in flavors if _is_accepted(flavor)]


def _warn(fleet: state.Fleet) -> None:
    """Print the warnings about the answer, and count those of the plan."""
    from hpcvirt.flavors import warning
    own = [item for item in fleet.warnings
           if item.code in warning.OF_ANSWERS]
    hosts.warn(own)
    others = len(fleet.warnings) - len(own)
    if others:
        output.warn(
            f'Warning: the plan has {words.count_noun(others, "warning")}; '
            '"hpcvirt flavor plan" with the same --fleet prints '
            f'{"it" if others == 1 else "them"}.')


def _is_accepted(flavor: flavor_model.Flavor) -> bool:
    """Whether Nova accepts instances of a flavor."""
    try:
        compiled_flavor.make(flavor)
    except exception.InvalidInput as exc:
        output.warn(f'hpcvirt: {exc}; it is left out')
        return False
    return True


def show(args: argparse.Namespace, text: str) -> bool:
    """Print a part of the answer at once, which only the format table does.

    :returns: whether it was printed
    """
    shown = args.formatter == 'table' and not args.columns
    if shown:
        sys.stdout.write(text)
        sys.stdout.flush()
    return shown


def look(args: argparse.Namespace) -> Any:
    """Read the live cloud.

    :returns: a :class:`hpcvirt.nova_live.view.View`
    :raises InvalidInput: if nova.conf is invalid
    :raises Unreachable: if the cloud cannot be read
    """
    with extras.nova():
        from hpcvirt.nova_live import settings
        from hpcvirt.nova_live import view
    folders = tuple(filter(os.path.isdir, args.config_file))
    files = tuple(path for path in args.config_file if path not in folders)
    settings.load(files, folders)
    with settings.convert_errors():
        return view.read()

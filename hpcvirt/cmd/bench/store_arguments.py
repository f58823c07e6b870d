# SPDX-License-Identifier: Apache-2.0

"""The arguments that name the store of results."""

import argparse
import typing

from hpcvirt.bench.results import location
from hpcvirt.cmd import extras
from hpcvirt.cmd import output

if typing.TYPE_CHECKING:
    from hpcvirt.bench.results import store


def add(parser: argparse.ArgumentParser) -> None:
    """Add --store and --data."""
    parser.add_argument(
        '--store', metavar='URL',
        help='SQLAlchemy URL of the database of results without its password, '
        'which is read from HPCVIRT_STORE_PASSWORD (default: '
        f'sqlite:///DATA/{location.DATABASE})')
    parser.add_argument(
        '--data', metavar='DIR', default=location.default_directory(),
        help='directory of raw outputs (default: %(default)s)')


def open_store(args: argparse.Namespace) -> 'store.Store':
    """Open the store that the arguments name; create it if it is missing.

    :raises NotInstalled: if a library of the bench extra is missing
    """
    with extras.bench():
        from hpcvirt.bench.results import database
        from hpcvirt.bench.results import store
    return store.Store(args.store and database.parse_argument(args.store),
                       args.data, warn=output.warn)


def open_existing(args: argparse.Namespace) -> 'store.Store | None':
    """Open the store that the arguments name for reading.

    :returns: None if it does not exist
    """
    with extras.bench():
        from hpcvirt.bench.results import database
        from hpcvirt.bench.results import store
    return store.open_existing(
        args.store and database.parse_argument(args.store), args.data,
        output.warn)

# SPDX-License-Identifier: Apache-2.0

"""The arguments that name the store of results.

The database of a site is a setting of the site: $HPCVIRT_STORE is its
SQLAlchemy URL without the password, which is in $HPCVIRT_STORE_PASSWORD.
Without it, the database is a file in the directory of raw outputs.
"""

import argparse
import os
import typing

from hpcvirt import child_environment
from hpcvirt.bench.results import location
from hpcvirt.cmd import extras
from hpcvirt.cmd import output

if typing.TYPE_CHECKING:
    import sqlalchemy

    from hpcvirt.bench.results import store


def find_url() -> str | None:
    """Return the URL of the database of the site; None if there is none."""
    return os.environ.get(child_environment.STORE) or None


def add(parser: argparse.ArgumentParser) -> None:
    """Add --data."""
    parser.add_argument(
        '--data', metavar='DIR', default=location.default_directory(),
        help='directory of results (default: ~/.local/share/hpcvirt)')


def open_store(args: argparse.Namespace) -> 'store.Store':
    """Open the store that the arguments name; create it if it is missing.

    :raises NotInstalled: if a library of the bench extra is missing
    """
    with extras.bench():
        from hpcvirt.bench.results import store
    return store.Store(_parse_url(), args.data, warn=output.warn)


def open_existing(args: argparse.Namespace) -> 'store.Store | None':
    """Open the store that the arguments name for reading.

    :returns: None if it does not exist
    """
    with extras.bench():
        from hpcvirt.bench.results import store
    return store.open_existing(_parse_url(), args.data, output.warn)


def _parse_url() -> 'sqlalchemy.URL | None':
    from hpcvirt.bench.results import database
    url = find_url()
    return None if url is None else database.parse_argument(url)

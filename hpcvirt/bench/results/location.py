# SPDX-License-Identifier: Apache-2.0

"""The directory of results."""

import os
import stat

from hpcvirt import exception

#: The database, in the directory of raw outputs.
DATABASE = 'bench.sqlite'


def default_directory() -> str:
    """Return the directory of raw outputs by the XDG base directory rules.

    By these rules a relative ``XDG_DATA_HOME`` is ignored.
    """
    home = os.environ.get('XDG_DATA_HOME', '')
    if not os.path.isabs(home):
        home = os.path.expanduser('~/.local/share')
    return os.path.join(home, 'hpcvirt')


def make_directory(path: str) -> None:
    """Create a directory that only its owner can enter, if it is missing.

    :raises InvalidInput: if it cannot be created, belongs to a user other than
        the caller and root, or is writable for everybody
    """
    try:
        os.makedirs(path, 0o700, exist_ok=True)
        status = os.stat(path)
    except (OSError, ValueError) as exc:
        what = getattr(exc, 'strerror', None) or str(exc)
        raise exception.InvalidInput(path, what) from exc
    if status.st_uid not in (0, os.geteuid()):
        raise exception.InvalidInput(
            path, f'belongs to another user ({status.st_uid}); give a '
            'directory that belongs to you')
    if status.st_mode & stat.S_IWOTH:
        raise exception.InvalidInput(
            path, 'is writable for everybody; give a directory that only you '
            'can write to')


def locate_lock(data: str, entry_id: str) -> str:
    """Return the path that a process locks which measures a result.

    :param data: directory of raw outputs
    """
    return os.path.join(data, entry_id)

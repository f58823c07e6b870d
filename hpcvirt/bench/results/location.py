# SPDX-License-Identifier: Apache-2.0

"""The directory of results, and the lock of the process that measures one.

A lock file in the directory of raw outputs names the process that measures a
result. Its lock ends with the process, even if that is killed.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import stat
from collections.abc import Iterator

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


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """A process that measures.

    :ivar host: name of the machine that it runs on
    """

    pid: int
    host: str


@contextlib.contextmanager
def measure(data: str, entry_id: str) -> Iterator[None]:
    """Lock a result while the caller measures it.

    :param data: directory of raw outputs
    :raises Unreachable: if another process measures it
    """
    path = _path(data, entry_id)
    try:
        stream = path.open('a+')
    except OSError as exc:
        raise exception.Unreachable(f'{path}: {exc.strerror}') from exc
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            other = process(data, entry_id)
            raise exception.Unreachable(
                f'result {entry_id} is being measured' + (
                    f' by process {other.pid} on {other.host}' if other
                    else '')) from exc
        try:
            stream.truncate(0)
            json.dump({'pid': os.getpid(), 'host': os.uname().nodename},
                      stream)
            stream.flush()
            yield
        finally:
            path.unlink(missing_ok=True)


def process(data: str, entry_id: str) -> Process | None:
    """Return the process that measures a result; None if there is none."""
    try:
        with _path(data, entry_id).open() as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                found = json.load(stream)
                return Process(int(found['pid']), str(found['host']))
    except (OSError, ValueError, TypeError, KeyError):
        # The file is missing, or is just being written.
        return None
    return None


def _path(data: str, entry_id: str) -> pathlib.Path:
    return pathlib.Path(data, f'{entry_id}.lock')

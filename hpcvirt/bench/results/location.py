# SPDX-License-Identifier: Apache-2.0

"""Where results are kept, who may write there, and which process does.

A lock file in the directory of raw outputs names the process that measures a
result. It is locked for as long as the process lives, whatever ends it.
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
    """The directory of raw outputs, by the XDG base directory rules.

    They have a relative path ignored: it would be another one for each
    directory that the command is called in.
    """
    home = os.environ.get('XDG_DATA_HOME', '')
    if not os.path.isabs(home):
        home = os.path.expanduser('~/.local/share')
    return os.path.join(home, 'hpcvirt')


def make_directory(path: str) -> None:
    """Make a directory that only its owner can enter, if it is missing.

    :raises InvalidInput: if it cannot be made, or if another user than root
        owns it, or if everybody may write to it
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
            'directory of your own')
    if status.st_mode & stat.S_IWOTH:
        raise exception.InvalidInput(
            path, 'is a directory that everybody may write to; give one of '
            'your own')


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """A process that measures.

    :ivar host: name of the machine that it runs on
    """

    pid: int
    host: str


@contextlib.contextmanager
def measure(data: str, entry_id: str) -> Iterator[None]:
    """Measure a result, alone.

    :param data: directory of raw outputs
    :raises Unreachable: if another process does
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
    """Find the process that measures a result; None if there is none."""
    try:
        with _path(data, entry_id).open() as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                found = json.load(stream)
                return Process(int(found['pid']), str(found['host']))
    except (OSError, ValueError, TypeError, KeyError):
        # There is no such file, or it is being written.
        return None
    return None


def _path(data: str, entry_id: str) -> pathlib.Path:
    return pathlib.Path(data, f'{entry_id}.lock')

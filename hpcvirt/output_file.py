# SPDX-License-Identifier: Apache-2.0

"""Write a file in one step, or append lines to it.

Readers of a file that is written in one step see the former content or this
one. A draft is written beside the file, and renamed
(:mod:`hpcvirt.rooted_files`). The folder is used by its descriptor, and no
link in it is followed.
"""

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Iterator
from typing import IO

from hpcvirt import exception
from hpcvirt import rooted_files

_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def write(path: str, content: bytes) -> None:
    """Write a file that a user has named, and that all may read.

    :raises InvalidInput: if that fails; what was there before is kept
    """
    try:
        replace(pathlib.Path(path), content, 0o644)
    except OSError as exc:
        raise exception.InvalidInput(
            path, f'cannot be written ({exc.strerror or exc})') from exc


def replace(path: pathlib.Path, content: bytes, mode: int = 0o600, *,
            owner: tuple[int, int] | None = None) -> None:
    """Write a file, or replace it; it is on the disk when this returns.

    :param path: the file, in a folder that exists
    :param mode: the permissions of the file, whatever the umask
    :param owner: the user and the group of the file; None for the caller
    :raises OSError: if that fails; what was there before is kept
    """
    folder = os.open(path.parent, _FOLDER)
    try:
        rooted_files.replace_in(folder, path.name, content, mode, owner)
    finally:
        os.close(folder)


@contextlib.contextmanager
def appending(path: str, mode: int) -> Iterator[IO[bytes]]:
    """Open a file to which several processes append; create it if missing.

    It is locked meanwhile, and what is appended is on the disk at the end.

    :param mode: the permissions of a new file, less the umask
    :raises InvalidInput: if it cannot be opened or written
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _FLAGS,
                         mode)
        with os.fdopen(handle, 'ab') as stream:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield stream
            stream.flush()
            os.fsync(handle)
    except OSError as exc:
        raise exception.InvalidInput(
            path, f'cannot be written ({exc.strerror or exc})') from exc


def append(stream: IO[bytes], lines: bytes) -> None:
    """Append whole lines; close one that a killed process left unfinished."""
    size = os.fstat(stream.fileno()).st_size
    if size and os.pread(stream.fileno(), 1, size - 1) != b'\n':
        lines = b'\n' + lines
    stream.write(lines)

# SPDX-License-Identifier: Apache-2.0

"""Write a file in one step, or append lines to it.

Readers of a file that is written in one step see the former content or this
one. A draft is written beside the file, and renamed. The folder is used by its
descriptor, and no link in it is followed. Drafts of runs that were killed are
removed; a lock tells them from those of runs that still write.
"""

import contextlib
import fcntl
import os
import pathlib
import stat
from collections.abc import Iterator
from typing import IO

from hpcvirt import exception

_DRAFT = '.hpcvirt-'
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
        replace_in(folder, path.name, content, mode, owner)
    finally:
        os.close(folder)


def replace_in(folder: int, name: str, content: bytes, mode: int = 0o600,
               owner: tuple[int, int] | None = None) -> None:
    """Write a file of a folder that is open; see :func:`replace`.

    :param folder: its descriptor
    """
    _remove_left_over(folder)
    draft, handle = _make_draft(folder)
    try:
        with os.fdopen(handle, 'wb') as stream:
            stream.write(content)
            stream.flush()
            if owner is not None:
                os.fchown(handle, *owner)
            os.fchmod(handle, mode)
            os.fsync(handle)
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(draft, dir_fd=folder)
        raise


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


def _make_draft(folder: int) -> tuple[str, int]:
    while True:
        draft = _DRAFT + os.urandom(8).hex()
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _FLAGS,
                         0o600, dir_fd=folder)
        # A file system without locks keeps its drafts.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return draft, handle
        # Another run took it for left over, before it was locked.
        os.close(handle)


def _remove_left_over(folder: int) -> None:
    for name in os.listdir(folder):
        if not name.startswith(_DRAFT):
            continue
        # What is locked, or of another user, is left to its writer.
        with contextlib.suppress(OSError):
            handle = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=folder)
            try:
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name, dir_fd=folder)
            finally:
                os.close(handle)

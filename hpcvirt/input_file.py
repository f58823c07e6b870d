# SPDX-License-Identifier: Apache-2.0

"""Read files that the user names, without ever waiting for a device.

``-`` is standard input. A shell's ``<(command)`` and ``/dev/stdin`` name a
pipe that the process has open already, and are read too. Other FIFOs,
devices and sockets are refused.
"""

import contextlib
import gzip
import io
import os
import stat
import sys
import typing
import zlib
from collections.abc import Iterator

from hpcvirt import exception

#: The path of standard input.
STDIN = '-'

#: The first bytes of a file that gzip has compressed.
_GZIP = b'\x1f\x8b'

_KINDS = (
    (stat.S_ISDIR, 'a directory'),
    (stat.S_ISFIFO, 'a FIFO'),
    (stat.S_ISSOCK, 'a socket'),
    (stat.S_ISCHR, 'a character device'),
    (stat.S_ISBLK, 'a block device'),
)


class Damaged(exception.InvalidInput):
    """A compressed file that can only be read up to a point."""


def name(path: str | os.PathLike[str]) -> str:
    """Return the name of a path in messages."""
    if path == STDIN:
        return 'standard input'
    return os.fspath(path) or repr(path)


def content(path: str | os.PathLike[str], most: int,
            where: str | None = None) -> bytes:
    """Read a whole file, or standard input.

    :param most: the largest size in bytes that is accepted
    :param where: what to name in the error, the path if None
    :raises InvalidInput: if it is not a file, cannot be read or is too large
    """
    where = where or name(path)
    data = beginning(path, most + 1, where)
    if len(data) > most:
        raise exception.InvalidInput(
            where, f'is larger than {most // 1024} KiB, the most that is '
            'read')
    return data


def beginning(path: str | os.PathLike[str], most: int,
              where: str | None = None) -> bytes:
    """Read no more than the first bytes of a file, or of standard input.

    :raises InvalidInput: if it is not a file or cannot be read
    """
    where = where or name(path)
    with _opened(path, where) as stream:
        data: bytes | None = stream.read(most)
        if data is None:
            raise exception.InvalidInput(
                where, 'is a file of the kernel that has no end')
        return data


def lines(path: str | os.PathLike[str], longest: int) -> Iterator[bytes]:
    """Read a file of any size, or standard input, line by line.

    A file that gzip has compressed is expanded.

    :param longest: the most bytes of a line; longer ones come in pieces
    :raises InvalidInput: if it is not a file or cannot be read; Damaged,
        after the lines that can be read, if compressed data cannot
    """
    where = name(path)
    with _opened(path, where) as stream:
        source = (gzip.GzipFile(fileobj=stream)
                  if stream.peek(2)[:2] == _GZIP else stream)
        try:
            while line := source.readline(longest):
                yield line
        except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
            raise Damaged(where, 'is compressed, and can be read only in '
                          f'part ({exc})') from exc


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str],
            where: str) -> Iterator[io.BufferedReader]:
    try:
        if path == STDIN:
            with _stdin(where) as stream:
                yield stream
            return
        # Check before opening: opening a FIFO can block, and opening a
        # device (a watchdog, a tape) has effects.
        status = os.stat(path)
        is_pipe = stat.S_ISFIFO(status.st_mode) and os.path.realpath(
            path).startswith(f'/proc/{os.getpid()}/fd/pipe:')
        if not is_pipe:
            _require_file(status, where)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC
                             | (0 if is_pipe else os.O_NONBLOCK))
        with os.fdopen(descriptor, 'rb') as stream:
            if not is_pipe:
                _require_file(os.fstat(descriptor), where)
            yield stream
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        reason = getattr(exc, 'strerror', None) or exc
        raise exception.InvalidInput(
            where, f'cannot be read ({reason})') from exc


def _stdin(where: str) -> io.BufferedReader:
    if sys.stdin is None:
        raise exception.InvalidInput(where, 'is closed')
    if sys.stdin.closed:
        raise exception.InvalidInput(where, 'can be read only once')
    return typing.cast(io.BufferedReader, sys.stdin.buffer)


def _require_file(status: os.stat_result, where: str) -> None:
    for is_kind, kind in _KINDS:
        if is_kind(status.st_mode):
            raise exception.InvalidInput(where, f'is {kind}, not a file')

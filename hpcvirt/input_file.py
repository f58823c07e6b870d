# SPDX-License-Identifier: Apache-2.0

"""Read files that somebody else may have written.

A file is regular, and what is read of it has a limit, in bytes or lines and
in time; that holds for files of the kernel too. Nothing waits for a device.

``-`` is standard input. A shell's ``<(command)`` and ``/dev/stdin`` name a
pipe that the process has open already, and are read too. Other FIFOs,
devices and sockets are refused.
"""

import contextlib
import gzip
import io
import math
import os
import stat
import sys
import time
import typing
import zlib
from collections.abc import Collection
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import rooted_files

#: The path of standard input.
STDIN = '-'

#: The first bytes of a file that gzip has compressed.
_GZIP = b'\x1f\x8b'

#: The most lines of a file that is read line by line.
MAX_LINES = 100_000_000

#: The longest time that a whole file takes, or one that is compressed. Pipes
#: may take longer.
MAX_SECONDS = 60.0

#: The most lines and bytes of a file that gzip has compressed: a megabyte of
#: it may stand for a gigabyte, or for as many lines.
MAX_EXPANDED_LINES = 10_000_000
MAX_EXPANDED_BYTES = 4 << 30

_PIECE = 1 << 20

class Damaged(exception.InvalidInput):
    """A compressed file that can only be read up to a point."""


def name(path: str | os.PathLike[str]) -> str:
    """Return the name of a path in messages."""
    if path == STDIN:
        return 'standard input'
    return os.fspath(path) or repr(path)


def content(path: str | os.PathLike[str], most: int,
            where: str | None = None, *,
            owners: Collection[int] | None = None,
            seconds: float = MAX_SECONDS) -> bytes:
    """Read a whole file, or standard input.

    :param most: the largest size in bytes that is accepted
    :param where: what to name in the error, the path if None
    :param owners: the users of whom the file may be; None for any
    :param seconds: the longest time that reading a file takes
    :raises InvalidInput: if it is not a file, is of another user, cannot be
        read, or is too large or too slow
    """
    where = where or name(path)
    with open_file(path, where) as stream:
        if (owners is not None
                and os.fstat(stream.fileno()).st_uid not in owners):
            raise exception.InvalidInput(where, 'belongs to another user')
        return read_whole(stream, most, where, seconds)


def find_content(path: str | os.PathLike[str], most: int,
                 where: str | None = None, *,
                 owners: Collection[int] | None = None) -> bytes | None:
    """Read a whole file; return None if there is none; see :func:`content`.

    There is none either of a process that has ended.
    """
    try:
        return content(path, most, where, owners=owners)
    except exception.InvalidInput as exc:
        if isinstance(exc.__cause__, (FileNotFoundError, NotADirectoryError,
                                      ProcessLookupError)):
            return None
        raise


def beginning(path: str | os.PathLike[str], most: int,
              where: str | None = None) -> bytes:
    """Read no more than the first bytes of a file, or of standard input.

    :raises InvalidInput: if it is not a file or cannot be read
    """
    where = where or name(path)
    with open_file(path, where) as stream:
        return _read(stream, most, where, MAX_SECONDS)


def read_whole(stream: io.BufferedReader, most: int, where: str,
               seconds: float = MAX_SECONDS) -> bytes:
    """Read all of a file that :func:`open_file` opened; see :func:`content`.

    :raises InvalidInput: if it cannot be read, or is too large or too slow
    """
    data = _read(stream, most + 1, where, seconds)
    if len(data) > most:
        raise exception.InvalidInput(
            where, f'is larger than {most // 1024} KiB, the most that is '
            'read')
    return data


def _read(stream: io.BufferedReader, most: int, where: str,
          seconds: float) -> bytes:
    pieces = []
    end = time.monotonic() + seconds
    while most > 0:
        piece: bytes | None = stream.read(min(most, _PIECE))
        if piece is None:
            raise exception.InvalidInput(
                where, 'is a file of the kernel that has no end')
        if not piece:
            break
        if time.monotonic() > end and _is_file(stream):
            raise exception.InvalidInput(
                where, f'takes longer than {seconds:g} s to read')
        pieces.append(piece)
        most -= len(piece)
    return b''.join(pieces)


def lines(path: str | os.PathLike[str], longest: int,
          most: int = MAX_LINES) -> Iterator[bytes]:
    """Read a file of any size, or standard input, line by line.

    A file that gzip has compressed is expanded.

    :param longest: the most bytes of a line; longer ones come in pieces
    :param most: the most lines
    :raises InvalidInput: if it is not a file, cannot be read or has more
        lines; Damaged, after the lines that can be read, if compressed data
        is damaged, expands to too much or takes too long
    """
    where = name(path)
    with open_file(path, where) as stream:
        if stream.peek(2)[:2] == _GZIP:
            yield from _expanded_lines(stream, longest, most, where)
            return
        for _ in range(most):
            if not (line := stream.readline(longest)):
                return
            yield line
        if stream.readline(1):
            raise _make_too_long(where, most)


def _make_too_long(where: str, most: int) -> exception.InvalidInput:
    return exception.InvalidInput(
        where, f'has more than {most:,} lines, the most that are read')


def _expanded_lines(stream: io.BufferedReader, longest: int, most: int,
                    where: str) -> Iterator[bytes]:
    try:
        with io.BufferedReader(_Expanded(stream), _PIECE) as source:
            for _ in range(min(most, MAX_EXPANDED_LINES)):
                if not (line := source.readline(longest)):
                    return
                yield line
            if source.readline(1):
                if most <= MAX_EXPANDED_LINES:
                    raise _make_too_long(where, most)
                raise _TooMuch(f'it has more than {MAX_EXPANDED_LINES:,} '
                               'lines')
    except _TooMuch as exc:
        raise Damaged(where, f'is compressed, and is read only in part ({exc}'
                      '; expand it to read all of it)') from exc
    except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
        raise Damaged(where, 'is compressed, and can be read only in part '
                      f'({exc})') from exc


class _TooMuch(Exception):
    """What compressed data expands to is beyond a limit."""


class _Expanded(io.RawIOBase):
    """What gzip has compressed, in pieces, with limits."""

    def __init__(self, stream: io.BufferedReader) -> None:
        super().__init__()
        self._source = gzip.GzipFile(fileobj=stream)
        self._left = MAX_EXPANDED_BYTES
        # A person who pipes data into the program can end it.
        self._end = (time.monotonic() + MAX_SECONDS if _is_file(stream)
                     else math.inf)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: typing.Any) -> int:
        """Expand the next piece.

        :raises _TooMuch: if it is beyond a limit
        """
        # read1() returns what comes before a damaged place; read() does not.
        piece = self._source.read1(len(buffer))
        self._left -= len(piece)
        if self._left < 0:
            raise _TooMuch(f'it has more than {MAX_EXPANDED_BYTES >> 20:,} '
                           'MiB')
        if time.monotonic() > self._end:
            raise _TooMuch(f'it takes longer than {MAX_SECONDS:g} s')
        buffer[:len(piece)] = piece
        return len(piece)


@contextlib.contextmanager
def open_file(path: str | os.PathLike[str], where: str, *,
              folder: int | None = None,
              follow: bool = True) -> Iterator[io.BufferedReader]:
    """Open a file, or standard input, without waiting.

    :param folder: the descriptor of the folder that a relative path is in
    :param follow: whether the file may be a symbolic link
    :raises InvalidInput: if it is not a file or cannot be opened
    """
    try:
        if path == STDIN:
            with _stdin(where) as stream:
                yield stream
            return
        # Check before opening: opening a FIFO can block, and opening a
        # device (a watchdog, a tape) has effects.
        status = os.stat(path, dir_fd=folder, follow_symlinks=follow)
        is_pipe = stat.S_ISFIFO(status.st_mode) and os.path.realpath(
            path).startswith(f'/proc/{os.getpid()}/fd/pipe:')
        if not is_pipe:
            _require_file(status, where)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC
                             | (0 if is_pipe else os.O_NONBLOCK)
                             | (0 if follow else os.O_NOFOLLOW),
                             dir_fd=folder)
        with os.fdopen(descriptor, 'rb') as stream:
            if not is_pipe:
                _require_file(os.fstat(descriptor), where)
            yield stream
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        reason = getattr(exc, 'strerror', None) or exc
        raise exception.InvalidInput(
            where, f'cannot be read ({reason})') from exc


def _is_file(stream: io.BufferedReader) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # standard input that a program has replaced
        return False


def _stdin(where: str) -> io.BufferedReader:
    if sys.stdin is None:
        raise exception.InvalidInput(where, 'is closed')
    if sys.stdin.closed:
        raise exception.InvalidInput(where, 'can be read only once')
    return typing.cast(io.BufferedReader, sys.stdin.buffer)


def _require_file(status: os.stat_result, where: str) -> None:
    kind = rooted_files.describe_kind(status.st_mode)
    if kind is not None:
        raise exception.InvalidInput(where, f'is {kind}, not a file')

# SPDX-License-Identifier: Apache-2.0

"""Keep the lines of logs, which are rotated away, that are about refusals.

The file is itself a log that ``hpcvirt explain`` reads. Lines are only added,
each once.
"""

import os
import stat
from collections.abc import Iterable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file
from hpcvirt.cmd import output
from hpcvirt.fleet import log_reading

_FIRST = b'# The refusals that "hpcvirt explain --history" keeps.\n'

#: Longer lines are cut; those of the filter are much shorter.
_LONGEST_LINE = 64 * 1024


def lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a log up to a damaged place.

    Long lines are cut, and their rest is dropped, so that text which a user
    of the cloud chose cannot become the beginning of a line.

    :raises InvalidInput: if it cannot be read
    """
    begins = True
    try:
        for piece in input_file.lines(path, _LONGEST_LINE):
            if begins:
                yield piece
            begins = piece.endswith(b'\n')
    except input_file.Damaged as exc:
        output.complain(f'hpcvirt: {exc}')


def add(path: str, logs: Iterable[bytes]) -> int:
    """Add the lines of logs that the history does not have.

    :returns: the number of lines that cannot be read
    :raises InvalidInput: if a log cannot be read, or the file is no history of
        the caller, or cannot be written; nothing is added then
    """
    fresh: list[bytes] = []

    def keep(line: bytes) -> None:
        line = line.rstrip(b'\n')
        if hash(line) not in known:
            known.add(hash(line))
            fresh.append(line + b'\n')

    with output_file.appending(path, 0o640) as stream:
        status = os.fstat(stream.fileno())
        before = lines(path) if status.st_size else iter((_FIRST,))
        if (not stat.S_ISREG(status.st_mode)
                or status.st_uid not in (0, os.geteuid())
                or next(before) != _FIRST):
            raise exception.InvalidInput(
                path, 'is no history of refusals that belongs to you')
        known = {hash(line.rstrip(b'\n')) for line in before}
        unreadable = log_reading.read(logs, None, keep=keep).unreadable
        if not status.st_size:
            fresh.insert(0, _FIRST)
        output_file.append(stream, b''.join(fresh))
    return unreadable

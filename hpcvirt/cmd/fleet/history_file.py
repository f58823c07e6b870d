# SPDX-License-Identifier: Apache-2.0

"""Keep the lines of logs, which are rotated away, that are about refusals.

The file is itself a log that ``hpcvirt explain`` reads. Lines are only added,
each once.
"""

import codecs
from collections.abc import Iterable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file
from hpcvirt.cmd import output
from hpcvirt.fleet import log_reading

_FIRST = b'# The refusals that "hpcvirt explain --history" keeps.'

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: Longer lines are cut; those of the filter are much shorter.
_LONGEST_LINE = 64 * 1024


def lines(*paths: str) -> Iterator[bytes]:
    """Yield the lines of logs, without their ends, up to a damaged place.

    Long lines are cut, and their rest is dropped, so that text which a user
    of the cloud chose cannot become the beginning of a line.

    :raises InvalidInput: if a log cannot be read
    """
    for path in paths:
        begins = is_first = True
        try:
            for piece in input_file.lines(path, _LONGEST_LINE):
                if is_first and piece.startswith(_UTF_16):
                    raise exception.InvalidInput(
                        input_file.name(path), 'is in UTF-16, as PowerShell '
                        'writes it: convert it with iconv -f UTF-16 -t UTF-8')
                is_first = False
                if begins:
                    yield piece.rstrip(b'\n')
                begins = piece.endswith(b'\n')
        except input_file.Damaged as exc:
            output.complain(f'hpcvirt: {exc}')


def add(path: str, logs: Iterable[bytes]) -> log_reading.Found:
    """Add the lines of logs that the history does not have.

    :returns: the number of lines that cannot be read, and nothing else
    :raises InvalidInput: if a log cannot be read, or the file is no history
        or cannot be written; nothing is added then
    """
    found = log_reading.Found()
    with output_file.appending(path, 0o640) as stream:
        before = lines(path)
        first = next(before, None)
        if first not in (None, _FIRST):
            raise exception.InvalidInput(path, 'is no history of refusals')
        known = set(map(hash, before))
        fresh = [_FIRST] if first is None else []
        for texts, _ in log_reading.records(logs, found):
            for line in texts:
                if hash(line) not in known:
                    known.add(hash(line))
                    fresh.append(line)
        output_file.append(stream, b''.join(line + b'\n' for line in fresh))
    return found

# SPDX-License-Identifier: Apache-2.0

"""Read a capture, which ``hpcvirt host capture`` made of a host.

A capture is a .tar or .tar.gz of files below ``proc``, ``sys`` and ``etc``,
and of the ``output`` of programs (:mod:`hpcvirt.topology.tool_output`).
Its first file, ``hpcvirt-capture``, lists the patterns of files that were
looked for. If a pattern matches the name of a missing file, the file was
missing on the host; otherwise, it is unknown. A line that begins with ``!``
names a file or a folder that could not be read. ``etc/**`` stands for all
files below ``etc``, so that the list for a copy of whole folders can be
written by hand.
"""

import contextlib
import fnmatch
import os
import pathlib
import tempfile
import zlib
from collections.abc import Iterable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.topology import archive

#: The first file of a capture, and the list in a copy.
LIST = 'hpcvirt-capture'

_UNREADABLE = 'could not be read when it was captured'

_Parts = dict[str, '_Parts']


#: More than the patterns of the script.
_MAX_PATTERNS = 1000


class CaptureList:
    """The patterns of files that were looked for, and unreadable files.

    :raises InvalidInput: if there are too many patterns
    """

    def __init__(self, text: str) -> None:
        lines = set(map(str.strip, text.splitlines()))
        self._hidden = {line[1:].rstrip('/') for line in lines
                        if line.startswith('!')}
        self._incomplete = {path.rpartition('/')[0] for path in self._hidden}
        patterns = [line for line in lines if line and line[0] not in '!#']
        if len(patterns) > _MAX_PATTERNS:
            raise exception.InvalidInput(
                LIST, f'has more than {_MAX_PATTERNS} patterns')
        #: The parts of all patterns, as a tree.
        self._parts: _Parts = {}
        for pattern in patterns:
            parts = self._parts
            for part in pattern.rstrip('/').split('/'):
                parts = parts.setdefault(part, {})

    def find_gap(self, name: str, is_folder: bool = False) -> str | None:
        """Say why it is unknown whether a file existed.

        A search for a/b/c shows whether a/b exists.

        :param is_folder: whether to ask for all files of a folder
        :returns: the predicate of a sentence; None if it is known
        """
        path, known = '', [self._parts]
        for part in name.split('/'):
            path = f'{path}/{part}' if path else part
            if path in self._hidden:
                return _UNREADABLE
            if not any('**' in parts for parts in known):
                known = _match(part, known)
        if is_folder:
            if name in self._incomplete:
                return _UNREADABLE
            known = [parts for parts in known
                     if any('*' in pattern for pattern in parts)]
        return None if known else 'was not captured'


def _match(part: str, known: Iterable[_Parts]) -> list[_Parts]:
    """Return what is below the patterns that match a part of a name."""
    below: list[_Parts] = []
    for parts in known:
        below += [each for pattern, each in parts.items()
                  if fnmatch.fnmatchcase(part, pattern)]
    return below


def is_capture(path: str) -> bool:
    """Whether a file is a capture of ``hpcvirt host capture``."""
    head = input_file.beginning(path, 4096)
    if head.startswith(b'\x1f\x8b'):
        with contextlib.suppress(zlib.error):
            head = zlib.decompressobj(31).decompress(head, 512)
    return head.startswith(LIST.encode() + b'\0')


@contextlib.contextmanager
def open_root(path: str) -> Iterator[pathlib.Path]:
    """Open the root of a host; a capture is unpacked for the time.

    :param path: a folder or a capture
    :raises InvalidInput: if a capture is damaged
    """
    if not os.path.isfile(path) or not is_capture(path):
        yield pathlib.Path(path)
        return
    with tempfile.TemporaryDirectory(prefix='hpcvirt-') as folder:
        for name, data in archive.read(path, archive.find_kind(path) or '',
                                       ('',)):
            target = pathlib.Path(folder, name)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            except (OSError, ValueError) as exc:
                raise exception.InvalidInput(
                    path, f'cannot be unpacked ({exc})') from exc
        try:
            yield pathlib.Path(folder)
        except exception.InvalidInput as exc:
            raise exception.InvalidInput(
                exc.where.replace(folder, path), exc.what) from exc

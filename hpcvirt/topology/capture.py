# SPDX-License-Identifier: Apache-2.0

"""What ``hpcvirt host capture`` took of a host, and what it looked for.

A capture is a .tar or .tar.gz of files below ``proc``, ``sys`` and ``etc``.
Its first file, ``hpcvirt-capture``, lists the patterns of what was looked for.
A file that is missing was missing on the host if a pattern matches its name,
and is not known otherwise. A line that begins with ``!`` names a file or a
folder that could not be read. ``etc/**`` stands for all files below ``etc``,
so that the list of a copy of whole folders can be written by hand.
"""

import contextlib
import os
import pathlib
import re
import tempfile
import zlib
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.topology import archive

#: The first file of a capture, and the list in a copy.
LIST = 'hpcvirt-capture'


class CaptureList:
    """What was looked for when a host was captured."""

    def __init__(self, text: str) -> None:
        # Nothing matches this.
        patterns, folders, hidden = ['(?!)'], ['(?!)'], ['(?!)']
        for line in filter(None, map(str.strip, text.splitlines())):
            if line.startswith('!'):
                hidden.append(f'{re.escape(line[1:])}(/.*)?')
            elif not line.startswith('#'):
                parts = line.rstrip('/').split('/')
                known = [_make_regex(part) for part in parts]
                # The search for a/b/c shows whether a/b is there.
                patterns.append('(/'.join(known) + ')?' * (len(parts) - 1))
                folders += ['/'.join(known[:place]) + (
                    '(/.*)?' if part == '**' else '')
                    for place, part in enumerate(parts) if '*' in part]
        self._patterns, self._folders, self._hidden = (
            re.compile('|'.join(items))
            for items in (patterns, folders, hidden))

    def find_gap(self, name: str, is_folder: bool = False) -> str | None:
        """Say why the absence of a file, or of more files, is not known.

        :param is_folder: whether the content of a folder is meant
        :returns: the predicate of a sentence, None if it is known
        """
        if self._hidden.fullmatch(name):
            return 'could not be read when it was captured'
        known = self._folders if is_folder else self._patterns
        return None if known.fullmatch(name) else 'was not captured'


def _make_regex(part: str) -> str:
    if part == '**':
        return '.*'
    found = re.escape(part).replace(r'\*', '[^/]*')
    return found.replace(r'\[0\-9\]', '[0-9]')


def is_capture(path: str) -> bool:
    """Whether a file is what ``hpcvirt host capture`` writes."""
    head = input_file.beginning(path, 4096)
    if head.startswith(b'\x1f\x8b'):
        with contextlib.suppress(zlib.error):
            head = zlib.decompressobj(31).decompress(head, 512)
    return head.startswith(LIST.encode() + b'\0')


@contextlib.contextmanager
def open_root(path: str) -> Iterator[pathlib.Path]:
    """Open the root of a host: a folder, or a capture, which is unpacked.

    :raises InvalidInput: if it is neither, or a capture is damaged
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

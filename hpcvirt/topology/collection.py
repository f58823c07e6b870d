# SPDX-License-Identifier: Apache-2.0

"""Read the topologies of many hosts: a pattern, a folder or an archive.

A path is one of these:

* what :func:`hpcvirt.topology.read` reads: a file, the root of a sysfs;
* a pattern such as ``rack1/*.json``;
* a folder; its files with the suffix .json or .xml are read;
* an archive (.tar, .tar.gz or .zip); such files are read at any depth, and
  nothing is unpacked to a disk.

The files are read in the order of their names.
"""

import contextlib
import glob
import gzip
import io
import lzma
import os
import pathlib
import struct
import tarfile
import typing
import zipfile
import zlib
from collections.abc import Callable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import words
from hpcvirt.model import host as host_model
from hpcvirt.topology import document
from hpcvirt.topology import source as sources

T = typing.TypeVar('T')

#: The most bytes of an archive, both as it is and expanded.
MAX_BYTES = 512 * 1024 * 1024

#: The most bytes of the list of files that a .zip ends with.
MAX_LIST_BYTES = 16 * 1024 * 1024

#: The most files of a folder, a pattern or an archive.
MAX_FILES = 100_000

_SUFFIXES = ('.json', '.xml')

#: What the libraries raise for an archive that is damaged or encrypted.
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
            OSError, EOFError, RuntimeError, NotImplementedError, ValueError,
            LookupError, ArithmeticError, struct.error)

#: The topology of a host, or the reason why it cannot be used.
Topology = host_model.Host | exception.InvalidInput


def read(path: str,
         source: str = 'auto') -> Iterator[tuple[str, Topology]]:
    """Read the hosts of a path, each with the name of its file.

    A file with a wrong content concerns its own host only.

    :raises InvalidInput: if the path cannot be read, or has no hosts
    """
    if path == input_file.STDIN or os.path.isfile(path):
        kind = _archive_kind(path)
        if kind is not None:
            yield from _read_archive(path, kind, source)
            return
    elif source == 'auto' and os.path.isdir(path) and not _is_sysfs(path):
        names = [f'{path.rstrip("/")}/{name}'
                 for name in _ask(os.listdir, path)
                 if name.endswith(_SUFFIXES) and not name.startswith('.')]
        yield from _read_files(path, names, source)
        return
    elif glob.has_magic(path) and not os.path.lexists(path):
        yield from _read_files(path, glob.glob(path), source)
        return
    else:
        _ask(os.stat, path)
    yield path, _read_one(path, source)


def _read_files(path: str, names: list[str],
                source: str) -> Iterator[tuple[str, Topology]]:
    if not names:
        raise exception.InvalidInput(
            path, 'has no topology: no file *.json or *.xml'
            if os.path.isdir(path) else 'matches no file')
    if len(names) > MAX_FILES:
        raise exception.InvalidInput(
            path, f'has more than {MAX_FILES} files')
    for name in sorted(names, key=words.natural_order):
        yield name, _read_one(name, source)


def _read_one(path: str, source: str) -> Topology:
    try:
        return sources.read(path, source)
    except exception.InvalidInput as exc:
        return exc


def _ask(system: Callable[[str], T], path: str) -> T:
    """Ask the system about a path, which is not the fault of a host."""
    try:
        return system(path)
    except (OSError, ValueError) as exc:
        raise exception.InvalidInput(
            input_file.name(path), 'cannot be read '
            f'({getattr(exc, "strerror", None) or exc})') from exc


def _is_sysfs(path: str) -> bool:
    return any(os.path.isdir(f'{path}/{below}')
               for below in ('sys', 'devices/system'))


def _archive_kind(path: str) -> str | None:
    if path == input_file.STDIN:
        return None
    head = input_file.beginning(path, 512)
    if head.startswith(b'PK\x03\x04'):
        return 'zip'
    if head.startswith(b'\x1f\x8b'):
        return 'tar.gz'
    return 'tar' if head[257:262] == b'ustar' else None


def _read_archive(path: str, kind: str,
                  source: str) -> Iterator[tuple[str, Topology]]:
    read_members = _read_zip if kind == 'zip' else _read_tar
    try:
        members = dict(read_members(path, kind))
    except _DAMAGED as exc:
        raise exception.InvalidInput(
            path, f'cannot be read as an archive ({exc})') from exc
    if not members:
        raise exception.InvalidInput(
            path, 'has no topology: no file *.json or *.xml')
    for name in sorted(members, key=words.natural_order):
        where = f'{path}:{name}'
        try:
            found: Topology = sources.read_document(
                document.TopologyDocument(where, members[name]), source)
        except exception.InvalidInput as exc:
            found = exc
        yield where, found


def _read_tar(path: str, kind: str) -> Iterator[tuple[str, bytes]]:
    with contextlib.ExitStack() as stack:
        stream: typing.Any = stack.enter_context(
            input_file.open_file(path, path))
        if kind == 'tar.gz':
            stream = stack.enter_context(gzip.GzipFile(fileobj=stream))
        archive = stack.enter_context(tarfile.open(
            fileobj=_BoundedStream(stream, path), mode='r|'))
        for number, member in enumerate(archive):
            if _is_wanted(path, number, member.name, member.isreg(),
                          member.size):
                content = archive.extractfile(member)
                data = content.read() if content else b''
                if len(data) != member.size:
                    raise tarfile.ReadError('unexpected end of data')
                yield member.name, data


def _read_zip(path: str, _: str) -> Iterator[tuple[str, bytes]]:
    left = MAX_BYTES
    with (input_file.open_file(path, path) as stream,
          zipfile.ZipFile(_ZipStream(stream.raw, path)) as archive):
        if os.fstat(stream.fileno()).st_size > MAX_BYTES:
            raise _make_too_large(path)
        for number, member in enumerate(archive.infolist()):
            if not _is_wanted(path, number, member.filename,
                              not member.filename.endswith('/'),
                              member.file_size):
                continue
            with archive.open(member) as content:
                data = content.read(document.MAX_BYTES + 1)
            left -= len(data)
            if left < 0:
                raise _make_too_large(path)
            yield member.filename, data


def _is_wanted(path: str, number: int, name: str, is_file: bool,
               size: int) -> bool:
    """Whether a member of an archive is to be read.

    :raises InvalidInput: if it is too large, or names a place outside
    """
    if number >= MAX_FILES:
        raise exception.InvalidInput(
            path, f'has more than {MAX_FILES} files')
    parts = pathlib.PurePosixPath(name).parts
    if name.startswith('/') or '..' in parts:
        raise exception.InvalidInput(
            path, f'has a file {name[:64]!r}, which is outside of it')
    if size > MAX_BYTES:  # tarfile would look for the end of it, for hours.
        raise _make_too_large(path)
    if not is_file or not name.endswith(_SUFFIXES) or any(
            part.startswith(('.', '__MACOSX')) for part in parts):
        return False
    if size > document.MAX_BYTES:
        raise exception.InvalidInput(
            f'{path}:{name}', f'is larger than {document.MAX_BYTES // 1024} '
            'KiB, the most that is read')
    return True


def _make_too_large(path: str) -> exception.InvalidInput:
    return exception.InvalidInput(
        path, f'has more than {MAX_BYTES >> 20} MiB, the most that is read')


class _ZipStream(io.BufferedReader):
    """A .zip of which zipfile reads the list of files, in one piece."""

    def __init__(self, raw: typing.Any, path: str) -> None:
        super().__init__(raw)
        self._path = path

    def read(self, size: int | None = -1) -> bytes:
        """Read some bytes."""
        if size is not None and size > MAX_LIST_BYTES:
            raise exception.InvalidInput(
                self._path, f'has a list of files of more than '
                f'{MAX_LIST_BYTES >> 20} MiB, the most that is read')
        return super().read(size)


class _BoundedStream(io.RawIOBase):
    """A stream that ends with an error where an archive becomes too large."""

    def __init__(self, stream: typing.Any, path: str) -> None:
        super().__init__()
        self._stream = stream
        self._path = path
        self._left = MAX_BYTES

    def read(self, size: int = -1) -> bytes:
        """Read some bytes."""
        data: bytes = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise _make_too_large(self._path)
        return data

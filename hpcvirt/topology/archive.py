# SPDX-License-Identifier: Apache-2.0

"""Read the files of an archive: .tar, .tar.gz or .zip.

Nothing is unpacked to a disk, and links are ignored. The number of files and
the bytes that are read are limited. An archive has to have its end: without
it, a copy that was cut between two files would pass for the whole.
"""

import contextlib
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
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.topology import document

#: The most bytes of an archive, compressed and expanded.
MAX_BYTES = 512 * 1024 * 1024

#: The most bytes of the list of files at the end of a .zip.
MAX_LIST_BYTES = 16 * 1024 * 1024

#: The most files of a folder, a pattern or an archive.
MAX_FILES = 100_000

_PIECE = 1 << 20

#: The exceptions of the libraries for a damaged or encrypted archive.
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
            OSError, EOFError, RuntimeError, NotImplementedError, ValueError,
            LookupError, ArithmeticError, struct.error)


def find_kind(path: str) -> str | None:
    """Return the kind of an archive: zip, tar.gz or tar; None for others."""
    if path == input_file.STDIN:
        return None
    head = input_file.beginning(path, 512)
    if head.startswith(b'PK\x03\x04'):
        return 'zip'
    if head.startswith(b'\x1f\x8b'):
        return 'tar.gz'
    return 'tar' if head[257:262] == b'ustar' else None


def read(path: str, kind: str,
         suffixes: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Read files of an archive; hidden files are ignored.

    :param kind: the kind that :func:`find_kind` returns
    :param suffixes: the suffixes of the files to read
    :returns: the name and the content of each file
    :raises InvalidInput: if the archive is damaged or too large, or names a
        file outside of it
    """
    try:
        yield from (_read_zip(path, suffixes) if kind == 'zip'
                    else _read_tar(path, kind, suffixes))
    except _DAMAGED as exc:
        raise exception.InvalidInput(
            path, f'cannot be read as an archive ({exc})') from exc


def _read_tar(path: str, kind: str,
              suffixes: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    with contextlib.ExitStack() as stack:
        stream: typing.Any = stack.enter_context(
            input_file.open_file(path, path))
        if kind == 'tar.gz':
            stream = stack.enter_context(gzip.GzipFile(fileobj=stream))
        stream = _BoundedStream(stream, path)
        archive = stack.enter_context(tarfile.open(
            fileobj=stream, mode='r|', tarinfo=_Member))
        for number, member in enumerate(archive):
            if _is_wanted(path, number, member.name, member.isreg(),
                          member.size, suffixes):
                content = archive.extractfile(member)
                data = content.read() if content else b''
                if len(data) != member.size:
                    raise tarfile.ReadError('unexpected end of data')
                yield member.name, data
        # The end of the data that gzip has compressed, with their checksum,
        # comes after the end of the archive.
        while rest := stream.read(_PIECE):
            if rest.strip(b'\0'):
                raise tarfile.ReadError('something follows its end')


def _read_zip(path: str,
              suffixes: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    left = MAX_BYTES
    with (input_file.open_file(path, path) as stream,
          zipfile.ZipFile(_ZipStream(stream.raw, path)) as archive):
        if os.fstat(stream.fileno()).st_size > MAX_BYTES:
            raise _make_too_large(path)
        for number, member in enumerate(archive.infolist()):
            if not _is_wanted(path, number, member.filename,
                              not member.filename.endswith('/'),
                              member.file_size, suffixes):
                continue
            with archive.open(member) as content:
                data = content.read(document.MAX_BYTES + 1)
            left -= len(data)
            if left < 0:
                raise _make_too_large(path)
            yield member.filename, data


def _is_wanted(path: str, number: int, name: str, is_file: bool,
               size: int, suffixes: tuple[str, ...]) -> bool:
    """Whether to read a member of an archive.

    :raises InvalidInput: if it is too large, or outside of the archive
    """
    if number >= MAX_FILES:
        raise exception.InvalidInput(
            path, f'has more than {MAX_FILES} files')
    parts = pathlib.PurePosixPath(name).parts
    if name.startswith('/') or '..' in parts:
        raise exception.InvalidInput(
            path, f'has a file {name[:64]!r}, which is outside of it')
    if size > MAX_BYTES:  # tarfile would search for its end for hours.
        raise _make_too_large(path)
    if not is_file or not name.endswith(suffixes) or any(
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


class _Member(tarfile.TarInfo):
    """A member of a tar file that ends with a block of zeros.

    tarfile takes whatever is no member, and the end of the data too, for the
    end of the archive.
    """

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> typing.Self:
        """Read the next member.

        :raises EOFHeaderError: if a block of zeros follows
        :raises ReadError: if no header follows, or one that is cut off
        """
        # Not frombuf, which newer releases of Python do not call here.
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as exc:
            raise tarfile.ReadError(
                f'it is damaged or cut off: {exc}') from exc


class _ZipStream(io.BufferedReader):
    """A .zip file whose list of files, which is read at once, is limited."""

    def __init__(self, raw: typing.Any, path: str) -> None:
        super().__init__(raw)
        self._path = path

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > MAX_LIST_BYTES:
            raise exception.InvalidInput(
                self._path, f'has a list of files of more than '
                f'{MAX_LIST_BYTES >> 20} MiB, the most that is read')
        return super().read(size)


class _BoundedStream(io.RawIOBase):
    """A stream that raises an error when an archive becomes too large."""

    def __init__(self, stream: typing.Any, path: str) -> None:
        super().__init__()
        self._stream = stream
        self._path = path
        self._left = MAX_BYTES

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise _make_too_large(self._path)
        return data

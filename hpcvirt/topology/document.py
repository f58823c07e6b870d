# SPDX-License-Identifier: Apache-2.0

"""Read documents and numbers of untrusted origin.

A file that cannot be used (an empty file, an archive, XML with entities)
raises :class:`hpcvirt.exception.InvalidInput`. The readers check what it says
about the machine.
"""

import functools
import pathlib
from typing import Any
from xml.etree import ElementTree

import defusedxml
import defusedxml.ElementTree

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import printable

#: The hwloc XML of a machine with 2048 hardware threads is about 12 MB.
MAX_BYTES = 64 * 1024 * 1024

#: hwloc nests one element per level of the machine, rarely more than 20.
MAX_DEPTH = 64

#: The hwloc XML of a machine with 2048 hardware threads has 40,000.
MAX_ELEMENTS = 250_000

#: The first bytes of gzip, bzip2, xz, zstd and zip.
_ARCHIVES = (b'\x1f\x8b', b'BZh', b'\xfd7zXZ', b'\x28\xb5\x2f\xfd',
             b'PK\x03\x04')


class TopologyDocument:
    """A file that describes a machine.

    :param data: its content; None to read the path
    :ivar stem: its name without suffix, in printable characters
    :raises InvalidInput: if it cannot be read, is empty or is an archive
    """

    def __init__(self, path: str, data: bytes | None = None) -> None:
        self.path = input_file.name(path)
        self.stem = ('stdin' if path == input_file.STDIN
                     else printable.one_line(pathlib.Path(path).stem))
        self.data = (input_file.content(path, MAX_BYTES) if data is None
                     else data)
        if not self.data.strip():
            raise exception.InvalidInput(self.path, 'is empty')
        if self.data.startswith(_ARCHIVES) or self.data[257:262] == b'ustar':
            raise exception.InvalidInput(
                self.path, 'is an archive; unpack it and name a file in it')

    def begins_with(self, characters: str) -> bool:
        """Whether it begins with one of the characters, even in UTF-16."""
        head = self.data[:64].lstrip(b'\xef\xbb\xbf\xff\xfe').lstrip()
        first = head.lstrip(b'\0')[:1].decode('ascii', 'replace')
        return bool(first) and first in characters

    @functools.cached_property
    def root(self) -> ElementTree.Element:
        """The root element of XML.

        :raises InvalidInput: if it is not well-formed
        """
        return xml_root(self.data, self.path)


class _Guard:
    """Refuses an internal DTD, deep nesting and too many elements.

    ``<!DOCTYPE topology SYSTEM "hwloc2.dtd">`` is accepted, because every
    hwloc file has it; the file that it names is never opened.
    """

    def __init__(self, parser: Any, where: str) -> None:
        self._where = where
        self._depth = 0
        self._elements = 0
        self._start = parser.StartElementHandler
        self._end = parser.EndElementHandler
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.StartDoctypeDeclHandler = self.doctype

    def start(self, tag: str, attributes: list[str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._depth > MAX_DEPTH or self._elements > MAX_ELEMENTS:
            raise exception.InvalidInput(
                self._where, f'is nested deeper than {MAX_DEPTH} or has more '
                f'than {MAX_ELEMENTS} elements')
        self._start(tag, attributes)

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._end(tag)

    def doctype(self, name: str, *ids: object) -> None:
        has_internal_subset = ids[-1]
        if has_internal_subset or name != 'topology':
            raise exception.InvalidInput(
                self._where, 'has a document type definition, '
                'which is refused')


def xml_root(data: bytes, where: str) -> ElementTree.Element:
    """Parse XML without entities, and without opening other files.

    :returns: the root element
    :raises InvalidInput: if it is not well-formed, or is too deep or too large
    """
    try:
        parser = defusedxml.ElementTree.DefusedXMLParser(
            forbid_dtd=False, forbid_entities=True, forbid_external=True)
        _Guard(parser.parser, where)
        parser.feed(data)
        root: ElementTree.Element = parser.close()
        return root
    except defusedxml.DefusedXmlException as exc:
        raise exception.InvalidInput(
            where, 'declares an XML entity, which is refused') from exc
    except (ElementTree.ParseError, LookupError, ValueError) as exc:
        # LookupError and ValueError: an encoding unknown to Python.
        raise exception.InvalidInput(
            where, f'is not well-formed XML ({exc})') from exc


def whole(text: str | None, where: str, what: str, most: int,
          least: int = 0) -> int:
    """Read a whole decimal number.

    :param what: the name of the number, for errors
    :raises InvalidInput: if it is missing, not a number or out of bounds
    """
    if text is None:
        raise exception.InvalidInput(where, f'{what} is missing')
    bare = text.strip()
    digits = bare.removeprefix('-')
    if not (digits.isascii() and digits.isdigit()):
        raise exception.InvalidInput(
            where, f'{what} is {bare[:40]!r}, not a whole number')
    if len(digits) > 30 or not least <= int(bare) <= most:
        raise exception.InvalidInput(
            where, f'{what} is {bare[:40]}, which is not within '
            f'{least} to {most}')
    return int(bare)


def hexadecimal(text: str, where: str, what: str, digits: int) -> int:
    """Read a hexadecimal number, with or without ``0x``.

    :param digits: the largest number of digits
    :raises InvalidInput: if it is not such a number
    """
    bare = text.strip().lower().removeprefix('0x')
    if not 1 <= len(bare) <= digits or set(bare) - set('0123456789abcdef'):
        raise exception.InvalidInput(
            where, f'{what} is {text.strip()[:40]!r}, not a hexadecimal '
            f'number of {digits} digits')
    return int(bare, 16)

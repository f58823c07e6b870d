# SPDX-License-Identifier: Apache-2.0

"""Read the topologies of many hosts: a pattern, a folder or an archive.

A path is one of these:

* a path for :func:`hpcvirt.topology.read`: a file, the root of a sysfs, or a
  capture;
* a pattern such as ``rack1/*.json``;
* a folder, whose files with the suffix .json or .xml are read;
* an archive (.tar, .tar.gz or .zip), whose files with these suffixes are read
  at any depth; nothing is unpacked to a disk.

The files are read in the order of their names.
"""

import glob
import os
import typing
from collections.abc import Callable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import words
from hpcvirt.model import host as host_model
from hpcvirt.topology import archive
from hpcvirt.topology import capture
from hpcvirt.topology import document
from hpcvirt.topology import source as sources

T = typing.TypeVar('T')

_SUFFIXES = ('.json', '.xml')

#: The topology of a host, or the error of its file.
Topology = host_model.Host | exception.InvalidInput


def read(path: str,
         source: str = 'auto') -> Iterator[tuple[str, Topology]]:
    """Read the hosts of a path, each with the name of its file.

    An invalid file does not affect other hosts: its error is yielded.

    :raises InvalidInput: if the path cannot be read, or has no hosts
    """
    if path == input_file.STDIN or os.path.isfile(path):
        kind = archive.find_kind(path)
        if kind is not None and not capture.is_capture(path):
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
    if len(names) > archive.MAX_FILES:
        raise exception.InvalidInput(
            path, f'has more than {archive.MAX_FILES} files')
    for name in sorted(names, key=words.natural_order):
        yield name, _read_one(name, source)


def _read_one(path: str, source: str) -> Topology:
    try:
        return sources.read(path, source)
    except exception.InvalidInput as exc:
        return exc


def _ask(function: Callable[[str], T], path: str) -> T:
    """Call a function of the system, and name the path in its error."""
    try:
        return function(path)
    except (OSError, ValueError) as exc:
        raise exception.InvalidInput(
            input_file.name(path), 'cannot be read '
            f'({getattr(exc, "strerror", None) or exc})') from exc


def _is_sysfs(path: str) -> bool:
    return any(os.path.isdir(f'{path}/{below}')
               for below in ('sys', 'devices/system'))


def _read_archive(path: str, kind: str,
                  source: str) -> Iterator[tuple[str, Topology]]:
    members = dict(archive.read(path, kind, _SUFFIXES))
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

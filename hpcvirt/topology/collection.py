# SPDX-License-Identifier: Apache-2.0

"""Read topologies: of one machine, of a pattern, a folder or an archive.

A path is one of these:

* a file, the root of a sysfs, or a capture of it, for one machine
  (:func:`read_source`);
* a pattern such as ``rack1/*.json``;
* a folder, whose files with the suffix .json or .xml are read;
* an archive (.tar, .tar.gz or .zip), whose files with these suffixes are read
  at any depth; nothing is unpacked to a disk.

The content decides how a path is read, never the name. Without a path, the
running machine is read. A directory or a capture is read as the root of a
sysfs, and any other file by the first source that recognizes it.

To add a source, write a module with its reader, and add one line to
``_SOURCES``. The module of a source is loaded when a file of it is read.
"""

import dataclasses
import glob
import os
import re
import typing
from collections.abc import Callable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import words
from hpcvirt.model import host
from hpcvirt.model import host as host_model
from hpcvirt.topology import archive
from hpcvirt.topology import capture
from hpcvirt.topology import document
from hpcvirt.topology import pasted


@dataclasses.dataclass(frozen=True, slots=True)
class _Source:
    """A kind of file that describes a machine.

    :ivar name: the name of the source, for messages
    :ivar form: the form of its files, for messages
    :ivar recognizes: whether a file has this form
    :ivar read: reads the machine, or raises InvalidInput
    """

    name: str
    form: str
    recognizes: Callable[[document.TopologyDocument], bool]
    read: Callable[[document.TopologyDocument], host.Host]


_INSPECTED = re.compile(rb'"(inventory|numa_topology|plugin_data)"\s*:')


def _xml(name: str, root: str,
         read: Callable[[document.TopologyDocument], host.Host]) -> _Source:
    """Describe a source of XML files, which its root element identifies."""
    return _Source(
        name, f'XML of <{root}>',
        lambda file: file.begins_with('<') and file.root.tag == root, read)


def _read_libvirt(file: document.TopologyDocument) -> host.Host:
    from hpcvirt.topology import libvirt
    return libvirt.read(file.root, file.path, file.stem)


def _read_hwloc(file: document.TopologyDocument) -> host.Host:
    from hpcvirt.topology import hwloc
    return hwloc.read(file.root, file.path, file.stem)


def _is_ironic(file: document.TopologyDocument) -> bool:
    """Tell whether JSON is the result of an inspection, not a snapshot."""
    return bool(file.begins_with('{') and _INSPECTED.search(file.data)
                and b'"schema_version"' not in file.data)


def _read_ironic(file: document.TopologyDocument) -> host.Host:
    from hpcvirt.topology import ironic
    return ironic.read(file.data, file.path, file.stem)


def _read_snapshot(file: document.TopologyDocument) -> host.Host:
    from hpcvirt.topology import snapshot
    return snapshot.read(file.data, file.path)


#: The sources that are files, in the order in which they are asked.
_SOURCES = (
    _xml('libvirt', 'capabilities', _read_libvirt),
    _xml('hwloc', 'topology', _read_hwloc),
    _Source('ironic', 'JSON with an inventory', _is_ironic, _read_ironic),
    _Source('snapshot', 'JSON', lambda file: file.begins_with('{['),
            _read_snapshot),
)


def read_source(path: str | None = None) -> host.Host:
    """Read one machine.

    :param path: a file, or the root directory (or the ``sys`` directory) of
        another machine, or a capture of it; None reads the running machine
    :raises InvalidInput: if there is no complete and consistent topology
    """
    if path is None or _is_root(path):
        from hpcvirt.topology import sysfs
        with capture.open_root(path or '/') as root:
            return sysfs.read(root)
    return read_document(document.TopologyDocument(path))


def read_document(file: document.TopologyDocument) -> host.Host:
    """Read one machine from a file.

    :raises InvalidInput: if it has no complete and consistent topology
    """
    # A prompt that is pasted with an output may begin as JSON does.
    tool = None if file.begins_with('<') else pasted.find_tool(file.data)
    if tool is not None:
        raise exception.InvalidInput(file.path, pasted.explain(tool))
    for candidate in _SOURCES:
        if candidate.recognizes(file):
            return candidate.read(file)
    found = (f'is XML of <{file.root.tag[:40]}>' if file.begins_with('<')
             else 'has an unknown form')
    forms = ', '.join(f'{known.form} ({known.name})' for known in _SOURCES)
    raise exception.InvalidInput(
        file.path, f'{found}; expected one of: {forms}')


def _is_root(path: str) -> bool:
    try:
        return os.path.isdir(path) or (
            os.path.isfile(path) and capture.is_capture(path))
    except ValueError:  # a NUL in the path
        return False


T = typing.TypeVar('T')

_SUFFIXES = ('.json', '.xml')

#: The topology of a host, or the error of its file.
Topology = host_model.Host | exception.InvalidInput


def read(path: str) -> Iterator[tuple[str, Topology]]:
    """Read the hosts of a path, each with the name of its file.

    An invalid file does not affect other hosts: its error is yielded.

    :raises InvalidInput: if the path cannot be read, or has no hosts
    """
    if path == input_file.STDIN or os.path.isfile(path):
        kind = archive.find_kind(path)
        if kind is not None and not capture.is_capture(path):
            yield from _read_archive(path, kind)
            return
    elif os.path.isdir(path) and not _is_sysfs(path):
        names = [f'{path.rstrip("/")}/{name}'
                 for name in _ask(os.listdir, path)
                 if name.endswith(_SUFFIXES) and not name.startswith('.')]
        yield from _read_files(path, names)
        return
    elif glob.has_magic(path) and not os.path.lexists(path):
        yield from _read_files(path, glob.glob(path))
        return
    else:
        _ask(os.stat, path)
    yield path, _read_one(path)


def _read_files(path: str,
                names: list[str]) -> Iterator[tuple[str, Topology]]:
    if not names:
        raise exception.InvalidInput(
            path, 'has no topology: no file *.json or *.xml'
            if os.path.isdir(path) else 'matches no file')
    if len(names) > archive.MAX_FILES:
        raise exception.InvalidInput(
            path, f'has more than {archive.MAX_FILES} files')
    for name in sorted(names, key=words.natural_order):
        yield name, _read_one(name)


def _read_one(path: str) -> Topology:
    try:
        return read_source(path)
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


def _read_archive(path: str,
                  kind: str) -> Iterator[tuple[str, Topology]]:
    members = dict(archive.read(path, kind, _SUFFIXES))
    if not members:
        raise exception.InvalidInput(
            path, 'has no topology: no file *.json or *.xml')
    for name in sorted(members, key=words.natural_order):
        where = f'{path}:{name}'
        try:
            found: Topology = read_document(
                document.TopologyDocument(where, members[name]))
        except exception.InvalidInput as exc:
            found = exc
        yield where, found

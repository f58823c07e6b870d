# SPDX-License-Identifier: Apache-2.0

"""Choose the source that reads a topology.

``auto`` decides by the content, never by the name. Without a path it reads
the running machine. A directory or a capture is read as the root of a sysfs,
and any other file by the first source that recognizes it.

To add a source, write a module with its reader, and add one line to
``_SOURCES``. The module of a source is loaded when a file of it is read.
"""

import dataclasses
import os
import re
from collections.abc import Callable

from hpcvirt import exception
from hpcvirt.model import host
from hpcvirt.topology import capture
from hpcvirt.topology import document


@dataclasses.dataclass(frozen=True, slots=True)
class _Source:
    """A kind of file that describes a machine.

    :ivar name: the value of ``--source``
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


#: The sources that are files, in the order in which ``auto`` asks them.
_SOURCES = (
    _xml('libvirt', 'capabilities', _read_libvirt),
    _xml('hwloc', 'topology', _read_hwloc),
    _Source('ironic', 'JSON with an inventory', _is_ironic, _read_ironic),
    _Source('snapshot', 'JSON', lambda file: file.begins_with('{['),
            _read_snapshot),
)

#: The values of ``--source``.
SOURCES = ('auto', 'sysfs', *(source.name for source in _SOURCES))


def read(path: str | None = None, source: str = 'auto') -> host.Host:
    """Read one machine.

    :param path: a file, or the root directory (or the ``sys`` directory) of
        another machine, or a capture of it; None reads the running machine
    :param source: one of ``SOURCES``
    :raises InvalidInput: if there is no complete and consistent topology
    """
    if source not in SOURCES:
        raise exception.InvalidInput(
            '--source', f'{source!r} is not one of {", ".join(SOURCES)}')
    if source == 'sysfs' or (source == 'auto' and _is_root(path)):
        from hpcvirt.topology import sysfs
        with capture.open_root(path or '/') as root:
            return sysfs.read(root)
    if path is None:
        raise exception.InvalidInput(
            f'--source {source}', 'needs the PATH of a file')
    return read_document(document.TopologyDocument(path), source)


def read_document(file: document.TopologyDocument,
                  source: str = 'auto') -> host.Host:
    """Read one machine from a file.

    :raises InvalidInput: if it has no complete and consistent topology
    """
    for candidate in _SOURCES:
        if source == candidate.name or (
                source == 'auto' and candidate.recognizes(file)):
            return candidate.read(file)
    found = (f'is XML of <{file.root.tag[:40]}>' if file.begins_with('<')
             else 'has an unknown form')
    forms = ', '.join(f'{known.form} ({known.name})' for known in _SOURCES)
    raise exception.InvalidInput(
        file.path, f'{found}; expected one of: {forms}')


def _is_root(path: str | None) -> bool:
    try:
        return path is None or os.path.isdir(path) or (
            os.path.isfile(path) and capture.is_capture(path))
    except ValueError:  # a NUL in the path
        return False

# SPDX-License-Identifier: Apache-2.0

"""Choose the source that reads a topology.

``auto`` decides by the content, never by the name. Without a path it reads
the running machine. A directory or a capture is read as the root of a sysfs,
and any other file by the first source that recognizes it.

To add a source, write a module with its reader, and add one line to
``_SOURCES``.
"""

import dataclasses
import os
from collections.abc import Callable
from xml.etree import ElementTree

from hpcvirt import exception
from hpcvirt.model import host
from hpcvirt.topology import capture
from hpcvirt.topology import document
from hpcvirt.topology import hwloc
from hpcvirt.topology import ironic
from hpcvirt.topology import libvirt
from hpcvirt.topology import pasted
from hpcvirt.topology import snapshot
from hpcvirt.topology import sysfs


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


def _xml(name: str, root: str,
         read: Callable[[ElementTree.Element, str, str], host.Host],
         ) -> _Source:
    """Describe a source of XML files, which its root element identifies."""
    return _Source(
        name, f'XML of <{root}>',
        lambda file: file.begins_with('<') and file.root.tag == root,
        lambda file: read(file.root, file.path, file.stem))


#: The sources that are files, in the order in which ``auto`` asks them.
_SOURCES = (
    _xml('libvirt', 'capabilities', libvirt.read),
    _xml('hwloc', 'topology', hwloc.read),
    _Source('ironic', 'JSON with an inventory',
            lambda file: file.begins_with('{') and ironic.recognizes(
                file.data),
            lambda file: ironic.read(file.data, file.path, file.stem)),
    _Source('snapshot', 'JSON', lambda file: file.begins_with('{['),
            lambda file: snapshot.read(file.data, file.path)),
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
    # A prompt that is pasted with an output may begin as JSON does.
    tool = None if file.begins_with('<') else pasted.find_tool(file.data)
    if tool is not None:
        raise exception.InvalidInput(file.path, pasted.explain(tool))
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

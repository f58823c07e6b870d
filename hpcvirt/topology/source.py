# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Pick the reader for what the user named.

``auto`` looks at the content, never at the name: no path is the machine this
runs on, a directory is a root with a sysfs in it, XML is told apart by its
root element, and what begins with ``{`` is a snapshot.
"""

import os
import pathlib

from hpcvirt import exception
from hpcvirt.model import host
from hpcvirt.topology import document
from hpcvirt.topology import hwloc
from hpcvirt.topology import libvirt
from hpcvirt.topology import snapshot
from hpcvirt.topology import sysfs

SOURCES = ('auto', 'sysfs', 'libvirt', 'hwloc', 'snapshot')

#: What gzip, bzip2, xz, zstd and zip begin with.
_ARCHIVES = (b'\x1f\x8b', b'BZh', b'\xfd7zXZ', b'\x28\xb5\x2f\xfd',
             b'PK\x03\x04')

_XML_READERS = {'libvirt': libvirt.read, 'hwloc': hwloc.read}
_XML_ROOTS = {'capabilities': 'libvirt', 'topology': 'hwloc'}


def read(path: str | None = None, source: str = 'auto') -> host.Host:
    """Read one machine.

    :param path: a file, or the root directory (or the ``sys`` directory) of
        another machine; None is the machine this runs on
    :param source: one of ``SOURCES``
    :raises InvalidInput: if there is no complete and consistent topology
    """
    if source not in SOURCES:
        raise exception.InvalidInput(
            '--source', f'{source!r} is not one of {", ".join(SOURCES)}')
    if source == 'sysfs' or (source == 'auto' and _is_directory(path)):
        return sysfs.read(pathlib.Path(path or '/'))
    if path is None:
        raise exception.InvalidInput(
            f'--source {source}', 'needs the PATH of a file')
    data = document.content(path)
    if not data.strip():
        raise exception.InvalidInput(path, 'is empty')
    if data.startswith(_ARCHIVES) or data[257:262] == b'ustar':
        raise exception.InvalidInput(
            path, 'is an archive; unpack it and name what is in it')
    if source == 'snapshot' or (source == 'auto' and _begins(data, b'{[')):
        return snapshot.read(data, path)
    if source == 'auto' and not _begins(data, b'<'):
        raise exception.InvalidInput(
            path, 'is neither XML (libvirt, hwloc) nor JSON (a snapshot)')
    root = document.xml_root(data, path)
    if source == 'auto':
        if root.tag not in _XML_ROOTS:
            raise exception.InvalidInput(
                path, f'the root element is <{root.tag[:40]}>, neither '
                '<capabilities> (libvirt) nor <topology> (hwloc)')
        source = _XML_ROOTS[root.tag]
    name = exception.one_line(pathlib.Path(path).stem)
    return _XML_READERS[source](root, path, name)


def _is_directory(path: str | None) -> bool:
    try:
        return path is None or os.path.isdir(path)
    except ValueError:  # a NUL in the path
        return False


def _begins(data: bytes, marks: bytes) -> bool:
    """Look at the first character, of UTF-16 XML, too."""
    head = data[:64].lstrip(b'\xef\xbb\xbf\xff\xfe').lstrip()
    return head.lstrip(b'\0')[:1] in {bytes([mark]) for mark in marks}

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

``auto`` looks at the content, never at the name: a file that begins with
``{`` is a snapshot.
"""

from hpcvirt import exception
from hpcvirt.model import host
from hpcvirt.topology import document
from hpcvirt.topology import snapshot

SOURCES = ('auto', 'sysfs', 'libvirt', 'hwloc', 'snapshot')


def read(path: str | None = None, source: str = 'auto') -> host.Host:
    """Read one machine.

    :param path: a file or directory; None is the machine this runs on
    :param source: one of ``SOURCES``
    :raises InvalidInput: if there is no complete and consistent topology
    """
    if path is None:
        raise exception.InvalidInput('PATH', 'is needed')
    data = document.content(path)
    if source == 'snapshot' or data.lstrip()[:1] == b'{':
        return snapshot.read(data, path)
    raise exception.InvalidInput(path, 'is not a snapshot')

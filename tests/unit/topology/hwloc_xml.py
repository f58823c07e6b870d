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

"""Small documents in hwloc's XML, and a test case that reads them."""

import unittest

from hpcvirt import exception
from hpcvirt.model import host as host_model
from hpcvirt.topology import document
from hpcvirt.topology import hwloc

GIB = 2 ** 30


def read(xml: str | bytes) -> host_model.Host:
    data = xml.encode() if isinstance(xml, str) else xml
    return hwloc.read(document.xml_root(data, 'lstopo.xml'), 'lstopo.xml',
                      'lstopo')


def pus(*cpus: int) -> str:
    return ''.join(f'<object type="Core" os_index="{cpu}"><object type="PU" '
                   f'os_index="{cpu}"/></object>' for cpu in cpus)


def node(number: int, cpuset: int, more: str = '', inside: str = '',
         ) -> str:
    return (f'<object type="NUMANode" os_index="{number}" '
            f'cpuset="{cpuset:#x}" local_memory="{GIB}" {more}>{inside}'
            '</object>')


def machine(*inside: str, attributes: str = '', after: str = '') -> str:
    return (f'<topology version="2.0"><object type="Machine" {attributes}>'
            f'{"".join(inside)}</object>{after}</topology>')


def group(*inside: str) -> str:
    return f'<object type="Group">{"".join(inside)}</object>'


class Case(unittest.TestCase):
    def refused(self, xml: str | bytes, pattern: str) -> None:
        with self.assertRaisesRegex(exception.InvalidInput,
                                    f'lstopo.xml.*{pattern}'):
            read(xml)

    def cells(self, xml: str) -> dict[int, tuple[set[int], int]]:
        return {cell.id: (set(cell.cpus), cell.memory_mib)
                for cell in read(xml).cells}

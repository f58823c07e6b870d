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

from tests.unit.topology import hwloc_xml

machine = hwloc_xml.machine
node = hwloc_xml.node
pus = hwloc_xml.pus
read = hwloc_xml.read


class UsableCPUsTest(hwloc_xml.Case):
    """CPUs that are offline, or that lstopo must not use."""

    def test_offline_and_forbidden_cpus_are_left_out(self) -> None:
        for attributes in ('cpuset="0x3" complete_cpuset="0x7"',
                           'cpuset="0x7" allowed_cpuset="0x3"',
                           'cpuset="0x7" online_cpuset="0x3"',
                           'allowed_cpuset="0x3"',
                           'cpuset="0xf...f" allowed_cpuset="0x0,0x3"'):
            xml = machine(node(0, 7), pus(0, 1, 2), attributes=attributes)
            self.assertEqual({0: ({0, 1}, 1024)}, self.cells(xml))

    def test_a_core_with_an_offline_thread_keeps_the_other(self) -> None:
        core = ('<object type="Core" os_index="0"><object type="PU" '
                'os_index="0"/><object type="PU" os_index="1"/></object>')
        host = read(machine(node(0, 3), core, attributes='cpuset="0x1"'))
        self.assertEqual(({0},), host.cells[0].siblings)

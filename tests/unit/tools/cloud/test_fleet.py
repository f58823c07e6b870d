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

"""The machines that the fake compute services simulate."""

import json

from tests.unit.tools.cloud import cloud_case
from tools.cloud import fleet


class FleetTest(cloud_case.CloudCase):

    def setUp(self):
        super().setUp()
        fleet.write_topologies(self.settings)

    def topology(self, host):
        return json.loads(fleet.topology(self.settings, host).read_text())

    def test_hosts_are_shipped_topologies(self):
        for host in fleet.FLEET:
            self.assertEqual(host, self.topology(host)['name'])

    def test_machine_has_the_planned_cpus_and_pages(self):
        document = self.topology('opteron1')
        cells = [cell for cell in document['cells'] if cell['cpus']]
        pages = {str(cell['id']): {'4': 1000, '2048': 500 + cell['id']}
                 for cell in cells}
        machine = fleet.simulated_machine(document, {
            'cpu_dedicated_set': '1-47', 'cpu_shared_set': '0',
            'pages': pages})
        self.assertEqual(
            [cell['id'] for cell in cells],
            [cell['id'] for cell in machine['cells']])
        dedicated = [cpu for cell in machine['cells']
                     for cpu in cell['dedicated']]
        self.assertEqual(list(range(1, 48)), sorted(dedicated))
        self.assertEqual([0], [cpu for cell in machine['cells']
                               for cpu in cell['shared']])
        self.assertEqual(list(pages.values()),
                         [cell['pages'] for cell in machine['cells']])

    def test_each_sriov_port_has_virtual_functions_on_its_cell(self):
        document = self.topology('intel1')
        ports = {device['address']: device['cell']
                 for device in document['devices'] if device['total_vfs']}
        self.assertTrue(ports)
        machine = fleet.simulated_machine(document, {
            'cpu_dedicated_set': '',
            'pages': {str(cell['id']): {} for cell in document['cells']}})
        functions = [device for device in machine['devices']
                     if device['dev_type'] == 'type-VF']
        self.assertEqual(
            {address: (fleet.VFS_PER_PORT, {cell})
             for address, cell in ports.items()},
            {address: (len(own), {vf['numa_node'] for vf in own})
             for address in ports
             for own in [[vf for vf in functions
                          if vf['parent_addr'] == address]]})
        addresses = [device['address'] for device in machine['devices']]
        self.assertEqual(len(addresses), len(set(addresses)))

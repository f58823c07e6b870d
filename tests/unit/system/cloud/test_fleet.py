# SPDX-License-Identifier: Apache-2.0

import json

from tests.system.cloud import fleet
from tests.unit.system.cloud import cloud_case


class FleetTest(cloud_case.CloudCase):
    """The machines that the fake compute services simulate."""

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

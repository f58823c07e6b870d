# SPDX-License-Identifier: Apache-2.0

"""The result of an inspection by Ironic is read, or refused in a line."""

import copy
import json
import pathlib
import unittest
from typing import Any

from hpcvirt import topology
from hpcvirt.model import host as host_model
from hpcvirt.topology import snapshot
from hpcvirt.topology.draw import diagram
from tests.builders import refusals
from tests.builders import sysfs_files

ALWAYS = {host_model.Unknown.CACHES, host_model.Unknown.PAGES,
          host_model.Unknown.VFS}

#: Two sockets of two cores of two threads, as ironic-python-agent 13 says.
NODE: dict[str, Any] = {
    'inventory': {
        'cpu': {'model_name': 'Xeon', 'count': 8, 'architecture': 'x86_64',
                'flags': ['ht'], 'socket_count': 2, 'cpus': []},
        'memory': {'total': 8 << 30, 'physical_mb': 8192},
        'hostname': 'localhost.localdomain',
        'interfaces': [{
            'name': 'eth0', 'mac_address': '52:54:00:00:00:00',
            'vendor': '0x8086', 'product': '0x1572', 'driver': 'i40e',
            'pci_address': '0000:41:00.0'}]},
    'plugin_data': {
        'root_disk': None,
        'numa_topology': {
            'ram': [{'numa_node': 1, 'size_kb': 4128768},
                    {'numa_node': 0, 'size_kb': 4014080}],
            'cpus': [
                {'cpu': 1, 'numa_node': 0, 'thread_siblings': [5, 1]},
                {'cpu': 0, 'numa_node': 0, 'thread_siblings': [0, 4]},
                {'cpu': 0, 'numa_node': 1, 'thread_siblings': [2, 6]},
                {'cpu': 1, 'numa_node': 1, 'thread_siblings': [3, 7]}],
            'nics': [{'name': 'eth0', 'numa_node': 1}]},
        'pci_devices': [
            {'vendor_id': '8086', 'product_id': '1572', 'class': '020000',
             'revision': '02', 'bus': '0000:41:00.0', 'numa_node_id': '1'},
            {'vendor_id': '10de', 'product_id': '1db5', 'class': '030200',
             'revision': 'a1', 'bus': '0000:21:00.0', 'numa_node_id': '0'},
            {'vendor_id': '8086', 'product_id': '2030', 'class': '060400',
             'revision': '04', 'bus': '0000:40:00.0', 'numa_node_id': '-1'}]}}


class Case(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.path = pathlib.Path(sysfs_files.scratch(self)) / 'node7.json'
        self.plain = copy.deepcopy(NODE)
        self.inventory = self.plain['inventory']
        self.data = self.plain['plugin_data']
        self.numa = self.data['numa_topology']

    def read(self, plain: Any = None) -> host_model.Host:
        self.path.write_text(json.dumps(self.plain if plain is None
                                        else plain))
        return topology.read(str(self.path))

    def refused(self, pattern: str) -> None:
        self.assertRegex(refusals.message(self, self.read), pattern)


class InspectionTest(Case):
    def test_cells_have_their_memory_and_cores(self) -> None:
        host = self.read()
        self.assertEqual('node7', host.name)
        self.assertEqual([(0, 3920), (1, 4032)],
                         [(cell.id, cell.memory_mib) for cell in host.cells])
        self.assertEqual(({0, 4}, {1, 5}), host.cells[0].siblings)
        self.assertEqual({2, 3, 6, 7}, host.cells[1].cpus)

    def test_devices_have_their_cells_and_drivers(self) -> None:
        self.assertEqual((
            host_model.Device('0000:21:00.0', '10de', '1db5', 0),
            host_model.Device('0000:41:00.0', '8086', '1572', 1,
                              driver='i40e')), self.read().devices)

    def test_what_is_not_said_is_unknown(self) -> None:
        self.assertEqual(ALWAYS | {host_model.Unknown.SOCKETS},
                         self.read().unknown)
        self.assertEqual([None, None],
                         [cell.socket for cell in self.read().cells])

    def test_one_socket_is_one_socket(self) -> None:
        self.inventory['cpu']['socket_count'] = 1
        host = self.read()
        self.assertEqual(ALWAYS, host.unknown)
        self.assertEqual((0,), host.sockets)

    def test_the_form_of_ironic_inspector_is_read(self) -> None:
        flat = {'inventory': self.inventory, **self.data, 'cpus': 8,
                'memory_mb': '8192', 'error': None}
        self.assertEqual(self.read(), self.read(flat))

    def test_a_cell_may_have_only_memory_or_only_cpus(self) -> None:
        self.numa['ram'].append({'numa_node': 2, 'size_kb': 1048576})
        self.numa['ram'][0]['size_kb'] = 0
        cells = self.read().cells
        self.assertEqual([3920, 0, 1024], [cell.memory_mib for cell in cells])
        self.assertEqual(frozenset(), cells[2].cpus)

    def test_without_pci_devices_adapters_are_those_of_the_inventory(
            self) -> None:
        del self.data['pci_devices']
        host = self.read()
        self.assertIn(host_model.Unknown.DEVICES, host.unknown)
        self.assertEqual((host_model.Device(
            '0000:41:00.0', '8086', '1572', 1, driver='i40e'),), host.devices)
        self.assertIn('pci-devices', diagram.draw(host))

    def test_older_agents_say_less(self) -> None:
        # No numa_node_id before 2024, no pci_address and driver before 2023,
        # no socket_count before 2025.
        for device in self.data['pci_devices']:
            del device['numa_node_id']
        self.assertEqual([None, 1],
                         [device.cell for device in self.read().devices])
        for key in ('pci_address', 'driver'):
            del self.inventory['interfaces'][0][key]
        del self.inventory['cpu']['socket_count']
        self.assertEqual([(None, None)] * 2, [
            (device.cell, device.driver) for device in self.read().devices])

    def test_a_snapshot_keeps_what_is_unknown(self) -> None:
        host = self.read()
        self.assertEqual(host, snapshot.read(snapshot.dumps(host).encode(),
                                             'again'))

    def test_the_drawing_has_nothing_that_is_unknown(self) -> None:
        text = diagram.draw(self.read())
        for word in ('sockets of the cells', 'caches', 'VFs', 'distances'):
            self.assertIn(word, ' '.join(text.split()))
        for guess in ('socket 0', 'socket 1', 'KiB pages', '[ 0', '┌ 0'):
            self.assertNotIn(guess, text)


class RefusalTest(Case):
    def test_the_missing_collector_is_named(self) -> None:
        del self.data['numa_topology']
        self.refused('ipa-inspection-collectors=.*numa-topology.*kayobe')
        del self.plain['plugin_data']
        self.refused('no numa_topology')

    def test_cores_of_several_sockets_in_one_cell_are_not_told_apart(
            self) -> None:
        # Two sockets as one cell: each core_id occurs twice.
        self.numa['ram'] = self.numa['ram'][:1]
        self.numa['cpus'] = [
            {'cpu': core, 'numa_node': 1,
             'thread_siblings': [core, core + 2, core + 4, core + 6]}
            for core in (0, 1)]
        self.data['pci_devices'] = []
        self.refused('several sockets')
        del self.inventory['cpu']['socket_count']
        self.refused('several sockets')
        self.inventory['cpu']['model_name'] = 'Intel Xeon Phi 7290'
        self.assertEqual(4, self.read().threads_per_core)

    def test_contradictions(self) -> None:
        self.inventory['cpu']['count'] = 6
        self.refused('has 8 CPUs, but the inventory has 6')
        self.inventory['cpu']['count'] = 8
        self.numa['nics'][0]['numa_node'] = 0
        self.refused("41:00.0: is on cell 1, but .* 'eth0' on cell 0")
        self.numa['nics'] = []
        self.numa['cpus'][0]['thread_siblings'] = [1, 0]
        self.refused('CPU 0 is in several cores')
        self.numa['cpus'][0]['thread_siblings'] = [5, 1]
        self.data['pci_devices'][1]['numa_node_id'] = '7'
        self.refused('21:00.0: is on cell 7, which does not exist')
        self.numa['ram'].pop()
        self.refused('no memory of cell 0')

    def test_values_of_a_wrong_form_are_named(self) -> None:
        self.numa['ram'][1]['size_kb'] = '4014080'
        self.refused(r'node7.json: numa_topology: ram\[1\]: size_kb: must be')
        self.numa['ram'] = {}
        self.refused('numa_topology: ram: must be a list')
        self.data['numa_topology'] = []
        self.refused('numa_topology: must be a mapping')

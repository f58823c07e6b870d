# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.cloud import servers
from tests.unit.cloud import compute_api

FIXED = {'hpc': [('10.0.0.5', 'fixed')]}
#: As an operator sees it, and as anybody does.
PINNED = {'nodes': [
    {'cpu_pinning': {'0': 4, '1': 5}, 'host_node': 0, 'memory_mb': 2048,
     'siblings': [], 'vcpu_set': [0, 1], 'pagesize_kb': 2048},
    {'cpu_pinning': {'2': 20, '3': 21}, 'host_node': 1, 'memory_mb': 2048,
     'siblings': [], 'vcpu_set': [2, 3], 'pagesize_kb': 2048}],
    'pagesize_kb': 2048}
GUEST_SIDE = {'nodes': [{'memory_mb': 4096, 'siblings': [],
                         'vcpu_set': [0, 1, 2, 3]}], 'pagesize_kb': None}


class ServersCase(unittest.TestCase):
    def setUp(self):
        self.api = compute_api.ComputeAPI()
        self.addCleanup(self.api.close)
        self.nova = self.api.client()

    def add(self, name='hpc-1', addresses=FIXED, topology=GUEST_SIDE, **more):
        server = self.api.add_server(name, addresses, **more)
        self.api.topologies[server['id']] = topology
        return server

    def find(self, name='hpc-1'):
        return servers.find(self.nova, name)


class ConsoleTest(ServersCase):
    def test_the_log_of_the_console_is_read(self):
        server = self.add()
        self.api.consoles[server['id']] = 'booting\n'
        self.assertEqual('booting\n', servers.console(self.nova, server['id']))

    def test_a_console_that_nova_does_not_give_is_empty(self):
        server = self.add()
        self.assertEqual('', servers.console(self.nova, server['id']))
        self.api.failures['POST', 'action'] = 403
        self.assertEqual('', servers.console(self.nova, server['id']))


class FindTest(ServersCase):
    def test_an_administrator_sees_host_and_pins(self):
        server = self.add(topology=PINNED, **{'OS-EXT-SRV-ATTR:host': 'n17'})
        self.assertEqual(
            servers.Server(server['id'], 'hpc-1', '10.0.0.5', '10.0.0.5',
                           'n17', 'hpc.4c', frozenset({4, 5, 20, 21}), 2048),
            self.find())

    def test_other_users_see_neither_host_nor_pins(self):
        self.add()
        found = self.find()
        self.assertIsNone(found.host)
        self.assertIsNone(found.host_cpus)

    def test_a_server_that_is_not_pinned_has_no_cpus(self):
        nodes = [{**GUEST_SIDE['nodes'][0], 'host_node': 0, 'cpu_pinning': {}}]
        self.add(topology={'nodes': nodes, 'pagesize_kb': None})
        self.assertEqual(frozenset(), self.find().host_cpus)

    def test_a_topology_that_is_not_shown_is_unknown(self):
        self.add()
        for status in (403, 404):
            self.api.failures['GET', 'topology'] = status
            self.assertIsNone(self.find().host_cpus)

    def test_without_a_topology_the_pages_are_those_of_the_flavor(self):
        server = self.add()
        self.assertIsNone(self.find().page_kib)
        server['flavor']['extra_specs']['hw:mem_page_size'] = '1048576'
        self.assertEqual(1048576, self.find().page_kib)

    def test_a_server_has_an_outer_and_an_inner_address(self):
        self.add(addresses={'hpc': [('10.0.0.5', 'fixed'),
                                    ('192.0.2.7', 'floating')],
                            'ib': [('10.1.0.5', 'fixed')]})
        found = self.find()
        self.assertEqual(('192.0.2.7', '10.0.0.5'),
                         (found.address, found.inner))

    def test_without_a_floating_address_both_are_the_first(self):
        self.add(addresses={'hpc': [('10.0.0.5', 'fixed')],
                            'ib': [('10.1.0.5', 'fixed')]})
        found = self.find()
        self.assertEqual(('10.0.0.5', '10.0.0.5'),
                         (found.address, found.inner))

    def test_a_server_is_found_by_its_id(self):
        self.assertEqual(self.add()['id'],
                         self.find(next(iter(self.api.servers))).id)

    def test_a_name_must_match_as_a_whole(self):
        self.add('hpc-10')
        server = self.add('hpc-1')
        self.assertEqual(server['id'], self.find('hpc-1').id)

    def test_servers_that_cannot_be_measured_are_refused(self):
        self.add('twice')
        self.add('twice')
        self.add('off', status='SHUTOFF')
        self.add('alone', addresses={})
        for name, said in (('none', 'the cloud has no such server'),
                           ('twice', 'names several servers'),
                           ('off', 'is SHUTOFF, not ACTIVE'),
                           ('alone', 'has no address')):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        f'server {name}.*{said}'):
                self.find(name)

    def test_an_error_of_the_cloud_is_one_line(self):
        self.api.failures['GET', 'servers'] = 500
        with self.assertRaisesRegex(exception.Unreachable, 'not today'):
            self.find()


class RebootTest(ServersCase):
    def reboot(self, server_id, patience_s=30.0):
        servers.ServerRebooter(self.nova, server_id, patience_s, 0.01).reboot()

    def test_the_reboot_is_hard_and_awaited(self):
        server = self.add()
        self.reboot(server['id'])
        self.assertEqual([(server['id'], 'HARD')], self.api.reboots)
        self.assertEqual('ACTIVE', server['status'])
        self.assertIsNone(server['OS-EXT-STS:task_state'])

    def test_a_failed_reboot_is_reported(self):
        self.api.reboot_ends_as = 'ERROR'
        with self.assertRaisesRegex(exception.Unreachable,
                                    'server hpc-1: is ERROR'):
            self.reboot(self.add()['id'])

    def test_a_reboot_that_does_not_end_is_reported(self):
        self.api.reboot_ends_as = 'HARD_REBOOT'
        with self.assertRaisesRegex(exception.Unreachable, 'is HARD_REBOOT'):
            self.reboot(self.add()['id'], patience_s=0.2)

    def test_a_refused_reboot_is_reported(self):
        self.api.failures['POST', 'action'] = 403
        with self.assertRaisesRegex(exception.Unreachable, 'not today'):
            self.reboot(self.add()['id'])

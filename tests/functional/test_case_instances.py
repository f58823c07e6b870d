# SPDX-License-Identifier: Apache-2.0

"""The instances of a case of a study, in a Nova."""

import base64
import dataclasses

import fixtures

from hpcvirt import exception
from hpcvirt.acceptance import measurement
from hpcvirt.cloud import benchmark_instances
from hpcvirt.cloud import case_instances
from hpcvirt.cloud import session
from hpcvirt.model import flavor
from testing import machines
from tests.functional import base

HOSTS = ('node1', 'node2')
FLAVOR = flavor.Flavor('hpcvirt-s4-2x1', 1, 512, 1, {
    'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'})


class CaseInstancesTest(base.HPCNova):

    def setUp(self):
        super().setUp()
        self.add_machines(*(machines.build(
            name, cells=1, cores=2, pages={2048: 1024}) for name in HOSTS))
        self.use_as_cloud()
        self.key = measurement.read_public_key(
            self.useFixture(fixtures.TempDir()).join('key'), lambda: None)
        for name, found in (('image', self.glance.image1['id']),
                            ('network', self.neutron.network_1['id'])):
            self.useFixture(fixtures.MonkeyPatch(
                'hpcvirt.cloud.benchmark_instances.BenchmarkInstances'
                f'.find_{name}', lambda *_, found=found: found))

    def find(self, owner='s4-2x1', hosts=HOSTS, user_data=''):
        return case_instances.find(
            session.compute(), owner, FLAVOR, hosts, 'bench', ['net'], '',
            user_data)

    def test_they_are_found_again_and_removed(self):
        found = self.find(user_data='#cloud-config')
        ids = found.start(self.key)
        servers = [self.api.get_server(server_id) for server_id in ids]
        self.assertEqual(list(HOSTS), [
            server['OS-EXT-SRV-ATTR:host'] for server in servers])
        self.assertEqual('#cloud-config', base64.b64decode(
            servers[0]['OS-EXT-SRV-ATTR:user_data']).decode())
        self.assertEqual(ids, self.find().start(self.key))
        self.assertEqual(4, len(found.left()))
        found.clear()
        self.assertEqual((), found.left())
        self.assertEqual([], self.api.get_servers())

    def test_nothing_of_another_case_is_touched(self):
        other = self.find('s4-2x1-tuned', HOSTS[:1])
        ids = other.start(self.key)
        left = other.left()
        error = self.assertRaises(exception.InvalidInput, self.find().start,
                                  self.key)
        self.assertIn('1 instance of others', str(error))
        self.find().clear()
        self.assertEqual(left, other.left())
        self.assertEqual(list(ids), [
            server['id'] for server in self.api.get_servers()])

    def test_periodic_an_instance_that_does_not_fit_is_an_error(self):
        found = dataclasses.replace(self.find(), hosts=HOSTS[:1] * 3)
        self.assertRaises(benchmark_instances.InstancesNotStarted,
                          found.start, self.key)
        found.clear()
        self.assertEqual((), found.left())

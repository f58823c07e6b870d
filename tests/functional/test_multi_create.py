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

"""Several servers of one request that do not get the same page size."""

from testing import machines
from tests.functional import base

GIB_KIB = 1 << 20


class MultiCreateTest(base.HPCNova):
    """The first server gets the only giant page, the second one 2 MiB pages.

    Nova leaves the size of the first in the request of the second.
    """

    def setUp(self):
        super().setUp()
        self.add_machines(machines.build(
            'host', 1, 8, pages={2048: 1024, GIB_KIB: 1},
            housekeeping_cores=4))

    def assert_sizes(self, flavor, *sizes_kib):
        servers = self.boot_many(flavor, len(sizes_kib))
        self.assertEqual(sorted(sizes_kib), sorted(
            cell.page_kib for server in servers
            for cell in self.guest(server).cells))
        self.assertEqual([], self.faults())

    def test_shared_cpus(self):
        self.assert_sizes(
            self.create_flavor(1, 1024, {'hw:numa_nodes': '1',
                                         'hw:mem_page_size': 'large'}),
            2048, 2048, GIB_KIB)

    def test_dedicated_cpus(self):
        self.assert_sizes(self.create_hpc_flavor(1, 1, 1024, 'large'),
                          2048, 2048, GIB_KIB)

    def test_one_server_more_than_the_host_has_pages_for(self):
        flavor = self.create_hpc_flavor(1, 1, 1024, 'large')
        for server in self.boot_many(flavor, 4, status='ERROR'):
            self.assertIn('No valid host', server['fault']['message'])
        self.assertEqual((), self.ledger('host').guests)

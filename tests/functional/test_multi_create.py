# SPDX-License-Identifier: Apache-2.0

"""Several servers of one request that do not get the same page size."""

import collections
import random

from hpcvirt.nova import filters
from testing import machines
from tests.functional import base
from tests.functional import multi_create
from tests.functional import soundness

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

    def test_periodic_shared_cpus(self):
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


REQUESTS = 70
GUESTS = 4


class MultiCreateTestCase(soundness.ClaimingTestCase):
    """Each test rolls its own requests, so that they can run in parallel."""

    def roll(self, blocks, a_fleet=multi_create.a_fleet):
        later = collections.Counter()
        for block in blocks:
            # Each begins with a filter of its own.
            scheduler = multi_create.Scheduler(filters.HPCTopologyFilter())
            for number in range(REQUESTS):
                seed = block * REQUESTS + number
                dice = random.Random(f'multi-create {seed}')
                fleet = a_fleet(dice)
                with self.subTest(seed=seed):
                    for pick in scheduler.create(dice, fleet, GUESTS):
                        self.assertFalse(pick.wrong, pick)
                        later[pick.passed] += pick.number > 0
        # A single block may have few of one kind by chance.
        self.assertGreater(later[True], len(blocks) * REQUESTS // 8)
        self.assertGreater(later[False], len(blocks) * REQUESTS // 8)

    def test_first_block_of_requests(self):
        self.roll([0])

    def test_guests_with_devices(self):
        self.roll([0], multi_create.a_fleet_with_devices)

    def test_periodic_60_more_blocks_of_guests_with_devices(self):
        self.roll(range(1, 61), multi_create.a_fleet_with_devices)

    def test_periodic_9_more_blocks_of_requests(self):
        self.roll(range(1, 10))

# SPDX-License-Identifier: Apache-2.0

"""The lives of an instance, each to its end in one Nova.

After each of them the domains are held against the machines. What the claim of
a life would get wrong is refused by the filter, with the reason in its log.
"""

from testing import machines
from tests.functional import lives


class EqualCellsTest(lives.LivesNova):
    """Guests such as hpcvirt plans: equal cells, a page size, no devices."""

    def setUp(self):
        super().setUp()
        self.add_machines(*(
            machines.build(name, 4, 4, pages={2048: 1024})
            for name in ('one', 'two')))

    def test_a_guest_is_right_in_each_life(self):
        # One cell of each host is in use, and the guests have other cells.
        for host in ('one', 'two'):
            self.boot(self.create_hpc_flavor(1, 4), host=host)
        failed = self.fail_next_build()
        server = self.boot(self.create_hpc_flavor(2, 3))
        self.assert_moved(server, failed[0], 2)
        source = self.host_of(server)
        self.migrate(server)
        self.confirm(server)
        self.assert_moved(server, source, 2)
        self.shelve(server)
        self.unshelve(server)
        self.assert_sits(server, {1, 2, 3}, 3, 512)
        source = self.host_of(server)
        self.resize(server, self.create_hpc_flavor(3, 3))
        self.confirm(server)
        self.assert_moved(server, source, 3)
        source = self.host_of(server)
        self.evacuate(server)
        self.assert_moved(server, source, 3)

    def assert_moved(self, server, source, cells):
        self.assertNotEqual(source, self.host_of(server))
        guest = self.assert_sits(server, {1, 2, 3}, 3, 512)
        self.assertEqual(cells, len(guest.cells))


class DevicesTest(lives.LivesNova):
    def setUp(self):
        super().setUp()
        self.add_machines(*(
            machines.build(name, 2, 4, pages={2048: 1024}, vfs={1: 4},
                           sockets=1) for name in ('one', 'two')))

    def test_periodic_a_move_that_would_lose_its_policy_is_refused(self):
        """On both hosts only cell 0 has room, and cell 1 has the devices."""
        self.configure_alias()
        full = self.create_hpc_flavor(
            1, 4, 512, pci_passthrough__alias='vf:1',
            hw__pci_numa_affinity_policy='required')
        for host in ('one', 'two'):
            self.assert_sits(self.boot(full, host=host), (1,), 4, 512)
        servers = [self.boot(self.create_hpc_flavor(
            1, 2, 256, pci_passthrough__alias='vf:1',
            hw__pci_numa_affinity_policy=policy), host='one')
            for policy in ('preferred', 'socket')]
        for server in servers:
            self.migrate(server, status='ACTIVE')
            self.assertEqual('one', self.host_of(server))
            self.assertIn('a move ignores the affinity policy of the flavor',
                          self.refusals()[-1])
        # As the documentation advises.
        self.configure_alias(numa_policy='preferred')
        self.migrate(servers[0])
        self.assertEqual('two', self.host_of(servers[0]))
        self.assert_sits(servers[0], (0,), 2, 256)


class PagesTest(lives.LivesNova):
    def setUp(self):
        super().setUp()
        self.add_machines(
            machines.build('giant', 1, 8, pages={2048: 512, 1048576: 1}),
            machines.build('huge', 1, 8, pages={2048: 512}))

    def test_periodic_an_unshelve_that_would_fail_is_refused(self):
        """The guest has a giant page, which is then no longer free."""
        server = self.boot(self.create_hpc_flavor(
            1, 2, 1024, page='large'), host='giant')
        self.shelve(server)
        other = self.boot(self.create_hpc_flavor(1, 2, 1024, page='1048576'))
        self.unshelve(server, status='SHELVED_OFFLOADED')
        for line in self.refusals()[-2:]:
            self.assertIn('an unshelve starts from what the guest had', line)
        self.delete(other)
        self.unshelve(server)
        self.assert_sits(server, (0,), 2, 1024, page_kib=1048576)


class UnequalCellsTest(lives.LivesNova):
    def setUp(self):
        super().setUp()
        self.add_machines(*(
            machines.build(name, 3, [8, 2, 2], pages={2048: 1024})
            for name in ('one', 'two')))

    def test_a_build_that_fails_is_not_tried_where_it_would_be_wrong(self):
        flavor = self.create_flavor(6, 1024, {
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048',
            'hw:numa_nodes': '2', 'hw:numa_cpus.0': '0-1',
            'hw:numa_cpus.1': '2-5', 'hw:numa_mem.0': '512',
            'hw:numa_mem.1': '512'})
        self.boot(flavor)
        self.assertEqual([], self.faults())
        self.fail_next_build()
        self.boot(flavor, status='ERROR')
        self.assertEqual([], self.faults())

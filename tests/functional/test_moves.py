# SPDX-License-Identifier: Apache-2.0

"""Moves and rebuilds of guests, and guests without a NUMA topology."""

from testing import machines
from tests.functional import base
from tests.functional import lives

DEDICATED = {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'}


class MovesTest(lives.LivesNova):
    def setUp(self):
        super().setUp()
        self.add_machines(*(
            machines.build(name, 2, 4, pages={2048: 2048}, vfs={1: 4})
            for name in ('one', 'two')))

    def other(self, host):
        return {'one': 'two', 'two': 'one'}[host]

    def test_rebuild_keeps_cells_and_cpus(self):
        server = self.boot(self.create_hpc_flavor(pcpus=4))
        before = self.guest(server)
        # There is no room for it twice: a filter that counted it twice would
        # refuse.
        self.boot(self.create_hpc_flavor(pcpus=4))
        self.api.post_server_action(server['id'], {'rebuild': {
            'imageRef': self.glance.image2['id']}})
        self.wait_for(server, 'ACTIVE')
        after = self.guest(server)
        self.assertEqual(before.host_cells, after.host_cells)
        self.assertEqual(before.pinned, after.pinned)
        self.assertEqual(
            self.glance.image2['id'],
            self.api.get_server(server['id'])['image']['id'])

    def test_periodic_cold_migration_frees_what_it_leaves(self):
        flavor = self.create_hpc_flavor(2, 4, 512)
        server = self.boot(flavor)
        source = self.host_of(server)
        self.migrate(server)
        self.assertEqual(self.other(source), self.host_of(server))
        self.boot(flavor, host=source, status='ERROR')
        self.confirm(server)
        self.assert_sits(server, (0, 1), 4, 512)
        self.assert_sits(self.boot(flavor, host=source), (0, 1), 4, 512)

    def test_periodic_resize_places_the_new_size_and_can_be_reverted(self):
        server = self.boot(self.create_hpc_flavor(1, 2, 512))
        source = self.host_of(server)
        self.resize(server, self.create_hpc_flavor(2, 3, 1024))
        self.assertEqual(self.other(source), self.host_of(server))
        self.assert_sits(server, (0, 1), 3, 1024)
        self.api.post_server_action(server['id'], {'revertResize': None})
        self.wait_for(server, 'ACTIVE')
        self.assertEqual(source, self.host_of(server))
        self.assert_sits(server, (0,), 2, 512)

    def test_periodic_resize_to_what_fits_nowhere_changes_nothing(self):
        server = self.boot(self.create_hpc_flavor(1, 2, 512))
        self.resize(server, self.create_hpc_flavor(1, 5, 512), 'ACTIVE')
        self.assert_sits(server, (0,), 2, 512)

    def test_periodic_live_migration_pins_anew(self):
        first = self.boot(self.create_hpc_flavor(1, 2, 512))
        source = self.host_of(first)
        other = self.other(source)
        self.fill_cell(other, 0, 4)
        self.live_migrate(first)
        self.assertEqual(other, self.host_of(first))
        self.assert_sits(first, (1,), 2, 512)

    def test_periodic_servers_of_an_anti_affinity_group_take_a_host_each(self):
        group = self.api.post_server_groups(
            {'name': 'apart', 'policy': 'anti-affinity'})['id']
        flavor = self.create_hpc_flavor(1, 2, 512)
        servers = [self.boot(flavor, group=group) for _ in range(2)]
        self.assertEqual({'one', 'two'}, set(map(self.host_of, servers)))
        self.boot(flavor, group=group, status='ERROR')

    def test_periodic_servers_of_an_affinity_group_share_a_host(self):
        group = self.api.post_server_groups(
            {'name': 'together', 'policy': 'affinity'})['id']
        flavor = self.create_hpc_flavor(1, 4, 512)
        servers = [self.boot(flavor, group=group) for _ in range(2)]
        self.assertEqual(1, len(set(map(self.host_of, servers))))
        self.boot(flavor, group=group, status='ERROR')

    def test_periodic_one_request_for_many_fills_every_host(self):
        flavor = self.create_hpc_flavor(1, 4, 512)
        servers = self.boot_many(flavor, 4)
        self.assertEqual(
            {('one', 0), ('one', 1), ('two', 0), ('two', 1)},
            {(self.host_of(server), *self.guest(server).host_cells)
             for server in servers})
        self.assertEqual([], self.faults())
        self.boot(flavor, status='ERROR')

    def test_periodic_one_request_for_too_many_starts_none(self):
        flavor = self.create_hpc_flavor(1, 4, 512)
        self.boot_many(flavor, 5, status='ERROR')
        self.assertEqual([(), ()], [self.ledger(host).guests
                                    for host in ('one', 'two')])

    def test_periodic_one_request_for_many_with_a_device_each(self):
        """Later instances see what earlier ones of the request took."""
        self.configure_alias()
        flavor = self.create_hpc_flavor(
            1, 1, 256, pci_passthrough__alias='vf:1',
            hw__pci_numa_affinity_policy='required')
        servers = self.boot_many(flavor, 8)
        guests = list(map(self.guest, servers))
        self.assertEqual({(1,)}, {guest.host_cells for guest in guests})
        self.assertEqual([1] * 8, [len(guest.devices) for guest in guests])
        self.assertEqual([], self.faults())
        self.boot(flavor, status='ERROR')


class PlainGuestsTest(base.HPCNova):
    """Requests that are not HPC boot as they always did."""

    def setUp(self):
        super().setUp()
        self.add_machines(machines.build(
            'host', 2, 4, pages={2048: 64}, housekeeping_cores=2))

    def test_a_flavor_without_extra_specs_boots(self):
        guest = self.guest(self.boot(self.create_flavor(4, 512)))
        self.assertEqual((), guest.cells)
        self.assertEqual(frozenset(), guest.pinned)

    def test_periodic_vcpus_may_be_overcommitted(self):
        flavor = self.create_flavor(4, 64)
        for _ in range(4):
            self.boot(flavor)

    def test_periodic_shared_vcpus_with_a_numa_topology_get_cells(self):
        guest = self.guest(self.boot(self.create_flavor(
            4, 512, {'hw:numa_nodes': '2'})))
        self.assertEqual((0, 1), guest.host_cells)
        self.assertEqual({frozenset({0, 1}), frozenset({4, 5})},
                         set(guest.pins.values()))

    def test_periodic_huge_pages_alone_give_one_cell(self):
        guest = self.guest(self.boot(self.create_flavor(
            1, 64, {'hw:mem_page_size': '2048'})))
        self.assertEqual([2048], [cell.page_kib for cell in guest.cells])
        self.boot(self.create_flavor(1, 130, {'hw:mem_page_size': '2048'}),
                  status='ERROR')

# SPDX-License-Identifier: Apache-2.0

"""What hpcvirt's weighers and Nova's do with the same requests."""

from testing import machines
from tests.functional import base

NOVA_WEIGHERS = 'nova.scheduler.weights.all_weighers'


class TwoHosts(base.HPCNova):
    """Two equal hosts, and small guests before a large one."""

    def setUp(self):
        super().setUp()
        self.add_machines(*(machines.build(name, 2, 4, pages={2048: 1024})
                            for name in ('one', 'two')))
        self.small = self.create_hpc_flavor(1, 2, 256)
        self.whole = self.create_hpc_flavor(2, 4, 256)

    def boot_small(self, count):
        """Boot small guests; how many are on each host."""
        servers = [self.boot(self.small) for _ in range(count)]
        hosts = [self.host_of(server) for server in servers]
        return sorted(hosts.count(host) for host in ('one', 'two'))


class FragmentationTest(TwoHosts):
    """The weighers with their defaults."""

    def test_small_guests_fill_a_broken_host_first(self):
        self.assertEqual([0, 4], self.boot_small(4))
        self.boot(self.whole)
        self.assertEqual([], self.faults())

    def test_periodic_an_aggregate_can_turn_it_off(self):
        aggregate = self.api.post_aggregate(
            {'aggregate': {'name': 'spread', 'availability_zone': None}})
        for host in ('one', 'two'):
            self.api.add_host_to_aggregate(aggregate['id'], host)
        self.api.post_aggregate_action(aggregate['id'], {'set_metadata': {
            'metadata': {'topology_weight_multiplier': '0.0'}}})
        self.assertEqual([1, 1], self.boot_small(2))

    def test_periodic_one_request_for_many_packs_too(self):
        servers = self.boot_many(self.small, 4)
        self.assertEqual(1, len({self.host_of(each) for each in servers}))
        self.boot(self.whole)


class FragmentationOffTest(TwoHosts):
    """The multiplier 0."""

    OPTIONS = (('hpcvirt', 'topology_weight_multiplier', 0.0),)

    def test_periodic_novas_weighers_spread_and_a_large_guest_is_refused(self):
        self.assertEqual([2, 2], self.boot_small(4))
        self.boot(self.whole, status='ERROR')

    def test_periodic_an_aggregate_can_turn_it_on(self):
        aggregate = self.api.post_aggregate(
            {'aggregate': {'name': 'pack', 'availability_zone': None}})
        for host in ('one', 'two'):
            self.api.add_host_to_aggregate(aggregate['id'], host)
        self.api.post_aggregate_action(aggregate['id'], {'set_metadata': {
            'metadata': {'topology_weight_multiplier': '20'}}})
        self.assertEqual([0, 3], self.boot_small(3))

    def test_periodic_one_request_for_many_is_spread(self):
        servers = self.boot_many(self.small, 4)
        self.assertEqual(2, len({self.host_of(each) for each in servers}))


class DevicesTest(base.HPCNova):
    """Hosts with virtual functions, and guests that want them or not."""

    def test_periodic_a_guest_without_devices_keeps_off_their_cells(self):
        self.add_machines(
            machines.build('nic', 2, 4, pages={2048: 1024}, vfs={0: 4}),
            machines.build('bare', 2, 4, pages={2048: 1024}))
        for _ in range(2):
            server = self.boot(self.create_hpc_flavor(1, 4, 256))
            self.assertEqual('bare', self.host_of(server))

    def test_periodic_preferred_devices_may_be_far_if_need_be(self):
        self.add_machines(machines.build(
            'far', 2, 4, pages={2048: 1024}, vfs={0: 4}))
        self.fill_cell('far', 0, 4)
        server = self.boot(
            self.create_hpc_flavor(
                1, 2, 256, hw__pci_numa_affinity_policy='preferred'),
            ports=[self.create_sriov_port(machines.PHYSNET)])
        guest = self.assert_sits(server, (1,), 2, 256)
        self.assertEqual(0, self.ledger('far').device_cell(guest.devices[0]))


class FarAndNear(base.HPCNova):
    """The cell of the device is full on one host, and free on the other.

    Both pass under the policy ``preferred``.
    """

    def assert_chosen(self, chosen):
        self.add_machines(*(
            machines.build(name, 2, 4, pages={2048: 1024}, vfs={0: 4})
            for name in ('far', 'near')))
        self.fill_cell('far', 0, 4)
        server = self.boot(
            self.create_hpc_flavor(
                1, 2, 256, hw__pci_numa_affinity_policy='preferred'),
            ports=[self.create_sriov_port(machines.PHYSNET)])
        self.assertEqual(chosen, self.host_of(server))
        guest = self.guest(server)
        self.assertEqual(0, self.ledger(chosen).device_cell(guest.devices[0]))
        self.assertEqual(chosen == 'near', guest.host_cells == (0,))


class NearFirstTest(FarAndNear):
    OPTIONS = (('hpcvirt', 'far_device_cost', float('inf')),)

    def test_periodic_preferred_devices_are_found_where_they_are_near(self):
        self.assert_chosen('near')


class RoomFirstTest(FarAndNear):
    def test_periodic_the_fuller_host_is_chosen_where_less_room_is_lost(self):
        self.assert_chosen('far')


class BothFiltersTest(base.HPCNova):
    """HPCTopologyFilter in front of NUMATopologyFilter."""

    ENABLED_FILTERS = (
        *base.nova.USUAL_FILTERS, 'HPCTopologyFilter', 'NUMATopologyFilter',
        'PciPassthroughFilter')

    def test_periodic_they_agree(self):
        self.add_machines(machines.build(
            'host', 4, 4, pages={2048: 1024}, vfs={2: 2}))
        near = self.create_hpc_flavor(
            1, 2, 256, hw__pci_numa_affinity_policy='required')
        for _ in range(2):
            server = self.boot(
                near, ports=[self.create_sriov_port(machines.PHYSNET)])
            self.assert_sits(server, (2,), 2, 256)
        for server in self.boot_many(self.create_hpc_flavor(1, 4, 256), 3):
            self.assert_sits(server, {0, 1, 3}, 4, 256)
        self.boot(self.create_hpc_flavor(1, 1, 256), status='ERROR')


class DefaultsTest(base.HPCNova):
    """Nova alone: what the demonstration compares with."""

    ENABLED_FILTERS = (*base.nova.USUAL_FILTERS, 'NUMATopologyFilter',
                       'PciPassthroughFilter')
    WEIGHT_CLASSES = (NOVA_WEIGHERS,)

    def test_periodic_small_guests_are_spread_and_a_large_one_refused(self):
        self.add_machines(*(machines.build(name, 2, 4, pages={2048: 1024})
                            for name in ('one', 'two')))
        small = self.create_hpc_flavor(1, 2, 256)
        hosts = [self.host_of(self.boot(small)) for _ in range(4)]
        self.assertEqual(2, hosts.count('one'))
        self.boot(self.create_hpc_flavor(2, 4, 256), status='ERROR')
        self.assertEqual('', self.log.output)

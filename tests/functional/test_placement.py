# SPDX-License-Identifier: Apache-2.0

"""Pins, pages and devices of guests, in the XML that libvirt receives."""

import itertools

import fixtures
import requests
import testtools
from placement.tests.functional.fixtures import placement as fixture

from hpcvirt import exception
from hpcvirt.cloud import placement
from hpcvirt.cloud import session
from testing import identity
from testing import machines
from tests.functional import base


class PlacementTest(base.HPCNova):
    """Hosts of 2, 4 and 8 cells, with SMT and without."""

    def check(self, cells, sockets, threads):
        """Boot on 2 MiB pages, on 1 GiB pages and next to a device.

        Every cell has 4 cores, and the virtual functions are on the last.
        """
        machine = machines.build(
            'host', cells, 4, threads, sockets=sockets,
            far_siblings=threads == 2, pages={2048: 1024, 1048576: 2},
            vfs={cells - 1: 2})
        self.add_machines(machine)
        pcpus = 2 * threads

        wide = self.boot(self.create_hpc_flavor(2, pcpus, 1024))
        guest = self.assert_sits(wide, (0, 1), pcpus, 1024)
        self.assert_whole_cores(guest, machine)

        huge = self.boot(self.create_hpc_flavor(1, pcpus, 2048, '1048576'))
        self.assert_sits(huge, set(range(cells)), pcpus, 2048, 1048576)

        near = self.boot(
            self.create_hpc_flavor(
                1, pcpus // 2, 512, hw__pci_numa_affinity_policy='required'),
            ports=[self.create_sriov_port(machines.PHYSNET)])
        guest = self.assert_sits(near, (cells - 1,), pcpus // 2, 512)
        self.assert_virtual_function_on(guest, cells - 1)

    def assert_whole_cores(self, guest, machine):
        cores = [core for cell in machine.host.cells
                 for core in cell.siblings if core & guest.pinned]
        self.assertEqual(guest.pinned, frozenset().union(*cores))

    def assert_virtual_function_on(self, guest, cell):
        self.assertEqual(1, len(guest.devices))
        machine = self.connections['host'].machine
        physical = next(machine.functions())
        self.assertIn(guest.devices[0], physical.virtual)
        self.assertEqual(
            cell, self.ledger('host').device_cell(guest.devices[0]))

    def test_periodic_two_cells_without_smt(self):
        self.check(cells=2, sockets=2, threads=1)

    def test_periodic_two_cells_with_smt(self):
        self.check(cells=2, sockets=1, threads=2)

    def test_periodic_four_cells_without_smt(self):
        self.check(cells=4, sockets=4, threads=1)

    def test_periodic_four_cells_with_smt(self):
        self.check(cells=4, sockets=2, threads=2)

    def test_periodic_eight_cells_without_smt(self):
        self.check(cells=8, sockets=2, threads=1)

    def test_eight_cells_with_smt(self):
        self.check(cells=8, sockets=2, threads=2)

    def test_periodic_uneven_guest_cells_land_with_the_largest_first(self):
        self.add_machines(machines.build('host', 2, [8, 4],
                                         pages={2048: 2048}))
        server = self.boot(self.create_flavor(10, 3072, {
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048',
            'hw:numa_nodes': '2',
            'hw:numa_cpus.0': '0-6', 'hw:numa_mem.0': '2048',
            'hw:numa_cpus.1': '7-9', 'hw:numa_mem.1': '1024'}))
        guest = self.guest(server)
        self.assertEqual((0, 1), guest.host_cells)
        self.assertEqual([7, 3], [len(guest.pinned_of(cell))
                                  for cell in guest.cells])
        self.assertEqual([], self.faults())

    def test_emulator_threads_get_a_cpu_of_their_own(self):
        self.add_machines(machines.build('host', pages={2048: 1024}))
        flavor = self.create_hpc_flavor(
            pcpus=3, hw__emulator_threads_policy='isolate')
        guest = self.assert_sits(self.boot(flavor), (0,), 3, 512)
        self.assertEqual({0, 1, 2, 3}, guest.emulator | guest.pinned)
        self.assertEqual(1, len(guest.emulator))

    def test_a_mixed_guest_floats_where_cpus_are_shared(self):
        machine = machines.build('host', 2, 4, pages={2048: 1024},
                                 housekeeping_cores=1)
        self.add_machines(machine)
        server = self.boot(self.create_flavor(4, 512, {
            'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '0-2',
            'hw:mem_page_size': '2048'}))
        guest = self.guest(server)
        self.assertEqual({1, 2, 3}, guest.pinned - {0})
        self.assertEqual({0}, guest.pins[3])

    def test_periodic_reserved_pages_stay_with_the_host(self):
        self.add_machines(machines.build(
            'host', 2, 4, pages={2048: 512},
            reserved=['node:0,size:2048,count:1']))
        flavor = self.create_hpc_flavor(pcpus=1, mib=1024)
        self.assert_sits(self.boot(flavor), (1,), 1, 1024)
        self.boot(flavor, status='ERROR')
        self.assertIn('cell 0 has 511 of the 512 free pages of 2048 KiB'
                      ' needed', self.log.output)


NOWHERE = 'http://compute.test:8774/v2.1'


class PlacementAPITest(testtools.TestCase):
    """Traits of a real Placement."""

    def setUp(self):
        super().setUp()
        service = self.useFixture(fixture.PlacementFixture())
        # wsgi-intercept has no sockets whose options could be set.
        self.useFixture(fixtures.MonkeyPatch(
            'keystoneauth1.session.TCPKeepAliveAdapter.init_poolmanager',
            requests.adapters.HTTPAdapter.init_poolmanager))
        self.useFixture(identity.CloudsFile(NOWHERE, service.endpoint))
        self.api = placement.PlacementClient(session.placement(), pause_s=0.01)
        self.uuid = self.api.adapter.post(
            '/resource_providers', json={'name': 'node1'},
            microversion='1.20').json()['uuid']
        self.api.change_traits(self.uuid, ['COMPUTE_NODE'])

    def test_traits_are_added_and_own_ones_removed(self):
        before = self.api.traits(self.uuid).names
        self.assertTrue(self.api.change_traits(
            self.uuid, ['CUSTOM_HPCVIRT_X', 'CUSTOM_SITE', 'HW_CPU_X86_AVX']))
        self.assertEqual(
            before | {'CUSTOM_HPCVIRT_X', 'CUSTOM_SITE', 'HW_CPU_X86_AVX'},
            self.api.traits(self.uuid).names)
        self.assertFalse(self.api.change_traits(
            self.uuid, ['CUSTOM_SITE'], ['CUSTOM_HPCVIRT_Y']))
        self.api.change_traits(self.uuid, [], ['CUSTOM_HPCVIRT_X'])
        self.assertNotIn('CUSTOM_HPCVIRT_X', self.api.traits(self.uuid).names)
        self.assertIn('CUSTOM_SITE', self.api.traits(self.uuid).names)

    def test_traits_of_others_are_not_removed(self):
        for name in ('CUSTOM_SITE', 'HW_CPU_X86_AVX', 'COMPUTE_NODE'):
            self.assertRaises(exception.InvalidInput, self.api.change_traits,
                              self.uuid, [], [name])

    def test_bad_traits_and_providers_are_one_line(self):
        for provider, name in ((self.uuid, 'CUSTOM_x'),
                               (self.uuid, 'NOT_THERE'),
                               ('0' * 8, 'CUSTOM_X')):
            error = self.assertRaises(exception.HpcvirtError,
                                      self.api.change_traits, provider, [name])
            self.assertNotIn('\n', str(error))

    def test_what_others_change_meanwhile_is_kept(self):
        other = placement.PlacementClient(session.placement())
        ask = self.api.adapter.request
        names = (f'CUSTOM_OTHER_{number}' for number in range(3))

        def ask_late(path, method, **more):
            if method == 'PUT' and path.endswith('traits'):
                for name in itertools.islice(names, 1):
                    other.change_traits(self.uuid, [name])
            return ask(path, method, **more)
        self.api.adapter.request = ask_late
        self.assertTrue(self.api.change_traits(self.uuid, ['CUSTOM_MINE']))
        self.assertLessEqual(
            {'CUSTOM_MINE', *(f'CUSTOM_OTHER_{n}' for n in range(3))},
            self.api.traits(self.uuid).names)

    def test_others_that_never_stop_are_reported(self):
        api = placement.PlacementClient(session.placement(), 0.05, 0.01)
        ask = api.adapter.request
        number = itertools.count()

        def ask_late(path, method, **more):
            if method == 'PUT' and path.endswith('traits'):
                self.api.change_traits(self.uuid,
                                       [f'CUSTOM_OTHER_{next(number)}'])
            return ask(path, method, **more)
        api.adapter.request = ask_late
        error = self.assertRaises(
            exception.Unreachable, api.change_traits, self.uuid,
            ['CUSTOM_MINE'])
        self.assertIn('others change', str(error))
        self.assertNotIn('\n', str(error))

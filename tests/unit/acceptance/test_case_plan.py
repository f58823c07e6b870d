# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.acceptance import case_plan
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import scaling
from hpcvirt.flavors import profile
from hpcvirt.model import shape
from hpcvirt.specs import codec
from tests.builders import hosts


def on(study_id, case, *names, **choices):
    study_ = study_catalogue.get(study_id)
    machines = [dataclasses.replace(hosts.named(name), name=f'n{number}')
                for number, name in enumerate(names, 1)]
    planner = case_plan.CasePlanner(machines, profile.Profile(**choices))
    return planner.plan(study_, study_.case(case))


class ScalingTest(unittest.TestCase):

    def assert_scaled(self, guests, cells, *where):
        found = on(*where)
        self.assertIsInstance(found, case_plan.CasePlan, found)
        self.assertEqual(guests, found.scaled.shape)
        guest = found.scaled.guest
        self.assertEqual(cells, len(guest.cells) if guest else 0)
        self.assertEqual(
            found.scaled.vcpus, found.flavor.vcpus)

    def assert_refused(self, what, *where):
        found = on(*where)
        self.assertIsInstance(found, scaling.CaseRefusal)
        self.assertIn(what, found.reason)

    def test_a_host_like_the_study_s_gets_the_study_s_guests(self):
        # Two sockets of 16 cores, one cell each.
        for case, guests, cells in (
                ('4x8-tuned', '4x8', 1), ('2x16-tuned', '2x16', 1),
                ('1x24-tuned', '1x24', 2), ('1x32-tuned', '1x32', 2),
                ('4x8-untuned', '4x8', 0), ('1x24-untuned', '1x24', 0)):
            self.assert_scaled(guests, cells, 'S4', case, 'hs06-2s-16c')

    def test_with_smt_a_core_counts_twice(self):
        # Two sockets of 16 cores and 32 threads.
        smt = 'intel-2s-16c-smt'
        self.assert_scaled('4x16', 1, 'S4', '4x8-tuned', smt)
        self.assert_scaled('1x48', 2, 'S4', '1x24-tuned', smt)
        self.assert_scaled('2x32', 1, 'S2', 'numa-socket', smt)
        self.assert_scaled('1x32', 0, 'S3', 'on-1vm-4', smt)
        self.assert_scaled('2x32', 0, 'S3', 'on-2vm-2net-8', smt)
        self.assert_scaled('4x16', 0, 'S3', 'on-4vm-4net-16', smt)

    def test_without_smt_a_core_counts_once_whatever_the_topology_shows(self):
        self.assert_scaled('1x16', 1, 'S1', 'small-on', 'intel-2s-16c-smt')
        self.assert_scaled('1x32', 0, 'S3', 'off-1vm-8', 'intel-2s-16c-smt')
        self.assert_scaled('1x8', 1, 'S1', 'large-off', 'single-1s-8c-smt')

    def test_a_guest_per_socket_is_one_per_socket(self):
        self.assert_scaled('4x12', 1, 'S2', 'numa-socket', 'opteron-4s-12c')
        self.assert_scaled('1x16', 1, 'S2', 'numa-socket',
                           'single-1s-8c-smt')
        # A socket of four cells of 16 cores and 32 threads.
        self.assert_scaled('2x128', 4, 'S2', 'numa-socket',
                           'epyc-2s-64c-nps4')
        self.assert_scaled('1x12', 1, 'S1', 'small-on', 'opteron-4s-12c')

    def test_a_guest_that_fits_in_a_socket_is_kept_there(self):
        # Of several cells each; Nova would take them from both sockets.
        for name, cells in (('xeon-2s-24c-snc2-1g', 2),
                            ('xeon-max-2s-56c-snc4-hbm', 4)):
            for study_id, case in (('S1', 'small-on'), ('S2', 'numa-socket'),
                                   ('S4', '2x16-tuned')):
                found = on(study_id, case, name)
                guest = found.scaled.guest
                self.assertEqual(cells, len(guest.cells))
                self.assertEqual(shape.NUMAScope.SOCKET, guest.numa_scope)
                self.assertTrue(found.plan.packing)
        # One cell each, or more than a socket: there is nothing to keep.
        for name, case in (('hs06-2s-16c', '2x16-tuned'),
                           ('xeon-2s-24c-snc2-1g', '1x24-tuned')):
            found = on('S4', case, name)
            self.assertFalse(found.plan.packing)

    def test_halves_and_three_quarters_of_four_sockets(self):
        self.assert_scaled('2x24', 2, 'S4', '2x16-tuned', 'opteron-4s-12c')
        self.assert_scaled('1x36', 3, 'S4', '1x24-tuned', 'opteron-4s-12c')

    def test_each_of_several_hosts_gets_guests(self):
        two = ('opteron-4s-12c', 'opteron-4s-12c')
        self.assert_scaled('8x12', 1, 'S2', 'nodes-socket', *two)
        self.assert_scaled('2x48', 0, 'S2', 'nodes-virtio', *two)
        self.assert_scaled('3x32', 2, 'S5', 'wrf-sriov',
                           *('hs06-2s-16c',) * 3)

    def test_a_host_that_does_not_divide_is_refused(self):
        # 19 cores with two threads, 7 in one socket and 12 in the other.
        uneven = 'uneven-2s'
        self.assert_refused('38 CPUs cannot be divided so', 'S4', '4x8-tuned',
                            uneven)
        self.assert_refused('2 guests of 19 CPUs', 'S2', 'numa-socket',
                            uneven)
        self.assert_scaled('1x38', 2, 'S4', '1x32-tuned', uneven)
        self.assert_refused('needs SMT', 'S3', 'on-1vm-4', 'grace-2s-72c-64k')

    def test_the_number_of_hosts_is_the_study_s(self):
        host = 'hs06-2s-16c'
        self.assert_refused('of 2', 'S5', 'sriov', host)
        self.assert_refused('of 2', 'S5', 'sriov', host, host, host)
        self.assert_refused('of 2 to 6', 'S5', 'wrf-sriov', *(host,) * 7)
        self.assert_refused('runs on one host', 'S1', 'small-on', host, host)
        self.assert_refused('alike', 'S5', 'sriov', host, 'opteron-4s-12c')

    def test_all_cases_take_the_first_hosts_that_they_need(self):
        machines = [dataclasses.replace(hosts.named('hs06-2s-16c'),
                                        name=f'n{number}')
                    for number in range(6)]
        planner = case_plan.CasePlanner(machines, profile.DENSE)
        for name in ('S2', 'S4', 'S5'):
            study_ = study_catalogue.get(name)
            for case, found in zip(study_.cases, planner.plan_all(study_),
                                   strict=True):
                if 'memory' in case.host_settings:
                    self.assertIn('uniform memory', found.reason)
                    continue
                self.assertEqual(
                    tuple(host.name for host in machines[:case.hosts]),
                    found.scaled.hosts)

    def test_a_host_with_one_cell_is_uma(self):
        found = on('S2', 'uma-host', 'single-1s-8c-smt')
        self.assertIsInstance(found, case_plan.CasePlan)

    def test_guests_with_cells_may_have_small_pages(self):
        found = on('S4', '1x32-numa-quiet', 'hs06-2s-16c')
        self.assertEqual([4, 4], [cell.page_kib for cell
                                  in found.scaled.guest.cells])
        self.assertIn('hw:numa_nodes', found.flavor.extra_specs)

    def test_housekeeping_cores_are_not_given_to_guests(self):
        found = on('S4', '4x8-tuned', 'hs06-2s-16c',
                   housekeeping_cores_per_cell=2)
        self.assertEqual('4x7', found.scaled.shape)


class FlavorTest(unittest.TestCase):

    def test_a_tuned_flavor_decodes_to_the_scaled_guest(self):
        for host in hosts.shipped():
            for study_id, case in (('S4', '4x8-tuned'), ('S4', '1x32-tuned'),
                                   ('S1', 'large-on'),
                                   ('S2', 'numa-socket')):
                found = on(study_id, case, host.name)
                if isinstance(found, scaling.CaseRefusal):
                    self.assertEqual('uneven-2s', host.name)
                    continue
                flavor = found.flavor
                guest = codec.decode(flavor.vcpus, flavor.ram_mib,
                                     flavor.extra_specs)
                self.assertEqual(found.scaled.guest, guest)
                case_ = study_catalogue.get(study_id).case(case)
                small = 64 if 'grace' in host.name else 4
                self.assertEqual(
                    case_.guests.host_pages == 'large',
                    guest.cells[0].page_kib > small)
                room = sum(cell.memory_mib for cell in host.cells)
                self.assertLess(
                    flavor.ram_mib * found.scaled.per_host, room)

    def test_an_untuned_flavor_has_the_same_size_and_no_extra_specs(self):
        tuned = on('S4', '1x24-tuned', 'hs06-2s-16c').flavor
        untuned = on('S4', '1x24-untuned', 'hs06-2s-16c').flavor
        self.assertEqual({}, untuned.extra_specs)
        self.assertEqual((tuned.vcpus, tuned.ram_mib),
                         (untuned.vcpus, untuned.ram_mib))

    def test_the_flavor_is_not_marked_as_one_of_a_plan(self):
        flavor = on('S4', '4x8-tuned', 'hs06-2s-16c').flavor
        self.assertEqual('hpcvirt-s4-4x8-tuned', flavor.name)
        self.assertFalse([key for key in flavor.extra_specs
                          if key.startswith('hpcvirt:generated')])


class SettingsTest(unittest.TestCase):
    LOGIN = 'ssh from the first to the others without a prompt'

    @staticmethod
    def settings(*where):
        return '\n'.join(case_plan.list_settings(on(*where)))

    def test_several_hosts_log_in_to_each_other(self):
        host = 'hs06-2s-16c'
        alone = self.settings('S4', '4x8-tuned', host)
        self.assertNotIn(self.LOGIN, alone)
        self.assertIn('# n1\n# nova.conf', alone)
        several = self.settings('S5', 'virtio', host, host)
        self.assertIn(self.LOGIN, several)
        self.assertIn('# n2\n# nova.conf', several)

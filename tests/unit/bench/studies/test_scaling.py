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

import testtools

from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study
from hpcvirt.specs import codec
from tests import hosts

HOST = hosts.named('intel-2s-16c-smt')


def guest(vcpus, cells=1, memory_mib=8192):
    return codec.decode(vcpus, memory_mib, {
        'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': str(cells)})


def site(*guests, count=1, cpus=32, packages=2):
    names = tuple(f'n{number}' for number in range(count))
    return scaling.Site(names, cpus, packages, tuple(
        scaling.PlannedGuest(each, cpus // each.cpus) for each in guests))


def scale(study_id, case, *guests, **more):
    return scaling.scale(study_catalogue.get(study_id).case(case),
                         site(*guests, **more))


class TestScale(testtools.TestCase):
    def test_a_quarter_of_the_host_runs_four_times(self):
        scaled = scale('S4', '4x8-tuned', guest(8), guest(16))
        self.assertEqual(('4x8', 4, 8, guest(8)), (
            scaled.shape, scaled.per_host, scaled.vcpus, scaled.guest))

    def test_an_untuned_guest_has_the_size_and_floats(self):
        scaled = scale('S4', '4x8-untuned', guest(8))
        self.assertEqual((8, 8192, None), (
            scaled.vcpus, scaled.memory_mib, scaled.guest))

    def test_the_guest_with_the_fewest_cells_is_chosen(self):
        scaled = scale('S4', '2x16-tuned', guest(16, 2), guest(16, 1))
        self.assertEqual(1, len(scaled.guest.cells))

    def test_a_guest_of_which_too_few_fit_is_refused(self):
        few = scaling.Site(('a',), 32, 2, (
            scaling.PlannedGuest(guest(8), 3),))
        refusal = scaling.scale(
            study_catalogue.get('S4').case('4x8-tuned'), few)
        self.assertIn('4 guests of 8 CPUs', refusal.reason)

    def test_a_share_that_is_no_whole_number_of_cpus_is_refused(self):
        refusal = scale('S4', '4x8-tuned', guest(8), cpus=38)
        self.assertIn('38 CPUs cannot be divided', refusal.reason)

    def test_the_number_of_hosts_is_that_of_the_case(self):
        self.assertIn('one host, not on 2',
                      scale('S4', '4x8-tuned', guest(8), count=2).reason)
        for count in (1, 7):
            self.assertIn('2 to 6', scale(
                'S5', 'wrf-sriov', guest(32, 2), count=count).reason)
        self.assertEqual('3x32', scale(
            'S5', 'wrf-sriov', guest(32, 2), count=3).shape)


class TestSMT(testtools.TestCase):
    def case(self, smt):
        return next(case for case in study_catalogue.get('S3').cases
                    if case.host_settings['smt'] == smt)

    def test_a_host_without_smt_keeps_one_thread_of_each_core(self):
        host = scaling.with_smt_of(self.case('off'), HOST)
        self.assertEqual(len(HOST.cpus) // 2, len(host.cpus))
        self.assertEqual(1, host.threads_per_core)

    def test_a_host_that_shows_no_smt_cannot_have_it_on(self):
        bare = scaling.with_smt_of(self.case('off'), HOST)
        refusal = scaling.with_smt_of(self.case('on'), bare)
        self.assertIn('needs SMT', refusal.reason)
        self.assertEqual(HOST, scaling.with_smt_of(self.case('on'), HOST))


class TestShares(testtools.TestCase):
    def test_shares_of_the_study_s_host_give_the_study_s_guests(self):
        # S3 has 8 CPUs without and 16 with SMT, S4 has 32.
        for name, smt, cpus in (('S3', 'on', 16), ('S4', None, 32)):
            for case in study_catalogue.get(name).cases:
                guests = case.guests
                if (guests.partition is study.Partition.PART
                        and case.host_settings.get('smt') == smt):
                    above, below = map(int, guests.share.split('/'))
                    self.assertEqual(guests.vcpus * below, cpus * above)
                else:
                    self.assertEqual('', guests.share)

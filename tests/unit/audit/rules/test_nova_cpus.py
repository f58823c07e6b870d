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

"""The CPU sets of nova-compute against the topology."""

from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from tests import audited

DEDICATED = ('compute', 'cpu_dedicated_set')
SHARED = ('compute', 'cpu_shared_set')
CORES = [core for cell in audited.HOST.cells for core in cell.siblings]


def words(cpus):
    return (cpuset.render(cpus),)


class NovaCpusTest(audited.Case):

    def nova(self, code, profile=audited.PROFILE, **options):
        found = self.found(code, self.but(nova=options['nova']), profile)
        return [severity for severity, _ in found]

    def test_what_nova_compute_refuses(self):
        for options, expected in (
                ({}, 0), ({DEDICATED: ('2-x',)}, 1),
                ({DEDICATED: ('1,99',)}, 1), ({SHARED: ('99',)}, 1),
                ({DEDICATED: ('1-3',), SHARED: ('3-4',)}, 1),
                ({DEDICATED: ('1-3',), SHARED: ('4-5',)}, 0),
                ({DEDICATED: ('3,^3',)}, 1),
                ({('DEFAULT', 'vcpu_pin_set'): ('1-3',)}, 1)):
            self.assertEqual(['error'] * expected, self.nova(
                'nova-cpu-sets', nova=options), options)

    def test_power_management_takes_dedicated_cpus_offline(self):
        asleep = {DEDICATED: ('1,99',),
                  ('libvirt', 'cpu_power_management'): ('true',)}
        self.assertEqual([], self.nova('nova-cpu-sets', nova=asleep))
        asleep['libvirt', 'cpu_power_management_strategy'] = ('governor',)
        self.assertEqual(['error'], self.nova('nova-cpu-sets', nova=asleep))

    def test_dedicated_cpus_are_set(self):
        for profile in (None, audited.PROFILE):
            self.assertEqual(['error'], self.nova(
                'nova-dedicated', profile, nova={DEDICATED: None}))
            self.assertEqual([], self.nova('nova-dedicated', profile,
                                           nova={}))

    def test_sets_are_those_of_the_plan(self):
        dedicated = cpuset.parse(audited.GOOD.nova.get(*DEDICATED))
        for options, expected in (
                ({DEDICATED: words(dedicated - {min(dedicated)})}, ['error']),
                ({SHARED: None}, ['warning']), ({DEDICATED: None}, []),
                ({}, [])):
            self.assertEqual(expected, self.nova('nova-planned-cpus',
                                                 nova=options))
            self.assertEqual([], self.nova('nova-planned-cpus', None,
                                           nova=options))

    def test_siblings_stay_together(self):
        first, second, *rest = CORES
        whole = frozenset().union(*rest)
        for dedicated, shared, expected in (
                (whole, first, 0), (whole | {min(second)}, first, 1),
                (whole | {min(second)}, first | {max(second)}, 1)):
            self.assertEqual(['warning'] * expected, self.nova(
                'nova-siblings', None, nova={DEDICATED: words(dedicated),
                                             SHARED: words(shared)}))

    def test_a_profile_may_leave_siblings_idle(self):
        leave = profiles.build({'smt': 'leave'}, 'profile')
        firsts = words(min(core) for core in CORES[2:])
        for profile, expected in ((leave, []),
                                  (audited.PROFILE, ['warning'] * 2)):
            self.assertEqual(expected, self.nova(
                'nova-siblings', profile, nova={DEDICATED: firsts,
                                                SHARED: None}))

    def test_equal_cells_give_as_many_cpus(self):
        half = len(CORES) // 2
        for cores, expected in ((CORES[2:half] + CORES[half + 2:], 0),
                                (CORES[2:half] + CORES[half + 1:], 1)):
            cpus = frozenset().union(*cores)
            self.assertEqual(['warning'] * expected, self.nova(
                'nova-cells', None, nova={DEDICATED: words(cpus)}))

    def test_a_cell_without_shared_cpus_is_noted(self):
        self.assertEqual(['note'], self.nova(
            'nova-cells', None, nova={SHARED: words(CORES[0])}))

    def test_each_cell_has_a_cpu_for_the_host(self):
        half = len(CORES) // 2
        all_of_one = frozenset().union(*CORES[:half], *CORES[half + 1:])
        self.assertEqual(['warning'], self.nova(
            'host-cpus', None, nova={DEDICATED: words(all_of_one)}))
        self.assertEqual([], self.nova('host-cpus', None, nova={}))

    def test_emulator_threads_have_cpus_of_their_own(self):
        self.assertEqual(['warning'], self.nova('emulator-threads', None,
                                                nova={SHARED: None}))
        self.assertEqual(['warning'], self.nova('emulator-threads',
                                                nova={SHARED: None}))
        self.assertEqual([], self.nova('emulator-threads', profiles.DENSE,
                                       nova={SHARED: None}))

    def test_connections_of_live_migration_need_cores(self):
        option = ('libvirt', 'live_migration_parallel_connections')
        # The plan leaves one core of each of the two cells.
        for text, expected in (('1', []), ('2', []), ('3', ['warning']),
                               ('many', [])):
            self.assertEqual(expected, self.nova('migration-cores',
                                                 nova={option: (text,)}))

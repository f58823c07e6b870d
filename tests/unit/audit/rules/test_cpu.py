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

"""SMT, frequency, C-states, microcode and cells."""

import dataclasses

from hpcvirt.audit import facts as facts_module
from hpcvirt.audit.rules import cpu
from hpcvirt.flavors import profile as profiles
from tests import audited
from tests import hosts

CPUS = audited.HOST.cpus


class CpuTest(audited.Case):

    def cpu(self, code, profile=audited.PROFILE, **fields):
        return self.found(code, self.but(cpu=fields), profile)

    def on(self, host, code, **fields):
        """Return the findings on another topology, without a profile."""
        facts = dataclasses.replace(self.but(cpu=fields), host=host)
        return [severity for severity, _ in self.found(code, facts, None)]

    def frequency(self, governor='performance', preference=None,
                  driver='intel_pstate', boost=None):
        return {'frequencies': (facts_module.Frequency(
            CPUS, driver, governor, preference, boost),)}

    def test_smt_as_the_profile_wants_it(self):
        leave = profiles.build({'smt': 'leave'}, 'profile')
        for state, profile, expected in (
                ('on', audited.PROFILE, []), ('off', None, []),
                ('off', audited.PROFILE, ['warning']),
                ('forceoff', audited.PROFILE, ['warning']),
                ('notsupported', audited.PROFILE, []),
                (None, audited.PROFILE, []), ('on', leave, ['note'])):
            self.assertEqual(expected, [
                severity for severity, _
                in self.cpu('smt', profile, smt=state)], state)

    def test_a_sibling_that_is_offline(self):
        cell = audited.HOST.cells[0]
        lost = max(cell.siblings[0])
        broken = dataclasses.replace(
            cell, cpus=cell.cpus - {lost},
            siblings=(cell.siblings[0] - {lost}, *cell.siblings[1:]))
        host = dataclasses.replace(audited.HOST, cells=(
            broken, *audited.HOST.cells[1:]))
        self.assertEqual(['warning'], self.on(host, 'smt'))

    def test_governor(self):
        for fields, expected in (
                (self.frequency(), 0), (self.frequency('powersave'), 1),
                (self.frequency('powersave', 'performance'), 0),
                (self.frequency('powersave', 'performance',
                                'amd-pstate-epp'), 0),
                (self.frequency('powersave', 'performance', 'acpi-cpufreq'),
                 1),
                (self.frequency('powersave', 'balance_performance'), 1),
                (self.frequency('schedutil'), 1), ({'frequencies': ()}, 0)):
            self.assertEqual(expected, len(self.cpu('governor', **fields)),
                             fields)

    def test_nova_may_manage_the_governor(self):
        managed = {('libvirt', 'cpu_power_management'): ('True',)}
        slow = self.but(cpu=self.frequency('powersave'), nova=managed)
        self.assertEqual(1, len(self.found('governor', slow)))
        slow = self.but(slow, nova={
            ('libvirt', 'cpu_power_management_strategy'): ('governor',)})
        self.assertEqual(0, len(self.found('governor', slow)))

    def test_turbo(self):
        for fields, expected in (
                ({'no_turbo': True}, 1), ({'no_turbo': False}, 0),
                ({'no_turbo': None, 'boost': False}, 1),
                ({'no_turbo': None, 'boost': True}, 0),
                ({'no_turbo': None, 'boost': None}, 0),
                ({'no_turbo': None, **self.frequency(boost=False)}, 1),
                ({'no_turbo': None, **self.frequency(boost=True)}, 0)):
            self.assertEqual(expected, len(self.cpu('turbo', **fields)),
                             fields)

    def test_idle_states(self):
        most = cpu.MOST_LATENCY_US
        for latency, limit, expected in (
                (most, None, 0), (most + 1, None, 1), (most + 1, most, 0),
                (most + 1, most + 1, 1)):
            states = (facts_module.IdleState('C6', latency, CPUS),)
            self.assertEqual(expected, len(self.cpu(
                'c-states', idle_states=states, wake_limit_us=limit)))

    def test_microcode(self):
        two = {'1': frozenset({0}), '2': CPUS - {0}}
        self.assertEqual(1, len(self.cpu('microcode', microcode=two)))
        self.assertEqual(0, len(self.cpu('microcode', microcode=two,
                                         is_guest=True)))
        self.assertEqual(0, len(self.cpu('microcode', microcode=None)))
        for name, state, expected in (
                ('mds', ('Vulnerable: Clear CPU buffers attempted, no '
                 'microcode; SMT vulnerable'), 1),
                ('gather_data_sampling', 'Vulnerable: No microcode', 1),
                ('old_microcode', 'Vulnerable', 1),
                ('old_microcode', 'Not affected', 0),
                ('spec_store_bypass', 'Vulnerable', 0)):
            facts = self.but(kernel={'vulnerabilities': {name: state}})
            self.assertEqual(expected, len(self.found('microcode', facts)),
                             state)

    def test_packages_have_as_many_cells(self):
        amd = {'vendor': 'AuthenticAMD'}
        uneven = hosts.build(3, 4, packages=2)
        self.assertEqual(['warning'], self.on(uneven, 'cells-per-package'))
        for host, expected in (
                (hosts.build(2, 8, llc_cores=2), ['note']),
                (hosts.build(2, 6, llc_cores=2), []),
                (hosts.build(8, 8, llc_cores=2, packages=2), [])):
            self.assertEqual(expected, self.on(host, 'cells-per-package',
                                               **amd))
        self.assertEqual([], self.on(hosts.build(2, 8, llc_cores=2),
                                     'cells-per-package'))

    def test_cells_have_as_much_memory(self):
        for sizes, expected in (
                ((65536, 65536), []), ((65536, 58983), []),
                ((65536, 58982), ['warning']), ((4096, 3072), []),
                ((4096, 3071), ['warning'])):
            host = hosts.build(2, 4, mib=sizes)
            self.assertEqual(expected, self.on(host, 'cell-memory'), sizes)

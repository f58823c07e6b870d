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

"""What runs on the dedicated CPUs."""

from hpcvirt.audit import facts as facts_module
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from tests import audited

OWN = audited.GOOD.kernel.init_cpus
ALL = audited.HOST.cpus
GUESTS = ALL - OWN
#: A dedicated CPU.
ONE = frozenset({min(GUESTS)})


class IsolationTest(audited.Case):

    def kernel(self, code, profile=audited.PROFILE, **fields):
        return self.found(code, self.but(kernel=fields), profile)

    def severities(self, code, **fields):
        return [severity for severity, _ in self.kernel(code, **fields)]

    def interrupt(self, name='eth0', allowed=ONE, effective=None):
        return {'interrupts': (facts_module.Interrupt(
            9, name, allowed, effective),)}

    def test_services_stay_off_dedicated_cpus(self):
        self.assertEqual([], self.kernel('isolation'))
        self.assertEqual(
            [('warning', f'services may run on the dedicated CPU {min(ONE)}')],
            self.kernel('isolation', init_cpus=OWN | ONE))

    def test_isolcpus_keeps_services_off_as_well(self):
        self.assertEqual([], self.kernel('isolation', init_cpus=ALL,
                                         isolated=GUESTS))
        self.assertEqual(
            ['warning'], self.severities('isolation', init_cpus=ALL,
                                         isolated=GUESTS - ONE))

    def test_a_host_that_keeps_no_cpu_cannot_isolate(self):
        every = self.but(nova={
            ('compute', 'cpu_dedicated_set'): (cpuset.render(ALL),),
            ('compute', 'cpu_shared_set'): None}, kernel={'init_cpus': ALL})
        for code in ('isolation', 'nohz-full', 'rcu-callbacks',
                     'irq-affinity', 'irqbalance'):
            self.assertEqual([], self.found(code, every, None))

    def test_shared_cpus_must_not_be_isolated(self):
        shared = audited.GOOD.nova.get('compute', 'cpu_shared_set')
        self.assertEqual(
            [('error', f'the shared CPUs {shared} are isolated (isolcpus)')],
            self.kernel('isolated-shared', isolated=ALL))
        self.assertEqual([], self.kernel('isolated-shared', isolated=GUESTS))

    def test_ticks(self):
        self.assertEqual([], self.severities('nohz-full'))
        self.assertEqual(['note'], self.severities('nohz-full',
                                                   nohz_full=frozenset()))
        self.assertEqual(['warning'], self.severities(
            'nohz-full', nohz_full=GUESTS - ONE))
        self.assertEqual(['warning'], self.severities('nohz-full',
                                                      nohz_full=ALL))

    def test_callbacks(self):
        text = cpuset.render(GUESTS)
        off = {'nohz_full': frozenset()}
        self.assertEqual([], self.severities('rcu-callbacks',
                                             command_line=()))
        for word, expected in (
                ('quiet', ['note']), (f'rcu_nocbs={text}', []),
                ('rcu_nocbs=all', []), (f'rcu_nocbs={min(ONE)}', ['warning'])):
            self.assertEqual(expected, self.severities(
                'rcu-callbacks', command_line=(word,), **off), word)

    def test_interrupts(self):
        for fields, expected in (
                (self.interrupt(), 1), (self.interrupt(allowed=OWN), 0),
                (self.interrupt(allowed=ALL, effective=OWN), 0),
                (self.interrupt(allowed=ALL, effective=ONE), 1),
                (self.interrupt('nvme0q3'), 0),
                (self.interrupt('vfio-msix[0](0000:41:00.1)'), 0)):
            self.assertEqual(expected, len(self.kernel('irq-affinity',
                                                       **fields)), fields)

    def test_irqbalance_leaves_alone_what_it_is_told_or_what_is_quiet(self):
        for fields, expected in (
                ({}, 0), ({'nohz_full': GUESTS - ONE}, 1),
                ({'nohz_full': frozenset(), 'isolated': GUESTS}, 0),
                ({'nohz_full': frozenset(), 'banned_cpus': GUESTS}, 0),
                ({'banned_cpus': GUESTS - ONE}, 1),
                ({'nohz_full': frozenset(),
                  'programs': frozenset({'sshd'})}, 0)):
            self.assertEqual(expected, len(self.kernel('irqbalance',
                                                       **fields)), fields)

    def test_siblings_that_stay_idle_are_guarded_too(self):
        leave = profiles.build({'smt': 'leave'}, 'profile')
        facts = audited.facts(audited.tree(profile=leave))
        self.assertNotIn('isolation', self.codes(facts, leave))
        dedicated = cpuset.parse(
            facts.nova.get('compute', 'cpu_dedicated_set'))
        sibling = next(core - dedicated for cell in audited.HOST.cells
                       for core in cell.siblings if core & dedicated)
        disturbed = self.but(facts, kernel={
            'init_cpus': facts.kernel.init_cpus | sibling})
        self.assertIn('isolation', self.codes(disturbed, leave))

# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.audit import audit
from hpcvirt.audit.reading.kernel import Interrupt
from hpcvirt.audit.reading.kernel import Program
from hpcvirt.audit.rules import isolation
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from tests.builders import audited

ALL = audited.HOST.cpus
EIGHT = frozenset(range(8))


class IsolationTest(audited.Case):
    """What runs on the dedicated CPUs."""

    def kernel(self, code, **fields):
        return self.found(code, self.but(kernel=fields))

    def interrupt(self, name='eth0', cpus=audited.ONE):
        return {'interrupts': (Interrupt(9, name, cpus),)}

    def running(self, cpus, unit='system.slice', name='sshd'):
        return {'running': frozenset({Program(name, cpus, unit)})}

    def test_programs_stay_off_dedicated_cpus(self):
        self.check('isolation', [])
        self.assertEqual(
            [('warning',
              f'sshd may run on the dedicated CPU {min(audited.ONE)}')],
            self.kernel('isolation', **self.running(
                audited.HOUSEKEEPING | audited.ONE)))

    def test_what_is_advised_keeps_the_programs_off_that_are_found(self):
        slice_ = ['[Slice]',
                  f'AllowedCPUs={cpuset.render(audited.HOUSEKEEPING)}']
        for unit, expected in (
                ('system.slice', slice_), ('machine.slice', []),
                ('', [*slice_, *slice_, '[Scope]', slice_[1]])):
            facts = self.but(kernel=self.running(ALL, unit))
            item, = (item for item in audit.audit(facts).findings
                     if item.code == 'isolation')
            self.assertEqual(expected, [line for line in item.change
                                        if not line.startswith('#')])
        found = audit.audit(self.but(
            kernel=self.running(ALL, 'machine.slice'))).findings
        self.assertIn(f'--cpuset-cpus={cpuset.render(audited.HOUSEKEEPING)}',
                      str(found))

    def test_isolcpus_keeps_programs_off_as_well(self):
        self.check('isolation', [],
                   kernel={**self.running(ALL),
                           'isolated': audited.GUESTS})
        self.check('isolation', ['warning'],
                   kernel={**self.running(ALL),
                           'isolated': audited.GUESTS - audited.ONE})

    def test_a_host_that_keeps_no_cpu_cannot_isolate(self):
        every = self.but(nova={
            ('compute', 'cpu_dedicated_set'): (cpuset.render(ALL),),
            ('compute', 'cpu_shared_set'): None}, kernel=self.running(ALL))
        for code in ('isolation', 'nohz-full', 'rcu-callbacks',
                     'irq-affinity', 'irqbalance'):
            self.check(code, [], every, profile=None)

    def test_shared_cpus_must_not_be_isolated(self):
        shared = audited.GOOD.nova.get('compute', 'cpu_shared_set')
        self.assertEqual(
            [('error', f'the shared CPUs {shared} are isolated (isolcpus)')],
            self.kernel('isolated-shared', isolated=ALL))
        self.check('isolated-shared', [], kernel={'isolated': audited.GUESTS})

    def test_ticks(self):
        self.check('nohz-full', [])
        self.check('nohz-full', ['note'], kernel={'nohz_full': frozenset()})
        self.check('nohz-full', ['warning'],
                   kernel={'nohz_full': audited.GUESTS - audited.ONE})
        self.check('nohz-full', ['warning'], kernel={'nohz_full': ALL})

    def test_a_parameter_that_the_kernel_ignores_is_not_advised(self):
        word = f'nohz_full={cpuset.render(audited.GUESTS)}'
        for words, is_advised in (((), True), ((word,), False)):
            ignored = self.but(audited.GOOD, kernel={
                'command_line': words, 'nohz_full': frozenset()})
            (found,) = [item for item in audit.audit(ignored).findings
                        if item.code == 'nohz-full']
            self.assertEqual(is_advised, word in found.change)
            self.assertNotEqual(is_advised,
                                'CONFIG_NO_HZ_FULL' in found.change[0])

    def test_changes_last_where_the_kernel_or_systemd_reads_them(self):
        for path, value, words in (
                ('proc/sys/vm/zone_reclaim_mode', '1',
                 '"vm.zone_reclaim_mode = 0" in /etc/sysctl.d'),
                ('sys/module/kvm/parameters/halt_poll_ns', '0',
                 '"options kvm halt_poll_ns=200000" in /etc/modprobe.d'),
                (('sys/devices/system/clocksource/clocksource0/'
                  'current_clocksource'), 'hpet',
                 'clocksource=tsc on the kernel command line'),
                ('sys/kernel/mm/transparent_hugepage/khugepaged/defrag', '0',
                 ('"w! /sys/kernel/mm/transparent_hugepage/khugepaged/defrag '
                  '- - - - 1" in /etc/tmpfiles.d'))):
            facts = self.but(memory={'thp': 'always', 'huge_pages': ()})
            changes = [line for item in audit.audit(audited.replace(
                facts, **{path: value})).findings
                       for line in item.change]
            self.assertIn(f'# lasting: {words}', ''.join(changes), path)

    def test_callbacks(self):
        text = cpuset.render(audited.GUESTS)
        off = {'nohz_full': frozenset()}
        self.check('rcu-callbacks', [], kernel={'command_line': ()})
        for word, expected in (
                ('quiet', ['note']), (f'rcu_nocbs={text}', []),
                ('rcu_nocbs=all', []),
                (f'rcu_nocbs={min(audited.ONE)}', ['warning'])):
            self.check('rcu-callbacks', expected,
                       kernel={'command_line': (word,), **off})

    def test_interrupts(self):
        for fields, expected in (
                (self.interrupt(), 1),
                (self.interrupt(cpus=audited.HOUSEKEEPING), 0),
                (self.interrupt('nvme0q3'), 0),
                (self.interrupt('megasas0-msix12'), 0),
                (self.interrupt('mpt3sas0-msix3'), 0),
                (self.interrupt('qla2xxx0_qpair2'), 0),
                (self.interrupt('smartpqi'), 0),
                (self.interrupt('virtio0-req.2'), 0),
                # Of a file system of the hypervisor: it can be moved.
                (self.interrupt('virtio0-requests'), 1),
                (self.interrupt('virtio1-input.0'), 1),
                (self.interrupt('vfio-msix[0](0000:41:00.1)'), 0)):
            self.check('irq-affinity', expected, kernel=fields)

    def test_irqbalance_leaves_alone_what_it_is_told_or_what_is_quiet(self):
        for fields, expected in (
                ({}, 0), ({'nohz_full': audited.GUESTS - audited.ONE}, 1),
                ({'nohz_full': frozenset(), 'isolated': audited.GUESTS}, 0),
                ({'nohz_full': frozenset(), 'banned_cpus': audited.GUESTS}, 0),
                ({'banned_cpus': audited.GUESTS - audited.ONE}, 1),
                ({'nohz_full': frozenset(),
                  'programs': frozenset({'sshd'})}, 0)):
            self.check('irqbalance', expected,
                       kernel={'banned_cpus': None, **fields})

    def test_siblings_that_stay_idle_are_guarded_too(self):
        leave = profiles.build({'smt': 'leave'}, 'profile')
        facts = audited.facts(audited.tree(profile=leave))
        self.assertNotIn('isolation', self.codes(facts, leave))
        dedicated = cpuset.parse(
            facts.nova.get('compute', 'cpu_dedicated_set'))
        sibling = next(core - dedicated for cell in audited.HOST.cells
                       for core in cell.siblings if core & dedicated)
        disturbed = self.but(facts, kernel={
            **self.running(audited.HOUSEKEEPING | sibling)})
        self.assertIn('isolation', self.codes(disturbed, leave))


class KernelCpusTest(unittest.TestCase):
    """Lists of CPUs on the kernel command line."""

    def test_lists_as_the_kernel_documents_them(self):
        for text, expected in (
                ('2-5', {2, 3, 4, 5}), ('1,7', {1, 7}), ('all', EIGHT),
                ('N', {7}), ('4-N', {4, 5, 6, 7}), ('0-7:1/4', {0, 4}),
                ('0-7:2/4', {0, 1, 4, 5}), ('managed_irq,domain,2-3', {2, 3}),
                ('6-99', {6, 7}), ('', set()), ('nohz', set())):
            self.assertEqual(expected, isolation.parse_parameter(
                (f'isolcpus={text}',), 'isolcpus', EIGHT), text)

    def test_the_last_of_a_parameter_counts(self):
        line = ('quiet', 'rcu_nocbs=1', 'rcu_nocbs=2-3', 'rcu_nocb_poll')
        self.assertEqual({2, 3}, isolation.parse_parameter(
            line, 'rcu_nocbs', EIGHT))
        self.assertEqual(frozenset(), isolation.parse_parameter(
            line, 'isolcpus', EIGHT))

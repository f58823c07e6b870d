# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from hpcvirt.bench.analysis import confounders
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from tests.builders import runs

XEON = 'Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz'
EPYC = 'AMD EPYC 7742 64-Core Processor'
NATIVE = [100.0, 101.3, 99.1, 100.4, 98.7, 101.9, 100.8, 99.6, 100.2, 99.3]
GUEST = [99.0, 100.1, 98.3, 99.7, 98.1, 100.6, 99.9, 98.4, 99.5, 98.6]


def measured(native, guest, **more):
    """A run that passes, with facts of each side, or of each of its pairs."""
    run = runs.run(NATIVE, GUEST, **more)
    facts = {record.Side.NATIVE: native, record.Side.GUEST: guest}

    def of(sample):
        found = facts[sample.side]
        return found[sample.pair] if isinstance(found, list) else found
    return dataclasses.replace(run, samples=tuple(
        dataclasses.replace(sample, environment=of(sample))
        for sample in run.samples))


def differing(native, guest):
    return confounders.differences(measured(native, guest))


class TestMeaningless(testtools.TestCase):
    def why(self, native, guest):
        found = verdict.judge([measured(native, guest)])
        if found.result is judgement.VerdictResult.INVALID:
            return found.reason
        self.assertIs(judgement.VerdictResult.PASS, found.result)
        return None

    def test_another_cpu_is_another_measurement(self):
        self.assertIn(f'different CPUs: {XEON} natively, {EPYC} in the guest',
                      self.why({'cpu.model': XEON}, {'cpu.model': EPYC}))
        # One of two guests ran on another host.
        self.assertIn('different CPUs', self.why(
            {'cpu.model': XEON}, {'cpu.model@a': XEON, 'cpu.model@b': EPYC}))

    def test_the_name_that_a_hypervisor_gives_is_no_other_cpu(self):
        for name in (XEON, 'Intel Xeon Processor (Skylake, IBRS)',
                     'Intel Core Processor (Haswell, no TSX)',
                     'Intel Xeon E312xx (Sandy Bridge)',
                     'Westmere E56xx/L56xx/X56xx (Nehalem-C)',
                     'QEMU Virtual CPU version 2.5+',
                     'QEMU TCG CPU version 2.5+', 'Common KVM processor',
                     'AMD EPYC-Rome Processor', 'AMD EPYC Processor',
                     'Intel(R) Core(TM)2 Duo CPU     T7700  @ 2.40GHz',
                     'AMD Phenom(tm) 9550 Quad-Core Processor'):
            self.assertIsNone(self.why({'cpu.model': XEON},
                                       {'cpu.model': name}), name)

    def test_another_architecture_binary_or_number_of_cores(self):
        for name, native, guest, reason in (
                ('arch', 'x86_64', 'aarch64', 'different architectures'),
                ('program.hpcc', 'a' * 64, 'b' * 64,
                 'different binaries of hpcc: aaaaaaaaaaaa natively'),
                ('cores.used', '4', '8', 'different numbers of cores: 4')):
            self.assertIn(reason, self.why({name: native}, {name: guest}))
            self.assertIsNone(self.why({name: native}, {name: native}))
            self.assertIsNone(self.why({}, {name: guest}))

    def test_a_binary_that_is_replaced_during_the_run(self):
        names = [{'program.hpcc': 'a' if pair < 5 else 'b'}
                 for pair in range(10)]
        self.assertIn('different binaries', self.why(names, names))

    def test_another_launcher_is_no_other_binary(self):
        for name in ('mpirun', 'env', 'sh', 'numactl'):
            self.assertIsNone(self.why({f'program.{name}': 'a'},
                                       {f'program.{name}': 'b'}))


class TestDifferences(testtools.TestCase):
    def test_equal_arms_do_not_differ(self):
        facts = {'cpu.model': XEON, 'cpu.governor': 'performance',
                 'pages.thp': '[always] madvise never', 'kernel': '6.1',
                 'cpu.flags': 'fpu sse avx2', 'kernel.cmdline': 'root=/dev/a'}
        self.assertEqual((), differing(facts, {
            **facts, 'kernel.cmdline': 'root=/dev/b', 'virtual': 'yes'}))

    def test_each_fact_that_differs_is_named_with_both_values(self):
        for name, shown in (
                ('cpu.model', 'CPU model'), ('kernel', 'kernel'),
                ('mpirun', 'MPI'), ('libc', 'C library'),
                ('clocksource', 'clock source'), ('cpu.governor', 'governor'),
                ('cpu.no_turbo', 'turbo off'), ('cpu.boost', 'turbo'),
                ('cpu.microcode', 'microcode'),
                ('library.libblas.so.3', 'libblas.so.3')):
            self.assertEqual((f'{shown}: a natively, b in the guest',),
                             differing({name: 'a'}, {name: 'b'}))

    def test_what_is_the_hosts_alone_is_not_compared_with_a_guest(self):
        for name in ('cpu.governor', 'cpu.no_turbo', 'cpu.microcode',
                     'cpu.smt', 'pages.ksm'):
            self.assertEqual((), differing(
                {name: 'a', 'virtual': 'no'}, {name: 'b', 'virtual': 'yes'}))

    def test_the_chosen_policy_of_huge_pages_is_shown(self):
        self.assertEqual(
            ('transparent huge pages: always natively, madvise in the guest',),
            differing({'pages.thp': '[always] madvise never'},
                      {'pages.thp': 'always [madvise] never'}))

    def test_what_changes_during_a_run_is_named(self):
        changing = [{'cpu.governor': 'powersave' if pair < 4
                     else 'performance'} for pair in range(10)]
        self.assertEqual(
            (('governor of native changed during the run: powersave, then '
              'performance'),), differing(changing, {'virtual': 'yes'}))

    def test_guests_that_differ_from_each_other_do_not_change(self):
        found = differing({'kernel': '6.1'},
                          {'kernel@a': '6.1', 'kernel@b': '6.6'})
        self.assertEqual(
            ('kernel: 6.1 natively, 6.1 / 6.6 in the guest',), found)

    def test_native_that_may_use_all_cores(self):
        self.assertEqual(
            ('cores: native was not confined to the 4 of guest',),
            differing({'place': 'local'}, {'place': 'ssh://a',
                                           'cores.used': '4'}))
        # A machine that is compared with itself.
        self.assertEqual((), differing(
            {'place': 'local'}, {'place': 'local', 'cores.used': '4'}))

    def test_features_that_the_cpu_of_a_guest_lacks(self):
        self.assertEqual(
            ('CPU features that guest lacks: avx2, avx512f',),
            differing({'cpu.flags': 'fpu vmx sse avx2 avx512f'},
                      {'cpu.flags': 'fpu hypervisor sse'}))

    def test_options_of_a_kernel_that_change_its_speed(self):
        self.assertEqual(
            (('options of the kernel of native alone: isolcpus=2-9 '
              'mitigations=off'),),
            differing(
                {'kernel.cmdline': 'root=/a mitigations=off isolcpus=2-9'},
                {'kernel.cmdline': 'root=/b quiet'}))

    def test_mitigations_of_cpu_bugs(self):
        self.assertEqual(
            ('mitigations of CPU bugs: mds, meltdown',),
            differing({'mitigation.meltdown': 'Vulnerable',
                       'mitigation.mds': 'Vulnerable',
                       'mitigation.l1tf': 'Not affected'},
                      {'mitigation.meltdown': 'Mitigation: PTI',
                       'mitigation.mds': 'Mitigation: Clear CPU buffers',
                       'mitigation.l1tf': 'Not affected'}))

    def test_load_and_a_cold_page_cache(self):
        quiet = {'running.before': '1', 'iowait_percent': '0.1',
                 'disk_read_mib': '2', 'steal_percent': '0.0'}
        self.assertEqual((), differing(quiet, quiet))
        self.assertEqual(
            ('programs that ran before a sample: 1 natively, 4 in the guest',
             'CPU time spent waiting, %: 0.1 natively, 20 in the guest',
             ('page cache, MiB that a sample had to read from disk: 2 '
              'natively, 700 in the guest'),
             '3.5 % of the CPU time of the guest was stolen'),
            differing(quiet, {
                'running.before': '4', 'iowait_percent': '20',
                'disk_read_mib': '700', 'steal_percent': '3.5'}))

    def test_a_busy_machine_is_equally_busy_within_a_quarter(self):
        self.assertEqual((), differing({'running.before': '9'},
                                       {'running.before': '8'}))

    def test_one_sample_is_no_habit(self):
        once = [{'running.before': '9' if pair == 3 else '1'}
                for pair in range(10)]
        self.assertEqual((), differing({'running.before': '1'}, once))

    def test_what_differs_in_some_runs_only_names_these(self):
        first = measured({'kernel': 'a', 'libc': 'x'},
                         {'kernel': 'b', 'libc': 'y'}, id='1', case='one')
        second = measured({'kernel': 'a', 'libc': 'x'},
                          {'kernel': 'b', 'libc': 'x'}, id='2', case='two')
        found = verdict.judge([first, second])
        self.assertEqual(
            ('kernel: a natively, b in the guest',
             f'{first.label}: C library: x natively, y in the guest'),
            found.differences)

# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import policies

CPU = 'hw:cpu_policy'
MASK = 'hw:cpu_dedicated_mask'
THREAD = 'hw:cpu_thread_policy'
EMULATOR = 'hw:emulator_threads_policy'
REALTIME = {'hw:cpu_realtime': 'true'}
RT_MASK = 'hw:cpu_realtime_mask'
SMT = 'trait:HW_CPU_HYPERTHREADING'


class ReadTest(unittest.TestCase):
    def test_nothing_means_shared(self):
        found = policies.read(4, {})
        self.assertEqual(
            policies.Policies(shape.CPUPolicy.SHARED, None, None, frozenset()),
            found)

    def test_dedicated_vcpus_of_each_policy(self):
        for specs, dedicated in (
                ({CPU: 'shared'}, set()),
                ({CPU: 'dedicated'}, {0, 1, 2, 3}),
                ({'resources:PCPU': '4'}, {0, 1, 2, 3}),
                ({'resources:VCPU': '4'}, set()),
                ({'resources:PCPU': '5', EMULATOR: 'isolate'}, {0, 1, 2, 3}),
                ({CPU: 'mixed', MASK: '2-3'}, {2, 3}),
                ({CPU: 'mixed', MASK: '^0'}, {1, 2, 3}),
                ({CPU: 'mixed', **REALTIME, RT_MASK: '1'}, {1})):
            self.assertEqual(dedicated, policies.read(4, specs).dedicated,
                             specs)

    def test_combinations_that_nova_refuses(self):
        for specs, name in (
                ({CPU: 'dedicated', 'resources:PCPU': '4'}, CPU),
                ({'resources:VCPU': '2', 'resources:PCPU': '2'},
                 'resources:PCPU'),
                ({'resources:PCPU': '3'}, 'resources:PCPU'),
                ({CPU: 'dedicated', THREAD: 'require', SMT: 'required'},
                 THREAD),
                ({CPU: 'dedicated', MASK: '1'}, MASK),
                ({CPU: 'mixed'}, CPU),
                ({CPU: 'mixed', MASK: '1', **REALTIME, RT_MASK: '1'}, CPU),
                ({CPU: 'mixed', MASK: '0-3'}, MASK),
                ({CPU: 'mixed', MASK: '4'}, MASK),
                ({CPU: 'dedicated', **REALTIME}, RT_MASK),
                ({THREAD: 'require'}, THREAD),
                ({EMULATOR: 'isolate'}, EMULATOR),
                ({**REALTIME, RT_MASK: '1'}, 'hw:cpu_realtime'),
                ({CPU: 'pinned'}, CPU)):
            with self.assertRaises(exception.InvalidInput) as caught:
                policies.read(4, specs)
            self.assertEqual(name, caught.exception.where, specs)


class DedicatedRangeTest(unittest.TestCase):
    def test_the_numbers_that_each_policy_allows(self):
        for policy, expected in ((shape.CPUPolicy.DEDICATED, [4]),
                                 (shape.CPUPolicy.MIXED, [1, 2, 3]),
                                 (shape.CPUPolicy.SHARED, [0])):
            self.assertEqual(expected,
                             list(policies.dedicated_range(policy, 4)))

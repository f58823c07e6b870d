# SPDX-License-Identifier: Apache-2.0

import unittest

from hypothesis import given
from hypothesis import strategies

from hpcvirt import exception
from hpcvirt.specs import codec
from hpcvirt.specs import mistakes

REQUIRE = {'hw:cpu_thread_policy': 'require'}
CELLS = {'hw:numa_nodes': '2', 'hw:numa_cpus.0': '0-3',
         'hw:numa_cpus.1': '4-7', 'hw:numa_mem.0': '512',
         'hw:numa_mem.1': '512'}
WORDS = ('', '0', '1', '2', '3', '0-3', '4-7', '512', 'dedicated', 'Shared',
         'mixed', 'isolate', 'require', 'yes', 'large', '2MB', '1XB', 'a:1')
KEYS = (*CELLS, 'hw:cpu_policy', 'hw:cpu_thread_policy',
        'hw:emulator_threads_policy', 'hw:cpu_dedicated_mask',
        'hw:cpu_realtime', 'hw:cpu_realtime_mask', 'hw:mem_page_size',
        'hw:locked_memory', 'hw:cpu_max_sockets', 'hw:cpu_threads',
        'resources:PCPU', 'resources:VCPU', 'trait:HW_CPU_HYPERTHREADING',
        'pci_passthrough:alias', 'hpcvirt:numa_scope')


def places(specs, vcpus=8, ram=1024):
    return [item.where for item in mistakes.find(vcpus, ram, specs).refusals]


class MistakesTest(unittest.TestCase):
    def test_a_flavor_without_mistakes(self):
        self.assertEqual([], places(CELLS))

    def test_all_mistakes_are_found(self):
        self.assertEqual(
            ['hw:cpu_policy', 'hw:mem_page_size', 'hw:numa_nodes',
             'hw:cpu_max_sockets', 'hpcvirt:numa_scope'],
            sorted(places({
                'hw:cpu_policy': 'pinned', 'hw:mem_page_size': '2 MB',
                'hw:numa_nodes': '3', 'hw:cpu_max_sockets': 'x',
                'hpcvirt:numa_scope': 'rack'}),
                key=['hw:cpu_policy', 'hw:mem_page_size', 'hw:numa_nodes',
                     'hw:cpu_max_sockets', 'hpcvirt:numa_scope'].index))

    def test_what_follows_from_a_mistake_is_none(self):
        for specs in ({'hw:cpu_policy': 'Dedicated', **REQUIRE},
                      {'hw:cpu_policy': 'pinned', **REQUIRE},
                      {'hw:cpu_policy': 'Mixed', 'hw:cpu_dedicated_mask': '1'},
                      {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': 'x'},
                      {'hw:mem_page_size': '2 MB', 'hw:locked_memory': 'yes'},
                      {'resources:PCPU': '7', **REQUIRE}):
            with self.subTest(specs):
                self.assertEqual(1, len(places(specs)))

    def test_cells_can_have_a_mistake_in_cpus_and_one_in_memory(self):
        self.assertEqual(
            ['hw:numa_cpus.1', 'hw:numa_mem.N'],
            places({**CELLS, 'hw:numa_cpus.1': '3-7',
                    'hw:numa_mem.1': '511'}))
        self.assertEqual(
            ['hw:numa_nodes', 'hw:numa_mem.N'],
            places({**CELLS, 'hw:numa_nodes': '4', 'hw:numa_mem.1': '511'}))

    def test_vcpus_and_memory_that_do_not_divide_are_both_named(self):
        refused, = mistakes.find(3, 4097, {'hw:numa_nodes': '2'}).refusals
        self.assertEqual('3 vCPUs and 4097 MiB do not divide into 2 guest '
                         'cells', refused.what)

    def test_a_size_that_no_correction_helps_is_told_once(self):
        found = mistakes.find(0, 1024, CELLS)
        self.assertEqual(['vcpus'], [item.where for item in found.refusals])
        self.assertIsNone(found.guest)

    @given(strategies.dictionaries(strategies.sampled_from(KEYS),
                                   strategies.sampled_from(WORDS)),
           strategies.integers(1, 9), strategies.integers(0, 1025))
    def test_the_first_mistake_is_that_of_nova(self, specs, vcpus, ram):
        found = mistakes.find(vcpus, ram, specs)
        try:
            guest = codec.decode(vcpus, ram, specs)
        except exception.InvalidInput as exc:
            self.assertEqual(str(exc), str(found.refusals[0]))
        else:
            self.assertEqual(((), guest), (found.refusals, found.guest))
        if found.guest is not None:
            self.assertEqual(found.guest, codec.decode(vcpus, ram,
                                                       found.specs))

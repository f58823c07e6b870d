# SPDX-License-Identifier: Apache-2.0

import itertools
import re
import unittest

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import cells
from hpcvirt.specs import codec
from hpcvirt.specs import cpu_mask
from hpcvirt.specs import guest_topology
from hpcvirt.specs import key
from hpcvirt.specs import policies
from hpcvirt.specs import resources
from hpcvirt.specs import vocabulary

SHARED = policies.read(8, {})
DEDICATED = policies.read(8, {'hw:cpu_policy': 'dedicated'})
#: vCPUs 0 and 4 of 8 are shared.
MIXED = policies.read(8, {'hw:cpu_policy': 'mixed',
                          'hw:cpu_dedicated_mask': '^0,^4'})
TWO_CELLS = {'hw:numa_nodes': '2',
             'hw:numa_cpus.0': '0-5', 'hw:numa_mem.0': '6000',
             'hw:numa_cpus.1': '6-7', 'hw:numa_mem.1': '2000'}


def read(specs, policy=DEDICATED, vcpus=8, ram_mib=8000, page_kib=None,
         has_page=False):
    return cells.read(vcpus, ram_mib, specs, policy, page_kib, has_page)


class ReadTest(unittest.TestCase):
    def assert_refused(self, message, specs, **more):
        with self.assertRaisesRegex(exception.InvalidInput, message):
            read(specs, **more)

    def test_only_some_flavors_have_a_topology(self):
        one = (shape.GuestCell(0, 8, 8000),)
        self.assertEqual((), read({}, SHARED))
        self.assertEqual((), read({'hw:pmem': ' , '}, SHARED))
        self.assertEqual(one, read({'hw:pmem': '6GB'}, SHARED))
        self.assertEqual(one, read({'hw:numa_nodes': '1'}, SHARED))
        self.assertEqual((shape.GuestCell(0, 8, 8000, 2048),),
                         read({}, SHARED, page_kib=2048, has_page=True))
        self.assertEqual((shape.GuestCell(8, 0, 8000),), read({}))

    def test_an_even_split_counts_the_shared_vcpus_of_each_cell(self):
        self.assertEqual(
            (shape.GuestCell(1, 1, 2000), shape.GuestCell(2, 0, 2000),
             shape.GuestCell(1, 1, 2000), shape.GuestCell(2, 0, 2000)),
            read({'hw:numa_nodes': '4'}, MIXED))

    def test_cells_that_are_written_out(self):
        self.assertEqual((shape.GuestCell(6, 0, 6000),
                          shape.GuestCell(2, 0, 2000)), read(TWO_CELLS))
        self.assertEqual((shape.GuestCell(4, 2, 6000),
                          shape.GuestCell(2, 0, 2000)),
                         read(TWO_CELLS, MIXED))

    def test_what_does_not_divide_is_refused(self):
        self.assert_refused('8 vCPUs do not divide into 3',
                            {'hw:numa_nodes': '3'})
        self.assert_refused('8001 MiB do not divide into 2',
                            {'hw:numa_nodes': '2'}, ram_mib=8001)

    def test_cpus_and_memory_are_given_for_each_cell_or_for_none(self):
        for change in ({'hw:numa_nodes': '1'}, {'hw:numa_nodes': '3'}):
            self.assert_refused('give both for each cell, or neither',
                                {**TWO_CELLS, **change})
        for missing in ('hw:numa_cpus.1', 'hw:numa_mem.0'):
            specs = {name: value for name, value in TWO_CELLS.items()
                     if name != missing}
            self.assert_refused('give both for each cell, or neither', specs)

    def test_cells_must_add_up_to_the_flavor(self):
        for change, message in (
                ({'hw:numa_cpus.1': '5-7'},
                 'numa_cpus.1: vCPU 5 is in two guest cells'),
                ({'hw:numa_cpus.1': '6-8'},
                 'numa_cpus.1: vCPU 8 is not one of the 8'),
                ({'hw:numa_cpus.1': '7'}, 'vCPUs 6 are in no guest cell'),
                ({'hw:numa_mem.1': '1999'},
                 'the cells have 7999 MiB, the flavor 8000'),
                ({'hw:numa_mem.1': '-1'}, 'numa_mem.1.*not a size in MiB')):
            self.assert_refused(message, {**TWO_CELLS, **change})

    def test_the_number_of_cells_has_one_form(self):
        for text in ('0', '-1', '+2', ' 2', '02', '2.0', 'two', '\xb2'):
            self.assert_refused('hw:numa_nodes', {'hw:numa_nodes': text})
        # A number of many digits is one of cells, which do not divide.
        self.assert_refused('do not divide', {'hw:numa_nodes': '9' * 5000})


class WriteTest(unittest.TestCase):
    def test_vcpus_are_numbered_through_all_cells(self):
        given = (shape.GuestCell(5, 1, 6000), shape.GuestCell(2, 0, 2000))
        self.assertEqual({name: value for name, value in TWO_CELLS.items()
                          if name != 'hw:numa_nodes'}, cells.write(given))

    def test_shared_vcpus_are_the_first_of_each_cell(self):
        self.assertEqual({1, 2, 4, 6, 7}, cells.dedicated_cpus((
            shape.GuestCell(2, 1, 1), shape.GuestCell(1, 1, 1),
            shape.GuestCell(2, 1, 1))))

    def test_even_cells_have_equal_cpus_and_memory(self):
        cell = shape.GuestCell
        for given, even in (
                ((cell(4, 0, 100), cell(4, 0, 100)), True),
                ((cell(4, 0, 100), cell(2, 2, 100)), True),
                ((cell(4, 0, 100), cell(3, 0, 100)), False),
                ((cell(4, 0, 100), cell(4, 0, 99)), False)):
            self.assertEqual(even, cells.are_even(given))


class ReadListTest(unittest.TestCase):
    def test_lists_of_vcpus(self):
        for text, expected in (
                ('', set()), (' , ,', set()), ('3', {3}), ('0-2', {0, 1, 2}),
                ('0-5,^2', {0, 1, 3, 4, 5}), ('^2,0-5', {0, 1, 3, 4, 5}),
                ('0-5,^1-3', {0, 4, 5}), ('4,1,4', {1, 4}),
                (' 1 - 2 , 4', {1, 2, 4})):
            with self.subTest(text=text):
                self.assertEqual(expected, cpu_mask.read_list(text, 'key'))

    def test_anything_else_is_refused_and_named(self):
        for text in ('a', '1-', '-1', '3-1', '1;2', '^', '0-2-4', '1.5'):
            with self.subTest(text=text), self.assertRaises(
                    exception.InvalidInput) as caught:
                cpu_mask.read_list(text, 'hw:numa_cpus.1')
            self.assertEqual('hw:numa_cpus.1', caught.exception.where)


class CpuMaskReadTest(unittest.TestCase):
    def test_a_mask_that_starts_with_an_exclusion_means_the_others(self):
        self.assertEqual({2, 3}, cpu_mask.read('^0-1', 4, 'mask'))
        self.assertEqual({1, 2}, cpu_mask.read(' ^0,^3', 4, 'mask'))
        self.assertEqual({0, 3}, cpu_mask.read('0,3', 4, 'mask'))

    def test_the_guest_must_have_every_vcpu_that_is_named(self):
        self.assertEqual({3}, cpu_mask.read('3', 4, 'mask'))
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'mask.*vCPU 4 of a guest with 4 vCPUs'):
            cpu_mask.read('0-4', 4, 'mask')


REQUIRED = shape.PCIAffinity.REQUIRED


def request(alias, count=1, affinity=None):
    return shape.GuestDevices(alias, count, affinity)


class DevicesReadTest(unittest.TestCase):
    def test_each_term_is_a_request(self):
        for text, expected in (
                ('vf:1', (request('vf'),)),
                (' vf : 2 ,gpu:+1', (request('vf', 2), request('gpu'))),
                ('vf:1,vf:2', (request('vf'), request('vf', 2))),
                ('', ())):
            self.assertEqual(expected, codec.read_devices(
                {'pci_passthrough:alias': text}))

    def test_a_request_for_none_is_no_request(self):
        self.assertEqual((request('gpu'),), codec.read_devices(
            {'pci_passthrough:alias': 'vf:0,gpu:1'}))

    def test_the_affinity_policy_is_that_of_every_request(self):
        self.assertEqual(
            (request('vf', 1, REQUIRED), request('gpu', 2, REQUIRED)),
            codec.read_devices({'pci_passthrough:alias': 'vf:1,gpu:2',
                          'hw:pci_numa_affinity_policy': 'required'}))

    def test_a_wrong_policy_is_refused_even_without_a_device(self):
        with self.assertRaises(exception.InvalidInput) as caught:
            codec.read_devices({'hw:pci_numa_affinity_policy': 'near'})
        self.assertEqual('hw:pci_numa_affinity_policy', caught.exception.where)

    def test_anything_else_is_refused(self):
        for text in ('vf', 'vf:', ':1', 'vf:x', 'vf:-1', 'vf:1.0', 'vf:1,',
                     'vf:1:2', f'vf:{10 ** 9 + 1}'):
            with self.subTest(text=text), self.assertRaisesRegex(
                    exception.InvalidInput, 'alias:count'):
                codec.read_devices({'pci_passthrough:alias': text})


class DevicesWriteTest(unittest.TestCase):
    def test_what_is_written_is_read_again(self):
        for wanted in ((), (request('vf'),),
                       (request('vf', 2, REQUIRED),
                        request('gpu', 1, REQUIRED))):
            self.assertEqual(wanted, codec.read_devices(
                codec.write_devices(wanted)))

    def test_no_affinity_writes_no_policy(self):
        self.assertEqual({'pci_passthrough:alias': 'vf:2'},
                         codec.write_devices((request('vf', 2),)))

    def test_what_no_flavor_can_request_is_refused(self):
        port = shape.GuestDevices(None, 1, physnet='fast')
        for message, wanted in (
                ('Neutron ports', (port,)),
                ('not a PCI alias and a count', (request('a,b'),)),
                ('not a PCI alias and a count', (request(' a'),)),
                ('not a PCI alias and a count', (request('a', 0),)),
                ('same affinity policy',
                 (request('a'), request('b', 1, REQUIRED)))):
            with self.assertRaisesRegex(exception.InvalidInput, message):
                codec.write_devices(wanted)


NAMES = ('sockets', 'cores', 'threads')


def guest_topology_read(vcpus, **parts):
    return guest_topology.read(
        vcpus, {f'hw:cpu_{name}': str(part) for name, part in parts.items()})


class GuestTopologyReadTest(unittest.TestCase):
    def test_a_flavor_that_sets_nothing(self):
        self.assertIsNone(guest_topology_read(8))

    def test_the_requested_topology_if_it_matches_the_vcpus(self):
        for parts in itertools.product((1, 2, 4), repeat=3):
            vcpus = parts[0] * parts[1] * parts[2]
            self.assertEqual(
                shape.GuestTopology(*parts),
                guest_topology_read(vcpus,
                                    **dict(zip(NAMES, parts, strict=True))))

    def test_limits_that_allow_no_arrangement(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'hw:cpu_max_sockets.*7 vCPUs'):
            guest_topology_read(7, max_sockets=2, max_cores=2, max_threads=2)

    def test_values_that_are_not_integers(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'hw:cpu_cores'):
            guest_topology_read(8, cores='many')


class GuestTopologyWriteTest(unittest.TestCase):
    def test_a_topology_must_have_the_vcpus(self):
        self.assertEqual(
            {'hw:cpu_sockets': '2', 'hw:cpu_cores': '3',
             'hw:cpu_threads': '1'},
            guest_topology.write(shape.GuestTopology(2, 3, 1), 6))
        for parts, vcpus in (((2, 3, 1), 7), ((0, 1, 1), 0)):
            with self.assertRaises(exception.InvalidInput):
                guest_topology.write(shape.GuestTopology(*parts), vcpus)


def row(kind, name='hpcvirt:it', **fields):
    return key.ExtraSpecKey(name, kind, 'What it is.', **fields)


class NameTest(unittest.TestCase):
    """Names and values of extra specs."""

    def setUp(self):
        super().setUp()
        self.numbered = row(key.ValueType.TEXT, 'a:cpus.{num}',
                            parts={'num': r'\d+'})

    def test_a_fixed_name_matches_itself_alone(self):
        fixed = row(key.ValueType.TEXT, 'a:b.c')
        self.assertTrue(fixed.matches('a:b.c'))
        self.assertFalse(fixed.matches('a:b.cc'))
        self.assertFalse(fixed.matches('a:bxc'))

    def test_a_varying_part_matches_its_pattern(self):
        self.assertTrue(self.numbered.matches('a:cpus.12'))
        self.assertFalse(self.numbered.matches('a:cpus.'))
        self.assertFalse(self.numbered.matches('a:cpus.x'))
        self.assertFalse(self.numbered.matches('a:cpus.{num}'))

    def test_varying_parts_are_put_in(self):
        self.assertEqual('a:cpus.3', self.numbered.at(num=3))

    def test_the_namespace_stands_before_the_colon(self):
        self.assertEqual('a', self.numbered.namespace)
        self.assertEqual('resources', row(
            key.ValueType.INTEGER, 'resources{group}:{what}').namespace)


class ValueTest(unittest.TestCase):
    def assert_takes(self, checked, *values):
        for value in values:
            with self.subTest(value=value):
                checked.check(value)

    def assert_refuses(self, checked, *values):
        for value in values:
            with self.subTest(value=value):
                self.assertRaises(exception.InvalidInput, checked.check, value)

    def test_a_boolean_takes_the_words_of_nova(self):
        flag = row(key.ValueType.BOOLEAN)
        self.assert_takes(flag, 'true', 'FALSE', ' yes ', '0', 't', 'Off')
        self.assert_refuses(flag, '', '2', 'truth', 'none')

    def test_a_choice_takes_its_words_alone(self):
        choice = row(key.ValueType.CHOICE, choices=('host', 'socket'))
        self.assert_takes(choice, 'host', 'socket')
        self.assert_refuses(choice, '', 'Host', 'host ', 'rack')

    def test_an_integer_stays_in_its_bounds(self):
        count = row(key.ValueType.INTEGER, minimum=1, maximum=15)
        self.assert_takes(count, '1', '15')
        self.assert_refuses(count, '0', '16', '', '1.0', 'x')

    def test_a_text_matches_as_a_whole(self):
        text = row(key.ValueType.TEXT, pattern='[a-z]+')
        self.assert_takes(text, 'abc')
        self.assert_refuses(text, '', 'abc1', 'abc\n')

    def test_a_refusal_names_the_key_and_its_values(self):
        with self.assertRaisesRegex(
                exception.InvalidInput,
                "a:cpus.1: 'x' is not one of its values .integer from 1."):
            row(key.ValueType.INTEGER, 'a:cpus.{num}', minimum=1).check(
                'x', 'a:cpus.1')

    def test_a_long_value_is_cut_in_the_refusal(self):
        with self.assertRaises(exception.InvalidInput) as caught:
            row(key.ValueType.BOOLEAN).check('x' * 100000)
        self.assertLess(len(str(caught.exception)), 200)


class TruthTest(unittest.TestCase):
    def test_words_are_true_false_or_neither(self):
        self.assertIs(True, key.truth('Yes'))
        self.assertIs(False, key.truth('n'))
        self.assertIsNone(key.truth('perhaps'))


class PagesReadTest(unittest.TestCase):
    def test_sizes_and_classes(self):
        for text, expected in (
                ('2048', 2048), ('2MB', 2048), ('2MiB', 2048),
                ('1GB', 1 << 20), ('1GiB', 1 << 20), ('64KB', 64),
                ('16Kbit', 2), ('1.5MB', 1536),
                ('small', shape.PageClass.SMALL),
                ('large', shape.PageClass.LARGE),
                ('any', shape.PageClass.ANY)):
            self.assertEqual((expected, True),
                             codec.read_page_size(
                                 {'hw:mem_page_size': text}), text)

    def test_a_flavor_without_a_size_requests_no_topology(self):
        self.assertEqual((None, False), codec.read_page_size({}))
        self.assertEqual((None, False), codec.read_page_size(
            {'hw:mem_page_size': ''}))

    def test_anything_else_is_refused(self):
        for text in ('2M', 'huge', '-2048', '2048.5', '2 MB', '\xb2',
                     '2048kB', '-2MB', '1e3KB', 'large\n',
                     '9' * 5000, '9' * 400 + 'YB'):
            with self.assertRaisesRegex(exception.InvalidInput, 'page size',
                                        msg=text):
                codec.read_page_size({'hw:mem_page_size': text})


class PagesWriteTest(unittest.TestCase):
    def test_what_is_written_is_read_again(self):
        for size in (4, 64, 2048, 1 << 20, *shape.PageClass):
            self.assertEqual((size, True), codec.read_page_size(
                {'hw:mem_page_size': codec.write_page_size(size)}))

    def test_no_size_is_below_one_kib(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'page size'):
            codec.write_page_size(0)


CPU = 'hw:cpu_policy'
MASK = 'hw:cpu_dedicated_mask'
THREAD = 'hw:cpu_thread_policy'
EMULATOR = 'hw:emulator_threads_policy'
REALTIME = {'hw:cpu_realtime': 'true'}
RT_MASK = 'hw:cpu_realtime_mask'
SMT = 'trait:HW_CPU_HYPERTHREADING'


class PoliciesReadTest(unittest.TestCase):
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


class ResourcesTest(unittest.TestCase):
    def test_what_is_written_is_read(self):
        for name in ('VGPU', 'CUSTOM_VGPU_LARGE'):
            specs = resources.write(name, 2, ['CUSTOM_A40'])
            self.assertEqual({f'resources:{name}': '2',
                              'trait:CUSTOM_A40': 'required'}, specs)
            self.assertEqual(2, resources.read(name, specs))
            for given, value in specs.items():
                self.assertTrue(vocabulary.find(given).accepts(value))

    def test_other_classes_and_groups_are_not_counted(self):
        self.assertEqual(0, resources.read('VGPU', {
            'resources:CUSTOM_VGPU': '1', 'resources1:VGPU': '1'}))

    def test_what_is_no_number_counts_nothing(self):
        self.assertEqual(0, resources.read('VGPU', {'resources:VGPU': 'one'}))


class TableTest(unittest.TestCase):
    """The vocabulary as a whole, and looking things up in it."""

    def test_every_name_stands_once(self):
        names = [row.name for row in vocabulary.KEYS]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_every_row_has_one_sentence_of_help(self):
        for row in vocabulary.KEYS:
            with self.subTest(name=row.name):
                self.assertRegex(row.help, r'\A[A-Z].*\.\Z')

    def test_types_are_complete(self):
        for row in vocabulary.KEYS:
            with self.subTest(name=row.name):
                self.assertEqual(row.kind is key.ValueType.CHOICE,
                                 bool(row.choices))
                if row.pattern:
                    self.assertIs(key.ValueType.TEXT, row.kind)
                    re.compile(row.pattern)
                for part in row.parts:
                    self.assertIn(f'{{{part}}}', row.name)

    def test_the_mark_is_a_value_of_its_key(self):
        vocabulary.GENERATED_BY.check(vocabulary.GENERATED_MARK)
        vocabulary.GENERATED_BY.check(
            f'{vocabulary.GENERATED_MARK}+0123456789abcdef')

    def test_own_keys_are_those_of_our_namespace(self):
        self.assertEqual(
            {'hpcvirt:numa_scope', 'hpcvirt:exclusive_cells',
             'hpcvirt:device_set', 'hpcvirt:generated_by'},
            {row.name for row in vocabulary.OWN})


class FindTest(unittest.TestCase):
    def test_fixed_and_numbered_names_are_found(self):
        self.assertIs(vocabulary.CPU_POLICY, vocabulary.find('hw:cpu_policy'))
        self.assertIs(vocabulary.NUMA_MEM, vocabulary.find('hw:numa_mem.31'))
        self.assertIs(vocabulary.RESOURCES,
                      vocabulary.find('resources_NET1:CUSTOM_VF'))
        self.assertIs(vocabulary.TRAIT,
                      vocabulary.find('trait:HW_CPU_HYPERTHREADING'))

    def test_other_names_are_not(self):
        for name in ('hw:cpu_polcy', 'hw:numa_mem.', 'hw:numa_mem',
                     'hpcvirt:', 'cpu_policy', ''):
            with self.subTest(name=name):
                self.assertIsNone(vocabulary.find(name))

    def test_only_closed_namespaces_have_unknown_keys(self):
        self.assertTrue(vocabulary.is_unknown('hw:cpu_polcy'))
        self.assertTrue(vocabulary.is_unknown('hpcvirt:scope'))
        self.assertFalse(vocabulary.is_unknown('hw:cpu_policy'))
        self.assertFalse(vocabulary.is_unknown('quota:cpu_shares'))
        self.assertFalse(vocabulary.is_unknown('rack'))

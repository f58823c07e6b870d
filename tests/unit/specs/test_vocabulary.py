# SPDX-License-Identifier: Apache-2.0

import re
import unittest

import testtools

from hpcvirt.specs import extra_spec_key
from hpcvirt.specs import vocabulary


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
                self.assertEqual(row.kind is extra_spec_key.ValueType.CHOICE,
                                 bool(row.choices))
                if row.pattern:
                    self.assertIs(extra_spec_key.ValueType.TEXT, row.kind)
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


class BoundsTest(testtools.TestCase):
    def test_bounds_can_be_reached_and_not_passed(self):
        for name, least, most in (
                ('hw:numa_nodes', 1, None),
                ('hw:numa_mem.0', 1, None),
                ('hw:cpu_sockets', 1, None),
                ('hw:redirected_usb_ports', 0, 15),
                ('hw:serial_port_count', 0, None)):
            row = vocabulary.find(name)
            self.assertTrue(row.accepts(str(least)), name)
            self.assertFalse(row.accepts(str(least - 1)), name)
            self.assertEqual(most, row.maximum)
            if most is not None:
                self.assertTrue(row.accepts(str(most)), name)
                self.assertFalse(row.accepts(str(most + 1)), name)


class AddressBitsTest(unittest.TestCase):
    def test_widths_are_those_that_nova_accepts(self):
        row = vocabulary.MAXPHYSADDR_BITS
        self.assertEqual([False, True, True, False], [
            row.accepts(bits) for bits in ('31', '32', '52', '53')])
        self.assertEqual('integer from 32 to 52', row.values)
        self.assertEqual('integer from 1',
                         vocabulary.find('hw:numa_nodes').values)


class NearestTest(unittest.TestCase):
    def test_a_key_of_another_namespace_or_number_is_found(self):
        for name, meant in (('hw:cpu_polcy', 'hw:cpu_policy'),
                            ('hpcvirt:cpu_policy', 'hw:cpu_policy'),
                            ('hw:numa_cpu.3', 'hw:numa_cpus.3')):
            self.assertEqual(f' (did you mean {meant}?)',
                             vocabulary.nearest(name))
        self.assertEqual('', vocabulary.nearest('hw:zzzzzz'))

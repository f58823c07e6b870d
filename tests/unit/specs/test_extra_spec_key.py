# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.specs import extra_spec_key as keys


def row(kind, name='hpcvirt:it', **fields):
    return keys.ExtraSpecKey(name, kind, 'What it is.', **fields)


class NameTest(unittest.TestCase):
    """Names and values of extra specs."""

    def setUp(self):
        super().setUp()
        self.numbered = row(keys.ValueType.TEXT, 'a:cpus.{num}',
                            parts={'num': r'\d+'})

    def test_a_fixed_name_matches_itself_alone(self):
        fixed = row(keys.ValueType.TEXT, 'a:b.c')
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
            keys.ValueType.INTEGER, 'resources{group}:{what}').namespace)


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
        flag = row(keys.ValueType.BOOLEAN)
        self.assert_takes(flag, 'true', 'FALSE', ' yes ', '0', 't', 'Off')
        self.assert_refuses(flag, '', '2', 'truth', 'none')

    def test_a_choice_takes_its_words_alone(self):
        choice = row(keys.ValueType.CHOICE, choices=('host', 'socket'))
        self.assert_takes(choice, 'host', 'socket')
        self.assert_refuses(choice, '', 'Host', 'host ', 'rack')

    def test_an_integer_stays_in_its_bounds(self):
        count = row(keys.ValueType.INTEGER, minimum=1, maximum=15)
        self.assert_takes(count, '1', '15')
        self.assert_refuses(count, '0', '16', '', '1.0', 'x')

    def test_a_text_matches_as_a_whole(self):
        text = row(keys.ValueType.TEXT, pattern='[a-z]+')
        self.assert_takes(text, 'abc')
        self.assert_refuses(text, '', 'abc1', 'abc\n')

    def test_a_refusal_names_the_key_and_its_values(self):
        with self.assertRaisesRegex(
                exception.InvalidInput,
                "a:cpus.1: 'x' is not one of its values .integer from 1."):
            row(keys.ValueType.INTEGER, 'a:cpus.{num}', minimum=1).check(
                'x', 'a:cpus.1')

    def test_a_long_value_is_cut_in_the_refusal(self):
        with self.assertRaises(exception.InvalidInput) as caught:
            row(keys.ValueType.BOOLEAN).check('x' * 100000)
        self.assertLess(len(str(caught.exception)), 200)


class TruthTest(unittest.TestCase):
    def test_words_are_true_false_or_neither(self):
        self.assertIs(True, keys.truth('Yes'))
        self.assertIs(False, keys.truth('n'))
        self.assertIsNone(keys.truth('perhaps'))

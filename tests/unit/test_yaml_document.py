# SPDX-License-Identifier: Apache-2.0


import unittest

from hpcvirt import yaml_document
from tests.builders import refusals

#: Nine aliases of nine aliases and so on, of a list or of merged mappings.
LISTS = '\n'.join(
    ['- &n0 [k]']
    + [f'- &n{i} [{",".join([f"*n{i - 1}"] * 9)}]' for i in range(1, 9)])
MERGED = LISTS.replace('[k]', '{k: 1}').replace(' [', ' {<<: [').replace(
    ']', ']}')


class ValueTest(unittest.TestCase):
    def refused(self, text: str, reason: str) -> None:
        self.assertRegex(
            refusals.message(self, yaml_document.value, text, 'a.yaml'),
            f'^a.yaml: .*{reason}')

    def test_aliases_of_aliases_are_refused_before_they_are_expanded(
            self) -> None:
        self.assertLess(len(MERGED), 500)
        for text in (LISTS, MERGED, f'{LISTS}\n- {{? *n8 : 1}}',
                     f'{LISTS}\n- !!set {{? *n8}}',
                     f'{LISTS}\n- !!omap [*n8: 1]'):
            with self.subTest(text=text[-40:]):
                self.refused(text, 'aliases stand for more than 10000 values')

    def test_many_aliases_of_a_large_value_are_refused(self) -> None:
        keys = ', '.join(f'k{i}: {i}' for i in range(1000))
        self.refused(f'a: &a {{{keys}}}\n' + '\n'.join(
            f'b{i}: {{<<: *a}}' for i in range(1000)), 'aliases stand for')

    def test_few_aliases_are_read(self) -> None:
        self.assertEqual(
            {'a': {'k': 1}, 'b': {'k': 1, 'm': 2}, 'c': [{'k': 1}]},
            yaml_document.value(
                'a: &a {k: 1}\nb: {<<: *a, m: 2}\nc: [*a]', 'a.yaml'))

    def test_a_value_within_itself_is_refused(self) -> None:
        for text in ('&a [*a]', 'a: &a {<<: *a}', '&a {? *a : 1}',
                     '&a [&b [*a]]'):
            with self.subTest(text=text):
                self.refused(text, 'contains it')

    def test_a_key_that_is_no_scalar_is_refused(self) -> None:
        for text in ('? [a]\n: 1', '{a: 1}: 1', '? &a [b]\n: *a'):
            with self.subTest(text=text):
                self.refused(text, 'a key is a list or a mapping')

    def test_a_key_that_occurs_twice_is_refused(self) -> None:
        self.refused('a: 1\na: 2', "the key 'a' occurs twice")
        self.refused('- b: {<<: {a: 1}, a: 2, a: 3}', "'a' occurs twice")

    def test_numbers_of_base_60_are_refused(self) -> None:
        for number in ('190:20:30', '190:20:30.15', '1' + ':59' * 1000 + '.5',
                       '!!int 1' + ':1' * 1_000, '!!float 1' + ':1' * 1_000):
            with self.subTest(number=number[:20]):
                self.refused(f'a: {number}', 'base 60; quote it')
        self.assertEqual(['190:20:30'], yaml_document.value(
            "- '190:20:30'", 'a.yaml'))

    def test_text_that_cannot_be_encoded_is_refused(self) -> None:
        for text in (r'"\ud800"', r'- "a\uDFFF"', r'"\udc80": 1'):
            self.refused(text, 'unpaired surrogate')
        for text in (r'"\U0001F600"', r'"\ud83d\ude00"'):
            self.assertEqual('\N{GRINNING FACE}',
                             yaml_document.value(text, 'x'))

    def test_a_value_that_its_tag_does_not_allow_is_refused(self) -> None:
        for text in ('!!bool x', '!!int ""', '!!float ""', '!!timestamp x',
                     '!!int [1]', '!!binary x', '!!omap [a]', '!!python x',
                     '!x y', '2026-99-99', '9' * 5000):
            with self.subTest(text=text[:20]):
                self.refused(text, 'is not YAML')

# SPDX-License-Identifier: Apache-2.0

import random
import unittest

from hpcvirt import exception
from hpcvirt.topology import bitmap
from tests.builders import writers

SOME = range(100)


class MembersTest(unittest.TestCase):
    def test_words_are_read_from_the_most_significant(self) -> None:
        for text, numbers in {
                '0x0': set(), '': set(), '0x1': {0}, '0x000000ff': set(
                    range(8)), '0x1,0x0': {32}, '0x1,,0x3': {0, 1, 64},
                'f': {0, 1, 2, 3}, '00000000,00000003': {0, 1},
                '0xf...f': set(SOME), '0xf...f,0x1': {0} | set(
                    range(32, 100)), '0xF...f,,0x0': set(range(64, 100)),
                ' 0x3\n': {0, 1}}.items():
            self.assertEqual(numbers, bitmap.members(text, SOME, 'a'), text)

    def test_numbers_outside_of_the_universe_are_ignored(self) -> None:
        self.assertEqual({1}, bitmap.members('0xf', [1, 9], 'a'))

    def test_a_written_bitmap_is_read_back(self) -> None:
        dice = random.Random(1)
        for _ in range(200):
            numbers = set(dice.sample(SOME, dice.randint(0, 100)))
            self.assertEqual(numbers, bitmap.members(
                writers.bitmap(numbers), SOME, 'a'))

    def test_anything_else_is_refused(self) -> None:
        for text in ('x', '0x', '0x123456789', '0x1;0x2', '0x1,0xf...f',
                     '-1', '1 2', '0x1,' * 2048 + '0x1'):
            with self.assertRaisesRegex(exception.InvalidInput, '^a: '):
                bitmap.members(text, SOME, 'a')


class OnlyMemberTest(unittest.TestCase):
    def test_a_set_of_one_has_an_only_member(self) -> None:
        for text, number in (('0x1', 0), ('0x4,0x0', 34), ('0x3', None),
                             ('0x0', None), ('', None), ('0xf...f', None)):
            self.assertEqual(number, bitmap.only_member(text, 'a'), text)

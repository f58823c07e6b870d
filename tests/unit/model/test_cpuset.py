# SPDX-License-Identifier: Apache-2.0

import random
import unittest

from hpcvirt import exception
from hpcvirt.model import cpuset


class ParseTest(unittest.TestCase):
    def test_ranges_numbers_and_blanks(self) -> None:
        for text, cpus in {
                '': set(), ' \n': set(), '0': {0}, '0-3': {0, 1, 2, 3},
                '0-1,8': {0, 1, 8}, ' 0 - 1 , 8\n': {0, 1, 8},
                '5-5': {5}, '0-3,2-4': {0, 1, 2, 3, 4},
                '007': {7}, '0000000000000000012': {12}}.items():
            self.assertEqual(cpus, cpuset.parse(text), text)

    def test_a_caret_excludes_cpus_at_any_position(self) -> None:
        for text, cpus in {'0-3,^2': {0, 1, 3}, '^2,0-3': {0, 1, 3},
                           '0-7,^1-6': {0, 7}, '0,^0': set(),
                           '0-3, ^ 2': {0, 1, 3}, '^5': set()}.items():
            self.assertEqual(cpus, cpuset.parse(text), text)

    def test_anything_else_is_refused_and_named(self) -> None:
        for text in ('a', '1,', ',1', '1-', '-1', '1--2', '0x3', '1.5', '^',
                     '3-1', '65536', '0-65536', '0-99999999999999', '1;2',
                     '\u0663', '1 2', '0-3,^', '^^1'):
            with self.assertRaises(exception.InvalidInput, msg=text) as got:
                cpuset.parse(text, 'node0/cpulist')
            self.assertEqual('node0/cpulist', got.exception.where)

    def test_the_highest_cpu_is_read(self) -> None:
        self.assertEqual(65536, len(cpuset.parse('0-65535')))

    def test_many_large_ranges_are_read_quickly(self) -> None:
        text = ','.join(['0-65535'] * 40000)
        self.assertEqual(65536, len(cpuset.parse(text)))

    def test_a_text_that_is_too_long_is_refused(self) -> None:
        with self.assertRaisesRegex(exception.InvalidInput, 'too long'):
            cpuset.parse('1,' * 300_000 + '1')


class RenderTest(unittest.TestCase):
    def test_consecutive_cpus_become_ranges(self) -> None:
        for cpus, text in ((set(), ''), ({3}, '3'), ({0, 1}, '0-1'),
                           ({0, 2}, '0,2'), ([8, 2, 1, 0, 8], '0-2,8'),
                           ({0, 1, 2, 8, 9, 11}, '0-2,8-9,11')):
            self.assertEqual(text, cpuset.render(cpus))

    def test_rendered_sets_are_parsed_back(self) -> None:
        dice = random.Random(1)
        for _ in range(500):
            cpus = frozenset(dice.sample(range(300), dice.randint(0, 300)))
            self.assertEqual(cpus, cpuset.parse(cpuset.render(cpus)))

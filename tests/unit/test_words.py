# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import words


class WordsTest(unittest.TestCase):
    def test_one_has_no_plural(self):
        self.assertEqual('1 flavor', words.count_noun(1, 'flavor'))
        self.assertEqual('0 flavors', words.count_noun(0, 'flavor'))

    def test_few_names_are_all_given(self):
        self.assertEqual('a, b', words.join_names(['a', 'b'], 'hosts'))

    def test_of_many_names_two_are_given(self):
        self.assertEqual('7 hosts (a, b, ...)',
                         words.join_names('abcdefg', 'hosts'))

    def test_names_that_are_not_known_are_counted(self):
        self.assertEqual('a, b, ...', words.shorten_names(['a', 'b'], 9))

    def test_numbers_in_names_are_in_the_order_of_their_values(self):
        self.assertEqual(
            ['c-1', 'c-2', 'c-10', 'c-10a', 'd'],
            sorted(['c-10a', 'd', 'c-10', 'c-2', 'c-1'],
                   key=words.natural_order))


class NumberTest(unittest.TestCase):
    def test_a_whole_number_has_18_digits_at_most(self):
        self.assertEqual(0, words.read_whole('0'))
        self.assertEqual(10 ** 18 - 1, words.read_whole('9' * 18))
        for text in ('', '9' * 19, '9' * 5000, '-1', '+1', '1.0', ' 1', '1_0',
                     '²', '\u0661', '1\n'):
            self.assertIsNone(words.read_whole(text), text[:20])

    def test_a_decimal_is_finite(self):
        self.assertEqual(2.5, words.read_decimal('2.5'))
        self.assertEqual(3.0, words.read_decimal('3'))
        for text in ('', '9' * 400, 'nan', 'inf', '1e999', '-1', '.', '²',
                     '1.5\n'):
            self.assertIsNone(words.read_decimal(text), text[:20])


class SizeTest(unittest.TestCase):
    def test_every_common_spelling_of_a_size_is_read(self):
        for text in ('1G', '1GB', '1GiB', '1g', '1gib', '1 GiB', '1024M',
                     '1048576', '1048576KB'):
            self.assertEqual(1024 ** 2, words.read_size(text), text)

    def test_anything_else_is_no_size(self):
        for text in ('', 'G', '1X', '-1G', '1.5G', '1G2'):
            self.assertIsNone(words.read_size(text), text)

    def test_sizes_are_written_in_one_way(self):
        self.assertEqual(['64 KiB', '2 MiB', '1 GiB', '125.6 GiB'], [
            words.format_size(kib) for kib in (64, 2048, 1024 ** 2,
                                               int(125.6 * 1024 ** 2))])


class NearestTest(unittest.TestCase):
    def test_a_wrong_word_names_the_nearest(self):
        self.assertEqual(': choose from json, yaml (did you mean json?)',
                         words.suggest('jsn', ['json', 'yaml']))

    def test_a_word_like_no_other_names_none(self):
        self.assertEqual('', words.nearest('xxxx', ['json', 'yaml']))

    def test_a_word_of_any_length_takes_no_time(self):
        self.assertEqual('', words.nearest('x' * 10 ** 7, ['json', 'yaml']))

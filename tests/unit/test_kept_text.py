# SPDX-License-Identifier: Apache-2.0

"""The bound of text that is kept."""

import unittest

from hpcvirt import kept_text

LONGEST = 'x' * kept_text.MAX_CHARACTERS


class KeptTextTest(unittest.TestCase):
    def test_text_up_to_the_bound_is_short(self):
        self.assertTrue(kept_text.is_short(LONGEST))
        self.assertFalse(kept_text.is_short(LONGEST + 'x'))

    def test_what_is_no_text_is_not_kept_as_text(self):
        for value in (None, 1, b'x', ['x']):
            self.assertFalse(kept_text.is_short(value))

    def test_values_that_are_no_text_are_of_no_length(self):
        self.assertTrue(kept_text.are_short((None, 1, LONGEST, [LONGEST * 2])))
        self.assertFalse(kept_text.are_short((1, LONGEST + 'x')))

    def test_a_text_is_named_that_is_too_long(self):
        self.assertEqual(LONGEST, kept_text.check(LONGEST, 'the name'))
        with self.assertRaisesRegex(ValueError, 'the name has 1025'):
            kept_text.check(LONGEST + 'x', 'the name')

    def test_the_beginning_of_a_long_text_is_kept(self):
        self.assertEqual(LONGEST, kept_text.shorten(LONGEST + 'y'))
        self.assertEqual('x', kept_text.shorten('x'))

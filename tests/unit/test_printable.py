# SPDX-License-Identifier: Apache-2.0


import sys
import time
import unicodedata
import unittest

from hpcvirt import printable


class EscapedTest(unittest.TestCase):
    def test_everything_that_a_terminal_obeys_is_escaped(self) -> None:
        for number in range(sys.maxunicode + 1):
            character = chr(number)
            if unicodedata.category(character) in (
                    'Cc', 'Cf', 'Cs', 'Zl', 'Zp'):
                escaped = printable.escape(character)
                digits = f'u{number:04x}' if number < 0x10000 else (
                    f'U{number:08x}')
                self.assertEqual('\\' + digits, escaped)

    def test_text_of_all_languages_stays(self) -> None:
        for text in ('', 'a b', 'Jürg', 'Ωmega', '東京', '✓ █▁', 'a\\u001b'):
            self.assertEqual(text, printable.escape(text))

    def test_what_is_kept_stays(self) -> None:
        self.assertEqual('a\n\tb\\u000d', printable.escape('a\n\tb\r', '\n\t'))

    def test_a_character_beyond_16_bits_has_eight_digits(self) -> None:
        self.assertEqual('\\U000e0001', printable.escape('\U000e0001'))


class LineTest(unittest.TestCase):
    def test_each_text_is_one_line(self) -> None:
        self.assertEqual('a\\u000ab\nc\n', printable.lines(['a\nb', 'c']))

    def test_an_error_is_folded_into_one_line(self) -> None:
        self.assertEqual('a b \\u001bc', printable.one_line('a\n \tb \x1bc\n'))

    def test_an_error_shows_no_password_of_a_url(self) -> None:
        for text, shown in (
                ('no route to http://me:pa55@cloud:5000/v3 (x)',
                 'no route to http://me:***@cloud:5000/v3 (x)'),
                ('ssh://me:p@55@n17: refused', 'ssh://me:***@n17: refused'),
                ('a://:pa55@b c://d:pa55@e', 'a://:***@b c://d:***@e'),
                ('mysql://db/x?a=b&password=pa55&c=d',
                 'mysql://db/x?a=b&password=***&c=d'),
                ('http://c?auth_token=pa55', 'http://c?auth_token=***'),
                ('ssh://root@[::1]:22: refused',
                 'ssh://root@[::1]:22: refused'),
                ('http://[::1]:5000/v3', 'http://[::1]:5000/v3')):
            with self.subTest(text):
                self.assertEqual(shown, printable.one_line(text))

    def test_an_address_without_its_user(self) -> None:
        for text, shown in (('me:pa55@n17', '***@n17'), ('n17', 'n17'),
                            ('ssh:/me:p@55@n17?key=x', '***@n17?key=x')):
            self.assertEqual(shown, printable.hide_user(text))

    def test_much_text_takes_little_time(self) -> None:
        started = time.process_time()
        for text in ('://' * 30_000, '://a:' * 20_000, '?password' * 10_000,
                     '?' * 100_000, '&a' * 50_000):
            printable.one_line(text)
        self.assertLess(time.process_time() - started, 5)

# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.


import sys
import unicodedata
import unittest

from hpcvirt import printable


class EscapedTest(unittest.TestCase):
    def test_everything_that_a_terminal_obeys_is_escaped(self) -> None:
        for number in range(sys.maxunicode + 1):
            character = chr(number)
            if unicodedata.category(character) in (
                    'Cc', 'Cf', 'Cs', 'Zl', 'Zp'):
                escaped = printable.escaped(character)
                digits = f'u{number:04x}' if number < 0x10000 else (
                    f'U{number:08x}')
                self.assertEqual('\\' + digits, escaped)

    def test_text_of_all_languages_stays(self) -> None:
        for text in ('', 'a b', 'Jürg', 'Ωmega', '東京', '✓ █▁', 'a\\u001b'):
            self.assertEqual(text, printable.escaped(text))

    def test_what_is_kept_stays(self) -> None:
        self.assertEqual('a\n\tb\\u000d',
                         printable.escaped('a\n\tb\r', '\n\t'))

    def test_a_character_beyond_16_bits_has_eight_digits(self) -> None:
        self.assertEqual('\\U000e0001', printable.escaped('\U000e0001'))


class LineTest(unittest.TestCase):
    def test_each_text_is_one_line(self) -> None:
        self.assertEqual('a\\u000ab\nc\n', printable.lines(['a\nb', 'c']))

    def test_an_error_is_folded_into_one_line(self) -> None:
        self.assertEqual('a b \\u001bc', printable.one_line('a\n \tb \x1bc\n'))

# SPDX-License-Identifier: Apache-2.0

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt.bench.parsers import reading


class TestNumber(testtools.TestCase):
    def test_c_and_fortran_exponents_are_read(self):
        for word, value in (
                ('7.83954e-05', 7.83954e-05), ('1.0D+02', 100.0),
                ('-3.247834652034739D+03', -3247.834652034739),
                ('1.0d2', 100.0), ('1.0E2', 100.0), ('.5', 0.5),
                ('5.', 5.0), ('42', 42.0), ('1.5-102', 1.5e-102),
                ('1.5+102', 1.5e102), ('+0.1-10', 1e-11)):
            self.assertEqual(value, reading.real(word, 'x'))

    def refused(self, what, word, function=reading.figure):
        exc = self.assertRaises(reading.InvalidOutput, function, word, 'GUP/s')
        self.assertIn(what, exc.reason)
        self.assertIn('GUP/s', exc.reason)

    def test_what_is_no_number_is_refused(self):
        for word in ('', 'nan', 'NaN', 'inf', '-inf', 'Infinity', '1e', 'e5',
                     '1,5', '1_000', '0x10', '1.2.3', '--1', '1 2', 'x',
                     '1e5e5', '\u0663', '1e+', '1.5-1'):
            self.refused('', word)

    def test_asterisks_are_named_for_what_they_are(self):
        self.refused('did not fit its field', '************')

    def test_a_number_beyond_all_floats_is_refused(self):
        self.refused('not finite', '1e400')
        self.refused('not finite', '9' * 400)

    def test_sentinels_are_refused(self):
        for word in ('-1', '0', '0.000000', '-0.0', '-1000'):
            self.refused('not above 0', word)

    def test_uninitialised_memory_is_refused(self):
        for word in ('6.95251e-313', '4.9e-324', '6.9e-310', '1.7e+300'):
            self.refused('uninitialized memory', word)

    def test_whole_numbers_have_an_end(self):
        self.assertEqual(10, reading.whole('10', 'x'))
        for word in ('-1', '1.0', '1e3', '', '9' * 5000, '\u0663'):
            self.refused('not a whole number', word, reading.whole)

    @hypothesis.given(strategies.floats(min_value=1e-30, max_value=1e30),
                      strategies.sampled_from(('e', 'E', 'd', 'D')))
    def test_every_figure_reads_back_from_every_exponent(self, value, letter):
        word = f'{value:.17e}'.replace('e', letter)
        self.assertEqual(value, reading.figure(word, 'x'))

    @hypothesis.given(strategies.text(max_size=40))
    def test_no_word_crashes_it(self, word):
        try:
            self.assertGreater(reading.figure(word, 'x'), 0)
        except reading.InvalidOutput:
            return

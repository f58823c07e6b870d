# SPDX-License-Identifier: Apache-2.0

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt import exception
from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text

KEYS = (
    expectation.whole('N', 'order', 'HPL_N'),
    expectation.word('class', 'class'),
    expectation.ParameterKey('energy', outcome.ParameterType.ENERGY, 'energy'),
)


class TestExpectation(testtools.TestCase):
    def normal(self, **wanted):
        return expectation.normalize(KEYS, wanted, 'x')

    def test_names_are_known_in_any_spelling(self):
        for name in ('N', 'n', 'HPL_N', 'hpl_n', 'hpl-n'):
            self.assertEqual({'N': '5'},
                             expectation.normalize(KEYS, {name: ' 5 '}, 'x'))

    def refused(self, what, **wanted):
        exc = self.assertRaises(exception.InvalidInput, self.normal, **wanted)
        self.assertIn(what, str(exc))

    def test_an_unknown_name_is_refused_with_those_there_are(self):
        self.refused('the parameters are N, class, energy, rc', M='5')

    def test_a_value_of_another_kind_is_refused(self):
        self.refused('whole number', N='five')
        self.refused('whole number', N='1e3')
        self.refused('whole number', N='-1')
        self.refused('whole number', rc='x')
        self.refused('energy', energy='nan')
        self.refused('word', **{'class': ''})

    def test_the_same_name_twice_must_say_the_same(self):
        self.assertEqual({'N': '5'}, self.normal(N='5', HPL_N='5'))
        self.refused('both 5 and 6', N='5', HPL_N='6')

    def unmet(self, wanted, **found):
        return expectation.find_mismatch(KEYS, wanted,
                                         reading.Reading({}, found))

    def test_numbers_are_compared_as_numbers_and_words_without_case(self):
        self.assertIsNone(self.unmet({'N': '0100'}, N='100'))
        self.assertIsNone(self.unmet({'class': 'c'}, **{'class': 'C'}))
        self.assertIsNone(self.unmet({'energy': '-102.0325'},
                                     energy='-102.03249'))

    def test_what_the_output_does_not_say_is_not_met(self):
        self.assertIn('does not name it', self.unmet({'N': '100'}))

    def test_a_value_without_a_kind_is_compared_as_text(self):
        self.assertTrue(expectation.is_same(None, 'a', 'a'))
        for left, right in (('C', 'c'), ('1', '01'), ('1.0', '1.00')):
            self.assertFalse(expectation.is_same(None, left, right))

    def test_what_is_no_number_is_not_the_same_number(self):
        for kind in (outcome.ParameterType.WHOLE,
                     outcome.ParameterType.ENERGY):
            self.assertFalse(expectation.is_same(kind, '1', 'one'))
            self.assertTrue(expectation.is_same(kind, '7', '07'))

    def test_the_exit_status_is_0_unless_another_is_expected(self):
        self.assertIsNone(self.unmet({}))
        self.assertIn('exit status 0, expected 2', self.unmet({'rc': '2'}))


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


class TestText(testtools.TestCase):
    def test_line_ends_of_other_systems_become_newlines(self):
        self.assertEqual('a\nb\nc', text.clean(b'a\r\nb\rc'))

    def test_colours_and_titles_are_taken_out(self):
        self.assertEqual('Triad: 1', text.clean(
            b'\x1b]0;title\x07\x1b[1;32mTriad:\x1b[0m 1'))

    def test_tags_of_mpirun_are_taken_out(self):
        self.assertEqual('a\nb', text.clean(
            b'[1,0]<stdout>:a\n[1,0]<stderr>: b'))

    def test_tags_of_open_mpi_5_are_taken_out(self):
        self.assertEqual('a', text.clean(b'[prterun-n1-77@1,0]<stdout>: a'))

    def test_the_label_of_one_rank_is_taken_out(self):
        self.assertEqual('a\n b\n', text.clean(b'0: a\n0:  b\n'))
        self.assertEqual('a\n\nb\n', text.clean(b'[0] a\n\n[0] b\n'))

    def test_numbers_of_rows_are_no_label(self):
        for rows in (b'0: 1 bytes\n1: 2 bytes', b'0: 1 bytes'):
            self.assertEqual(rows.decode(), text.clean(rows))

    def test_bytes_that_are_no_text_stay_as_a_mark(self):
        self.assertEqual('1\ufffd2', text.clean(b'1\xff2'))

    def test_a_byte_order_mark_is_taken_out(self):
        self.assertEqual('a', text.clean(b'\xef\xbb\xbfa'))

    def test_overlong_lines_are_taken_out(self):
        self.assertEqual('a\n\nb', text.drop_long_lines(
            'a\n' + 'x' * 5000 + '\nb'))

    def test_a_quoted_line_is_short_and_printable(self):
        self.assertEqual('a b', text.quote(' a \t b '))
        self.assertEqual('a?', text.quote('a\x00'))
        self.assertEqual(120, len(text.quote('x' * 500)))

    def test_the_cause_is_found_in_what_launchers_say(self):
        for line in ('slurmstepd: error: Out of memory in step 0',
                     'bash: hpcc: command not found',
                     'error while loading shared libraries: libgomp.so.1',
                     'Segmentation fault'):
            self.assertEqual(text.quote(line),
                             text.complaint(f'hello\n{line}\nbye'))
        self.assertIsNone(text.complaint('all is well\nError:\n'))

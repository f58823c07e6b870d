# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from tests.builders import refusals

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
        self.assertIn(what, refusals.message(self, self.normal, **wanted))

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

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

import testtools

from hpcvirt import exception
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.Key('N', expectation.Kind.WHOLE, 'order', ('HPL_N',)),
    expectation.Key('class', expectation.Kind.WORD, 'class'),
    expectation.Key('energy', expectation.Kind.ENERGY, 'energy'),
)


class TestExpectation(testtools.TestCase):
    def normal(self, **wanted):
        return expectation.normal(KEYS, wanted, 'x')

    def test_names_are_known_in_any_spelling(self):
        for name in ('N', 'n', 'HPL_N', 'hpl_n', 'hpl-n'):
            self.assertEqual({'N': '5'},
                             expectation.normal(KEYS, {name: ' 5 '}, 'x'))

    def refused(self, what, **wanted):
        exc = self.assertRaises(exception.InvalidInput, self.normal,
                                **wanted)
        self.assertIn(what, str(exc))

    def test_an_unknown_name_is_refused_with_those_there_are(self):
        self.refused('there is N, class, energy, rc', M='5')

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
        return expectation.unmet(KEYS, wanted, reading.Reading({}, found))

    def test_numbers_are_compared_as_numbers_and_words_without_case(self):
        self.assertIsNone(self.unmet({'N': '0100'}, N='100'))
        self.assertIsNone(self.unmet({'class': 'c'}, **{'class': 'C'}))
        self.assertIsNone(self.unmet({'energy': '-102.0325'},
                                     energy='-102.03249'))

    def test_what_the_output_does_not_say_is_not_met(self):
        self.assertIn('does not name it', self.unmet({'N': '100'}))

    def test_a_value_without_a_kind_is_compared_as_text(self):
        self.assertTrue(expectation.same(None, 'a', 'a'))
        for left, right in (('C', 'c'), ('1', '01'), ('1.0', '1.00')):
            self.assertFalse(expectation.same(None, left, right))

    def test_what_is_no_number_is_not_the_same_number(self):
        for kind in (expectation.Kind.WHOLE, expectation.Kind.ENERGY):
            self.assertFalse(expectation.same(kind, '1', 'one'))
            self.assertTrue(expectation.same(kind, '7', '07'))

    def test_the_exit_status_is_0_unless_another_is_expected(self):
        self.assertIsNone(self.unmet({}))
        self.assertIn('exit status 0, expected 2', self.unmet({'rc': '2'}))

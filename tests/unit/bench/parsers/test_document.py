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

from hpcvirt.bench.parsers import document
from hpcvirt.bench.parsers import reading


class TestLoad(testtools.TestCase):
    def test_an_object_is_read(self):
        self.assertEqual({'a': [1]}, document.load(' \n{"a": [1]}\n'))

    def test_other_text_is_not_a_document(self):
        for text in ('', '[1]', 'score: {"a": 1}', '1'):
            self.assertIsNone(document.load(text))

    def test_a_broken_object_is_refused(self):
        for text, reason in (
                ('{"a": 1', 'not a complete JSON document'),
                ('{"a": 1} {"a": 2}', 'not a complete JSON document'),
                ('{"a": ' + '[' * 200_000, 'not a complete JSON document'),
                ('{"a": NaN}', 'holds NaN'),
                ('{"a": -Infinity}', 'holds -Infinity')):
            exc = self.assertRaises(reading.Refused, document.load, text)
            self.assertIn(reason, exc.reason)


class TestInner(testtools.TestCase):
    def test_a_path_of_keys_leads_to_its_value(self):
        found = {'a': {'b': {'c': 3}}}
        self.assertEqual(3, document.inner(found, 'a', 'b', 'c'))
        self.assertIs(found, document.inner(found))

    def test_a_path_that_leads_nowhere_has_no_value(self):
        for path in (('x',), ('a', 'x'), ('a', 'b', 'c'), ('b',)):
            self.assertIsNone(document.inner({'a': {'b': 3}}, *path))


class TestScore(testtools.TestCase):
    def test_numbers_above_0_are_figures(self):
        for value in (1, 0.5, 1e30, 1e-30):
            self.assertEqual(float(value), document.score(value, 'score'))

    def test_nothing_else_is_a_figure(self):
        for value in (True, '1', None, [1], 0, -1, 0.0, 1e31, 6.95e-313,
                      10 ** 400):
            exc = self.assertRaises(reading.Refused, document.score, value,
                                    'score')
            self.assertIn('score is ', exc.reason)
            self.assertLess(len(exc.reason), 130)

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
import unittest

from hpcvirt.flavors import subjects


class InWordsTest(unittest.TestCase):

    def test_up_to_six_names_are_spelt_out(self):
        self.assertEqual('a', subjects.in_words(['a'], 'hosts'))
        self.assertEqual('a, b, c, d, e, f',
                         subjects.in_words('abcdef', 'hosts'))

    def test_more_are_counted(self):
        self.assertEqual('7 flavors (a, b, ...)',
                         subjects.in_words('abcdefg', 'flavors'))

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

from hpcvirt.flavors import warning

CODE = warning.Code.NO_PARTS


class MessageTest(unittest.TestCase):

    def test_up_to_six_subjects_are_named(self):
        for count, expected in ((0, 'why'), (1, '0: why'),
                                (6, '0, 1, 2, 3, 4, 5: why'),
                                (300, '300 hosts (0, 1, ...): why')):
            item = warning.PlanWarning(
                CODE, 'why', tuple(str(number) for number in range(count)))
            self.assertEqual(expected, item.message)


class GatherTest(unittest.TestCase):

    def test_equal_warnings_become_one_with_all_subjects_once(self):
        found = warning.gather([
            warning.PlanWarning(CODE, 'x', ('b',)),
            warning.PlanWarning(CODE, 'y', ('b',)),
            warning.PlanWarning(CODE, 'x', ('a', 'b'))])
        self.assertEqual([('x', ('b', 'a')), ('y', ('b',))],
                         [(item.what, item.subjects) for item in found])

    def test_warnings_with_different_codes_stay_apart(self):
        found = warning.gather([
            warning.PlanWarning(CODE, 'x', ('a',)),
            warning.PlanWarning(warning.Code.SMT_MIXED, 'x', ('b',))])
        self.assertEqual(2, len(found))

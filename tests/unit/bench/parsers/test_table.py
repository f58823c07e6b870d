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

from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import table


class TestAscending(testtools.TestCase):
    def test_ascending_sizes_pass(self):
        for sizes in ([], [7], [0, 1, 3, 4, 1024]):
            self.assertIsNone(table.check_ascending(sizes))

    def test_a_size_that_comes_again_or_too_late_is_refused(self):
        for sizes in ([1, 1], [1, 2, 4, 1, 2, 4], [4, 2]):
            exc = self.assertRaises(reading.Refused, table.check_ascending,
                                    sizes)
            self.assertIn('several tables in one file', exc.reason)


class TestDoubling(testtools.TestCase):
    def test_each_size_is_twice_the_one_before(self):
        for sizes in ([], [4], [0, 1, 2, 4, 8], [1024, 2048]):
            self.assertIsNone(table.check_doubling(sizes))

    def test_a_missing_size_is_named(self):
        for sizes, missing in (([1, 2, 8], 4), ([0, 2], 1), ([3, 7], 6)):
            exc = self.assertRaises(reading.Refused, table.check_doubling,
                                    sizes)
            self.assertIn(f'no row for {missing} bytes', exc.reason)


class TestParameters(testtools.TestCase):
    def test_a_table_shows_its_smallest_and_largest_size(self):
        self.assertEqual({'min_size': '0', 'max_size': '4', 'rows': '4'},
                         table.parameters([0, 1, 2, 4]))

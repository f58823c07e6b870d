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

import types
import unittest

from hpcvirt.cloud import pages


class Manager:
    """Lists items after a marker, never more than three at once."""

    def __init__(self, count, heeds_marker=True):
        self.ids = [str(number) for number in range(count)]
        self.heeds_marker = heeds_marker

    def list(self, marker, limit, first=0):
        start = first
        if marker is not None and self.heeds_marker:
            start = self.ids.index(marker) + 1
        return [types.SimpleNamespace(id=each)
                for each in self.ids[start:start + min(limit, 3)]]


class TestEvery(unittest.TestCase):

    def test_all_pages(self):
        for count in (0, 1, 3, 4, 7):
            self.assertEqual(
                [str(number) for number in range(count)],
                [item.id for item in pages.every(Manager(count))])

    def test_filters(self):
        self.assertEqual(
            ['5', '6'],
            [item.id for item in pages.every(Manager(7), first=5)])

    def test_ends_if_the_marker_is_ignored(self):
        found = [item.id for item in pages.every(Manager(7, False))]
        self.assertEqual({'0', '1', '2'}, set(found))

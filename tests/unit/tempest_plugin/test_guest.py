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

"""Reading what guests print about their hardware."""

import unittest

from hpcvirt import exception
from hpcvirt.tempest_plugin import guest

PRINTED = ('0-3\n0-1\n0-1 2-3 \n613520\nhugepages-1048576kB '
           'hugepages-2048kB \n0x1af4:0x1000:-1 0x8086:0x1515:1 \n')


class GuestTest(unittest.TestCase):

    def test_everything_is_read(self):
        found = guest.parse(PRINTED)
        self.assertEqual({0, 1, 2, 3}, found.cpus)
        self.assertEqual({0, 1}, found.cells)
        self.assertEqual({frozenset({0, 1}), frozenset({2, 3})}, found.cores)
        self.assertEqual(613520, found.memory_kib)
        self.assertIn('hugepages-2048kB', found.page_pools)
        self.assertEqual((('0x1af4', '0x1000', -1), ('0x8086', '0x1515', 1)),
                         found.network_devices)

    def test_guest_without_pools_and_devices(self):
        found = guest.parse('0\n0\n0 \n64\n\n\n')
        self.assertEqual(((), ()), (found.page_pools, found.network_devices))

    def test_other_output_is_refused(self):
        for text in ('', 'sh: not found\n', PRINTED.replace('613520', '?')):
            with self.subTest(text=text):
                self.assertRaises(exception.InvalidInput, guest.parse, text)

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

from hpcvirt.topology import pci


class IsListedTest(unittest.TestCase):
    def test_network_accelerators_and_nvme_are_listed(self) -> None:
        for class_code in (0x0200, 0x0207, 0x0280, 0x0c06, 0x1200, 0x0302,
                           0x0380, 0x0b40, 0x0108):
            self.assertTrue(pci.is_listed(class_code), hex(class_code))

    def test_what_the_host_itself_runs_on_is_not(self) -> None:
        for class_code in (0x0000, 0x0002, 0x0100, 0x0104, 0x0106, 0x0107,
                           0x0300, 0x0600, 0x0604, 0x0880, 0x0c03, 0x1080,
                           0x2000, 0xff00):
            self.assertFalse(pci.is_listed(class_code), hex(class_code))

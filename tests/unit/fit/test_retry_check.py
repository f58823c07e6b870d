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

import dataclasses
import unittest

from hpcvirt.fit import claim
from hpcvirt.fit import retry_check
from hpcvirt.model import shape
from tests.unit.fit import builders

SIZES = (2048, 2048)


class RetryCheckTest(unittest.TestCase):

    def check(self, guest, host, sizes=SIZES):
        return retry_check.check(guest, host, False, [sizes])

    def test_guests_that_any_claim_serves_well_do_not_matter(self):
        self.assertFalse(retry_check.matters(builders.guest(4, 4)))
        self.assertFalse(retry_check.matters(builders.guest(4)))
        self.assertTrue(retry_check.matters(builders.guest(4, 2)))
        self.assertFalse(retry_check.matters(builders.guest(
            4, 4, requests=(builders.request(),))))

    def test_unequal_cells_can_be_confused(self):
        guest, host = builders.guest(2, 4), builders.host(0, 6, 6)
        self.assertIsNone(claim.check(guest, host))
        misfit = self.check(guest, host)
        self.assertEqual(
            "wrong if the build fails on another host (Nova's defect H): the "
            'claim on the compute host would place guest cell 1 on cell 0 '
            'with CPUs or memory that are not free there '
            "(Nova's defect A)", misfit.message)
        self.assertEqual(claim.unsound(dataclasses.replace(
            guest, numbers=(-1, -1)), host), misfit.causes[0])

    def test_equal_cells_and_empty_hosts_are_safe(self):
        self.assertIsNone(self.check(builders.guest(4, 4),
                                     builders.host(8, 0, 2)))
        self.assertIsNone(self.check(builders.guest(2, 4),
                                     builders.host(0, 0, 0)))

    def test_a_claim_that_refuses_the_guest_is_harmless(self):
        self.assertIsNone(self.check(builders.guest(2, 4),
                                     builders.host(8, 8, 8)))
        self.assertIsNone(self.check(builders.guest(2, 4), builders.host(0)))

    def test_page_sizes_are_those_of_the_other_host(self):
        guest = dataclasses.replace(builders.guest(2, 2), cells=(
            builders.guest_cell(2, page_kib=shape.PageClass.LARGE),) * 2)
        self.assertEqual(SIZES, retry_check.pages(
            guest, builders.host(0, 0), False))
        self.assertIsNone(retry_check.pages(
            guest, builders.host(8, 8), False))
        self.assertIsNone(self.check(guest, builders.host(0, 0)))
        giant = (builders.GIANT_KIB,) * 2
        self.assertIsNone(self.check(guest, builders.host(0, 0), giant))

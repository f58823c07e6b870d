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
from hpcvirt.bench.studies import catalogue


class TestStudies(testtools.TestCase):
    def row(self, name, row_id):
        return next(row for row in catalogue.get(name).rows
                    if row.id == row_id)

    def test_ratios_are_guest_over_native(self):
        self.assertAlmostEqual(0.01561 / 0.01842,
                               self.row('S1', 'ra-small-on').ratio)
        self.assertAlmostEqual(926 / 915, self.row('S3', 'off-1vm-8').ratio)

    def test_a_stated_percentage_follows_the_direction_of_its_metric(self):
        self.assertAlmostEqual(0.967, self.row('S4', '4x8-tuned').ratio)
        self.assertAlmostEqual(1.28, self.row('S5', 'qe').ratio)
        self.assertAlmostEqual(1.4, self.row('S2', 'numa-host-warm').ratio)

    def test_a_loss_below_a_percentage_is_a_ratio_above_another(self):
        for row_id, ratio in (('bandwidth', 'above 0.9800'),
                              ('latency-large', 'below 1.1000'),
                              ('qe-ethernet', 'above 6.0000')):
            self.assertEqual(ratio, self.row('S5', row_id).figures[2])
        self.assertEqual('at least 1.6300',
                         self.row('S2', 'nodes-virtio').figures[2])

    def test_a_printed_number_may_be_a_range_or_a_limit(self):
        self.assertLessEqual(
            {'about 1 to 2 %', '7 to 8 %', '26 %', '6 %', '20 %',
             'above 100000 per second'},
            {each.figure for each in catalogue.get('S4').statements})
        self.assertLessEqual(
            {'25 times', 'about 10 to 50 %', 'at least 20 %',
             'below 10 times'},
            {each.figure for each in catalogue.get('S5').statements})

    def test_a_case_is_found_by_name(self):
        self.assertEqual('sriov', catalogue.get('S5').case('sriov').id)
        self.assertRaises(exception.InvalidInput,
                          catalogue.get('S5').case, 'x')

    def test_one_case_has_its_rows_and_claims_only(self):
        limited = catalogue.get('S1').limited_to('small-on')
        self.assertEqual(['small-on'], [case.id for case in limited.cases])
        self.assertEqual(['ra-small-on', 'hpl-small-on'],
                         [row.id for row in limited.rows])
        self.assertEqual({'0.848', '0.973', '85'},
                         {claim.printed for claim in limited.claims})

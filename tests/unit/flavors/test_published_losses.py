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

from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.flavors import published_losses


class SourcesTest(unittest.TestCase):
    """A plan cites the studies; the figures stand in both places."""

    def test_losses_by_share_are_those_of_the_tuned_cases(self):
        study_ = study_catalogue.get('S4')
        rows = [row for row in study_.rows if row.case.endswith('-tuned')
                and study_.case(row.case).guests.tuned]
        self.assertEqual(
            {row.case.removesuffix('-tuned') for row in rows},
            {loss.configuration for _, loss in published_losses.BY_SHARE})
        for share, loss in published_losses.BY_SHARE:
            case = study_.case(f'{loss.configuration}-tuned')
            percents = [row.stated_percent for row in rows
                        if row.case == case.id]
            self.assertEqual((min(percents), max(percents)),
                             (loss.low, loss.high))
            # The study's hosts have 32 cores.
            self.assertEqual(case.guests.vcpus, share * 32)
            self.assertEqual(study_.source, loss.study.document.key)
            self.assertEqual({loss.place}, {
                row.place for row in rows if row.case == case.id})


class ExpectedTest(unittest.TestCase):

    def test_the_study_s_own_sizes_have_its_figures(self):
        for pcpus, low, high in ((8, 3.3, 3.3), (16, 4.6, 4.6), (24, 5, 5),
                                 (32, 3, 6)):
            loss = published_losses.expected(pcpus, 32)
            self.assertEqual((low, high), (loss.low, loss.high))

    def test_sizes_between_take_the_next_larger_share(self):
        for pcpus, configuration in ((9, '2x16'), (31, '1x32')):
            loss = published_losses.expected(pcpus, 32)
            self.assertEqual(configuration, loss.configuration)

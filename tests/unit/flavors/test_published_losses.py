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


class EvidenceTest(unittest.TestCase):
    """A plan cites the studies; the figures stand in both places."""

    def test_losses_by_share_are_those_of_the_tuned_cases(self):
        made = study_catalogue.get('S4')
        rows = [row for row in made.rows if row.case.endswith('-tuned')
                and made.case(row.case).guests.tuned]
        self.assertEqual(
            {row.case.removesuffix('-tuned') for row in rows},
            {loss.configuration for _, loss in published_losses.BY_SHARE})
        for share, loss in published_losses.BY_SHARE:
            case = made.case(f'{loss.configuration}-tuned')
            percents = [row.stated_percent for row in rows
                        if row.case == case.id]
            self.assertEqual((min(percents), max(percents)),
                             (loss.low, loss.high))
            # The study's hosts have 32 cores.
            self.assertEqual(case.guests.vcpus, share * 32)
            self.assertEqual(made.source, loss.source)

    def test_the_time_of_one_guest_per_socket_is_the_partitioned_case_s(self):
        made = study_catalogue.get('S2')
        row = next(row for row in made.rows if row.case == 'numa-socket')
        loss = published_losses.PER_SOCKET
        self.assertEqual((row.stated_percent,) * 2, (loss.low, loss.high))
        self.assertEqual(made.source, loss.source)

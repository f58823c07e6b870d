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

"""Several guests of one request, each before a claim after those before it."""

import collections
import random

from hpcvirt.nova import filters
from tests.functional import multi_create
from tests.functional import soundness

REQUESTS = 200
GUESTS = 4


class MultiCreateTestCase(soundness.ClaimingTestCase):
    """Each test rolls its own requests, so that they can run in parallel."""

    def roll(self, block):
        later = collections.Counter()
        scheduler = multi_create.Scheduler(filters.HPCTopologyFilter())
        for number in range(REQUESTS):
            seed = block * REQUESTS + number
            dice = random.Random(f'multi-create {seed}')
            fleet = multi_create.a_fleet(dice)
            with self.subTest(seed=seed):
                for pick in scheduler.create(dice, fleet, GUESTS):
                    self.assertFalse(pick.wrong, pick)
                    later[pick.passed] += pick.number > 0
        self.assertGreater(later[True], REQUESTS // 4)
        self.assertGreater(later[False], REQUESTS // 8)

    def test_first_block_of_requests(self):
        self.roll(0)

    def test_periodic_3_more_blocks_of_requests(self):
        for block in range(1, 4):
            self.roll(block)

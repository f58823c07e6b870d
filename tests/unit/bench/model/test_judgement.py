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

from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome


class TestBound(testtools.TestCase):
    def test_a_margin_allows_a_lower_rate_and_a_longer_time(self):
        for ratio, margin, direction, limit in (
                (0.95, 0.0, outcome.Direction.UP, 0.95),
                (1.05, 0.0, outcome.Direction.DOWN, 1.05),
                (1.0, 0.03, outcome.Direction.UP, 0.97),
                (1.0, 0.03, outcome.Direction.DOWN, 1.03)):
            bound = judgement.Bound(ratio, margin)
            self.assertAlmostEqual(limit, bound.limit(direction))

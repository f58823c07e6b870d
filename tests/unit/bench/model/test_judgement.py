# SPDX-License-Identifier: Apache-2.0

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

# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record


class TestBound(testtools.TestCase):
    def test_a_margin_allows_a_lower_rate_and_a_longer_time(self):
        for ratio, margin, direction, limit in (
                (0.95, 0.0, outcome.Direction.UP, 0.95),
                (1.05, 0.0, outcome.Direction.DOWN, 1.05),
                (1.0, 0.03, outcome.Direction.UP, 0.97),
                (1.0, 0.03, outcome.Direction.DOWN, 1.03)):
            bound = judgement.Bound(ratio, margin)
            self.assertAlmostEqual(limit, bound.limit(direction))


class TestRun(testtools.TestCase):
    def test_the_label_names_what_distinguishes_a_run(self):
        run = record.Run('1', 'npb-cg', 'mpi', (), shape='4x8', case='tuned',
                         launch=record.Launch.COLD)
        self.assertEqual('npb-cg mpi 4x8 cold tuned', run.label)

    def test_the_label_leaves_out_what_is_unknown(self):
        self.assertEqual('stream', record.Run('1', 'stream', '', ()).label)

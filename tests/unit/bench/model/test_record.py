# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt.bench.model import record


class TestRun(testtools.TestCase):
    def test_the_label_names_what_distinguishes_a_run(self):
        run = record.Run('1', 'npb-cg', 'mpi', (), shape='4x8', case='tuned',
                         launch=record.Launch.COLD)
        self.assertEqual('npb-cg mpi 4x8 cold tuned', run.label)

    def test_the_label_leaves_out_what_is_unknown(self):
        self.assertEqual('stream', record.Run('1', 'stream', '', ()).label)

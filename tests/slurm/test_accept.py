# SPDX-License-Identifier: Apache-2.0

"""Accept a host of a Nova that is a node of Slurm."""

import signal

import fixtures

from hpcvirt.cmd.bench import progress
from tests.functional import test_accept
from tests.integration.cmd.bench import test_acceptance as test_ends
from tests.slurm import cluster


class AcceptThroughSlurmTest(cluster.ClusterCase, test_accept.AcceptCase):
    nodes = ('a1', 'a2')

    def test_a_host_passes_although_its_node_was_down_meanwhile(self):
        kept = []

        def go_down(shown, sample):
            finished(shown, sample)
            kept.append(sample)
            if len(kept) == 3:
                for state in ('down', 'idle'):
                    self.cluster.call('scontrol', 'update', 'nodename=a1',
                                      f'state={state}', 'reason=bad DIMM')
        finished = progress.Terminal.sample_finished
        with fixtures.MonkeyPatch('hpcvirt.cmd.bench.progress.Terminal'
                                  '.sample_finished', go_down):
            found = self.decided('PASS', native='slurm:a1', pairs=10,
                                 bounds={'mops_total': 0.9})
        self.assertEqual([], self.holders())
        self.cluster.wait_for_state('idle')
        opened = self.open_store()
        (run,) = opened.result(found['parts'][0]['result']).runs
        self.assertEqual({'slurm:a1'}, {
            value for sample in run.samples if sample.side == 'native'
            for value in sample.facts('place')})
        jobs = self.cluster.call('squeue', '-h', '-t', 'all', '-w', 'a1',
                                 '-o', '%T').split()
        self.assertEqual(1, jobs.count('NODE_FAIL'), jobs)


class AcceptEndsThroughSlurmTest(cluster.ClusterCase, test_ends.EndCase):
    nodes = ('d1', 'd2')

    def tearDown(self):
        self.cluster.wait_for_state('idle')
        super().tearDown()

    def test_a_signal_leaves_nothing(self):
        self.assert_signal_leaves_nothing('slurm:d1', signal.SIGTERM,
                                          signal.SIGTERM)
        self.assert_signal_leaves_nothing('slurm:d1', signal.SIGINT)

    def test_the_next_acceptance_ends_what_a_killed_one_left(self):
        self.assert_the_next_ends_it('slurm:d1')

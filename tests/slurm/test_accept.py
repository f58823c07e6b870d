# SPDX-License-Identifier: Apache-2.0

"""Accept a host of a Nova that is a node of Slurm."""

import fixtures

from hpcvirt.bench.execute import executor
from hpcvirt.cmd.bench import progress
from tests.functional import test_accept
from tests.slurm import cluster

NATIVE = ('--native', 'slurm:n1')


class AcceptThroughSlurmTest(cluster.ClusterCase, test_accept.AcceptCase):
    def test_a_host_passes_although_its_node_was_down_meanwhile(self):
        kept = []

        def go_down(shown, sample):
            finished(shown, sample)
            kept.append(sample)
            if len(kept) == 3:
                self.cluster.call('scontrol', 'update', 'nodename=n1',
                                  'state=down', 'reason=bad DIMM')
        finished = progress.Terminal.sample_finished
        with (fixtures.MonkeyPatch('hpcvirt.cmd.bench.progress.Terminal'
                                   '.sample_finished', go_down),
              fixtures.MonkeyPatch(
                  'hpcvirt.bench.execute.executor.RetryingExecutor'
                  '.__init__.__defaults__', (1.0,))):
            status, out, err = self.accept('--apply', *NATIVE)
        self.assertEqual((2, ''), (status, out))
        self.assertIn('slurm:n1: the node is down: bad DIMM', err)
        self.assertEqual(['accept'], self.holders())
        self.assertEqual([], self.cluster.jobs())
        self.assertEqual(executor.PATIENCE_S, (
            executor.RetryingExecutor.__init__.__defaults__[0]))
        self.cluster.call('scontrol', 'update', 'nodename=n1', 'state=idle')
        found = self.decided('PASS', *NATIVE)
        self.assertEqual([], self.holders())
        self.assertEqual([], self.cluster.jobs())
        opened = self.open_store()
        (run,) = opened.result(found['parts'][0]['result']).runs
        self.assertEqual([sample.started_at for sample in kept],
                         [sample.started_at for sample in run.samples[:3]])
        self.assertEqual({'slurm:n1'}, {
            sample.environment['place'] for sample in run.samples
            if sample.side == 'native'})

# SPDX-License-Identifier: Apache-2.0

"""Nodes of Slurm as targets, with the daemons and programs of Slurm."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from unittest import mock

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import job
from hpcvirt.bench.execute import slurm
from hpcvirt.bench.results import store
from tests.builders import commands
from tests.builders import folders
from tests.integration import program_tests
from tests.integration.bench import executor_tests
from tests.slurm import cluster

#: Prints another rate each time. It takes long while there is a file "slow".
SCRIPT = """\
#!/bin/sh
echo run >> {folder}/runs
while [ -e {folder}/slow ]; do sleep 0.1; done
echo "rate: 100.$(date +%N)"
"""


class SlurmExecutorTest(executor_tests.ExecutorTests, cluster.ClusterCase):
    # The agent finds processes by their environment.
    leavers = program_tests.LEAVERS
    nodes = ('n1', 'n2')

    def setUp(self):
        super().setUp()
        self.place = slurm.SlurmExecutor('n1')
        self.addCleanup(self.place.close)

    def test_a_program_runs_in_one_step_on_the_node(self):
        for _ in range(3):
            named = self.place.run(['printenv', 'SLURMD_NODENAME']).stdout
            self.assertEqual(b'n1\n', named)
        steps = self.cluster.call('squeue', '-h', '-s', '-o', '%i').split()
        self.assertEqual(1, len([step for step in steps
                                 if not step.endswith('extern')]), steps)

    def test_it_may_use_all_cpus_of_the_node(self):
        self.assertEqual(len(os.sched_getaffinity(0)),
                         int(self.place.run(['nproc']).stdout))

    def test_a_detached_job_ends_with_the_allocation_and_not_before(self):
        scratch = folders.make(self)
        detached = job.Job(self.place, str(scratch / 'run' / 'job'))
        detached.prepare(['sleep', '300'], {}, {})
        detached.start(0)
        cluster.wait_until(
            lambda: detached.poll() is job.JobState.RUNNING)
        time.sleep(1)
        self.assertIs(job.JobState.RUNNING, detached.poll())
        leader = pathlib.Path('/proc', (
            scratch / 'run' / 'job' / 'pid').read_text().split()[0])
        self.place.close()
        self.cluster.wait_for_state('idle')
        self.assertEqual([], self.cluster.jobs())
        self.assertFalse(waiting.poll(leader.exists, lambda found: not found,
                                      20, 0.1))

    def refused(self, kind, pattern, node='n1'):
        place = slurm.SlurmExecutor(node)
        self.addCleanup(place.close)
        with self.assertRaisesRegex(kind, pattern) as caught:
            place.run(['true'])
        self.assertNotIn('\n', str(caught.exception))
        self.assertIs(kind, type(caught.exception))
        self.assertEqual([], self.cluster.jobs())

    def test_a_node_that_cannot_be_had_is_named_with_the_reason(self):
        self.refused(exception.Unreachable, '^slurm:n7: .*nvalid node name',
                     'n7')
        with mock.patch.dict(os.environ, SALLOC_PARTITION='none'):
            self.refused(exception.Unreachable, '^slurm:n1: .*invalid '
                         'partition|^slurm:n1: .*Invalid partition')
        with mock.patch.dict(os.environ, SALLOC_PARTITION='other'):
            self.refused(exception.Unreachable, '^slurm:n1: .*node '
                         'configuration is not available')
        with mock.patch.object(executor, 'PATIENCE_S', 2):
            with mock.patch.dict(os.environ, SALLOC_PARTITION='closed'):
                self.refused(exception.Unreachable, '^slurm:n1: job [0-9]+ '
                             'queued and waiting for resources; the node is '
                             'idle: ')
            for state in ('down', 'drain'):
                self.cluster.call('scontrol', 'update', 'nodename=n1',
                                  f'state={state}', 'reason=bad DIMM')
                self.refused(exception.Unreachable,
                             f'the node is {state}.*: bad DIMM$')
                self.cluster.call('scontrol', 'update', 'nodename=n1',
                                  'state=idle')

    def test_a_node_that_runs_another_job_is_waited_for(self):
        other = slurm.SlurmExecutor('n1')
        self.addCleanup(other.close)
        other.run(['true'])
        with (mock.patch.object(executor, 'PATIENCE_S', 2),
              self.assertRaisesRegex(exception.Unreachable,
                                     'job [0-9]+ queued and waiting')):
            self.place.run(['true'])
        other.close()
        self.assertEqual(0, self.place.run(['true']).status)


class RunCase(cluster.ClusterCase):
    pairs = 4

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        script = self.folder / 'script'
        script.write_text(SCRIPT.format(folder=self.folder))
        script.chmod(0o755)
        self.data = ('--data', str(self.folder / 'data'))
        first, second = self.nodes
        self.words = ['bench', 'run', 'site-script', '--where',
                      f'slurm:{first}', '--native', f'slurm:{second}',
                      '--this-launch', '--set', f'script={script}',
                      '--pairs', str(self.pairs), '--no-verdict', *self.data,
                      '--format', 'json']

    def started(self):
        """Start a run, and hold its third sample."""
        process = subprocess.Popen(
            [sys.executable, '-m', 'hpcvirt.cmd.main', *self.words],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        cluster.wait_until(lambda: self.runs() >= 3)
        (self.folder / 'slow').touch()
        before = self.runs()
        time.sleep(1)
        cluster.wait_until(lambda: self.runs() > before)
        return process

    def runs(self):
        path = self.folder / 'runs'
        return len(path.read_text().split()) if path.exists() else 0

    def finished(self):
        """Run the command to its end, and check that no sample is missing."""
        (self.folder / 'slow').unlink(missing_ok=True)
        status, out, err = commands.run(*self.words)
        self.assertIn(status, (0, 1), err)
        self.said = err
        (run,) = json.loads(out)['runs']
        self.assertEqual({None}, {sample['outcome']['reason']
                                  for sample in run['samples']})
        guests = [sample for sample in run['samples']
                  if sample['side'] == 'guest']
        # The first is the warm-up.
        self.assertEqual(self.pairs + 1, len(guests))
        self.assertEqual([f'slurm:{node}' for node in self.nodes],
                         sorted(run['targets']))
        self.cluster.wait_for_state('idle')


class BenchRunTest(RunCase):
    nodes = ('b1', 'b2')

    def test_all_samples_of_a_run_have_one_job_on_each_node(self):
        before = self.last_job()
        self.finished()
        self.assertEqual(2, self.last_job() - before)

    def last_job(self):
        ids = self.cluster.call('squeue', '-h', '-t', 'all', '-o',
                                '%A').split()
        return max(map(int, ids), default=0)

    def test_a_killed_run_frees_its_nodes_and_is_continued(self):
        process = self.started()
        process.kill()
        process.wait()
        self.cluster.wait_for_state('idle')
        self.assertEqual([], self.cluster.jobs())
        self.finished()
        self.assertIn('continuing', self.said)

    def test_a_stopped_run_frees_its_nodes(self):
        process = self.started()
        (entry,) = self.entries()
        status, out, err = commands.run('bench', 'run', '--stop', entry,
                                        *self.data)
        self.assertEqual(0, status, err)
        self.assertIn('slurm:b1: stopped', out)
        self.assertEqual(-signal.SIGTERM, process.wait(20))
        self.cluster.wait_for_state('idle')

    def entries(self):
        opened = store.Store(None, self.data[1])
        try:
            return [entry.id for entry in opened.entries()]
        finally:
            opened.close()


class NodeFailureTest(RunCase):
    nodes = ('f1', 'f2')

    def test_a_run_goes_on_when_its_node_comes_back(self):
        process = self.started()
        self.cluster.stop_node('f1')
        (self.folder / 'slow').unlink()
        self.cluster.wait_for_state('down*', 'f1')
        time.sleep(2)
        self.cluster.replace_node('f1')
        self.assertIn(process.wait(60), (0, 1), process.stderr.read())
        self.assertIn('NODE_FAIL', self.cluster.call(
            'squeue', '-h', '-t', 'all', '-w', 'f1', '-o', '%T').split())

    def test_a_run_whose_node_stays_down_is_continued_later(self):
        (self.folder / 'slow').touch()

        def go_down():
            cluster.wait_until(self.runs)
            self.cluster.call('scontrol', 'update', 'nodename=f1,f2',
                              'state=down', 'reason=bad DIMM')
        watch = threading.Thread(target=go_down)
        watch.start()
        self.addCleanup(watch.join)
        with mock.patch.object(executor, 'PATIENCE_S', 20):
            status, out, err = commands.run(*self.words)
        self.assertEqual((2, ''), (status, out))
        self.assertIn('the node is down: bad DIMM; finished samples are kept, '
                      'and the same command continues the run', err)
        self.cluster.call('scontrol', 'update', 'nodename=f1,f2', 'state=idle')
        self.finished()
        self.assertIn('continuing', self.said)

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

"""The script that binds a rank to its CPU, run by a shell."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from hpcvirt.bench.execute import cpu_affinity
from hpcvirt.model import cpuset


class ScriptTest(unittest.TestCase):
    """The script, on this machine and on machines that consist of files."""

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def rank(self, rank, cpus, *argv, path=None, system='/sys'):
        files = cpu_affinity.files(cpuset.parse(cpus, ''))
        for name, content in files.items():
            (self.scratch / name).write_bytes(
                content.replace(b'/sys/', system.encode() + b'/'))
        done = subprocess.run(
            ['sh', './bind', *argv], cwd=self.scratch, check=False, text=True,
            capture_output=True, env={
                'PATH': f'{path}:{os.environ["PATH"]}',
                'OMPI_COMM_WORLD_LOCAL_RANK': str(rank)})
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        return done.stdout

    def test_a_rank_runs_on_the_cpu_that_is_given(self):
        for cpu in sorted(os.sched_getaffinity(0)):
            self.assertIn(f'Cpus_allowed_list:\t{cpu}\n', self.rank(
                0, str(cpu), 'cat', '/proc/self/status'))

    def test_arguments_and_status_of_the_program_are_kept(self):
        self.assertEqual("a  'b'\n", self.rank(
            0, '0', 'printf', '%s\n', "a  'b'"))

    def machine(self, cells):
        """Make a machine of files.

        :param cells: per cell its cores, per core its CPUs
        """
        for number, cores in enumerate(cells):
            for core in cores:
                for cpu in core:
                    at = self.scratch / f'sys/devices/system/cpu/cpu{cpu}'
                    (at / f'node{number}').mkdir(parents=True)
                    (at / 'topology').mkdir()
                    (at / 'topology/thread_siblings_list').write_text(
                        ','.join(map(str, core)) + '\n')
        bin_ = self.scratch / 'bin'
        bin_.mkdir()
        (bin_ / 'taskset').write_text('#!/bin/sh\necho "$2"\n')
        (bin_ / 'taskset').chmod(0o755)

    def dealt(self, cpus, ranks):
        return [self.rank(rank, cpus, 'true', path=self.scratch / 'bin',
                          system=f'{self.scratch}/sys').strip()
                for rank in range(ranks)]

    def test_cores_are_assigned_round_robin_over_the_cells(self):
        # What Open MPI 4.1.4 does on "pack:2 [numa] core:4 pu:1".
        self.machine([[[0], [1], [2], [3]], [[4], [5], [6], [7]]])
        self.assertEqual(['0', '4', '1', '5', '2', '6', '3', '7'],
                         self.dealt('0-7', 8))

    def test_only_cpus_of_the_guest_are_used(self):
        self.machine([[[0], [2], [4], [6]], [[1], [3], [5], [7]]])
        self.assertEqual(['4', '5', '6', '7'], self.dealt('4-7', 4))

    def test_a_rank_has_all_threads_of_its_core(self):
        self.machine([[[0, 8], [1, 9]], [[2, 10], [3, 11]]])
        self.assertEqual(['0,8', '2,10', '1,9', '3,11'],
                         self.dealt('0-3,8-11', 4))
        self.assertEqual(['1', '11'], self.dealt('1,11', 2))

    def test_cells_may_be_uneven_and_ranks_more_than_cores(self):
        self.machine([[[0], [1], [2]], [[10]]])
        self.assertEqual(['0', '10', '1', '2', '0'],
                         self.dealt('0-2,10', 5))

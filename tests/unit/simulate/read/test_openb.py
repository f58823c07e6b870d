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

"""The pods of Alibaba's trace.

The samples have the published form; their values are not of the trace.
"""

from tests.unit.simulate.read import files

OPENB = ('name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,'
         'creation_time,deletion_time,scheduled_time\n')


class OpenbTest(files.FilesTestCase):

    def test_a_pod_lives_from_when_it_was_scheduled(self):
        workload = self.read(
            OPENB + 'p0,12000,16384,1,1000,,LS,Running,100,900,140\n'
            'p1,1500,2048,0,0,,BE,Failed,50,80,60\n'
            'p2,88000,327680,8,1000,V100,LS,Running,110,310,110\n')
        self.assertEqual(
            [(0, 20, 2, 2048, 0), (50, 760, 12, 16384, 1),
             (60, 200, 88, 327680, 8)],
            [(job.time, job.duration, job.cpus, job.memory_mib, job.gpus)
             for job in workload.jobs])
        self.assertEqual((), workload.notes)

    def test_pods_that_were_never_scheduled_are_left_out(self):
        workload = self.read(
            OPENB + 'p0,1000,1024,0,0,,BE,Pending,10,20,\n'
            'p1,1000,1024,0,0,,BE,Running,10,20,10\n')
        self.assertEqual(1, len(workload.jobs))
        self.assertEqual(
            ['1 pod that was never scheduled or did not live is left out.'],
            [*workload.notes])

    def test_a_share_of_a_gpu_is_a_whole_one(self):
        workload = self.read(
            OPENB + 'p0,1000,1024,1,460,,BE,Running,10,20,10\n'
            'p1,0,1024,1,1000,,BE,Running,11,20,11\n')
        self.assertEqual([(1, 1), (1, 1)], [(job.cpus, job.gpus)
                                            for job in workload.jobs])
        self.assertEqual(
            ['1 pod that asks for a share of a GPU is given a whole one.'],
            [*workload.notes])

    def test_bad_rows_are_named(self):
        self.assertIn('log: line 2: num_gpu must be a number', self.fails(
            OPENB + 'p0,1000,1024,x,460,,BE,Running,10,20,10\n'))

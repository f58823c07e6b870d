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

"""Azure's tables of virtual machines.

The samples have the published form; their values are not of the trace.
"""

from tests.unit.simulate.read import files


class AzureMachinesTest(files.FilesTestCase):

    ROW = ('{id}+/=,subscription,deployment,{created},{deleted},99.9,1.5,'
           '80.1,{category},{cores},{gib}\n')

    def rows(self, *machines):
        return ''.join(self.ROW.format(
            id=number, created=created, deleted=deleted, cores=cores,
            gib=gib, category=category)
            for number, (created, deleted, cores, gib, category)
            in enumerate(machines))

    def test_both_versions_are_read(self):
        workload = self.read(self.rows(
            (0, 2591700, 2, 3.5, 'Delay-insensitive'),
            (300, 900, '>24', '>64', 'Interactive'),
            (600, 600, 8, '32', 'Unknown')))
        self.assertEqual(
            [(0, 2591700, 2, 3584), (300, 600, 30, 71680),
             (600, 300, 8, 32768)],
            [(job.time, job.duration, job.cpus, job.memory_mib)
             for job in workload.jobs])
        self.assertEqual(
            '1 machine of an open class is taken to have 30 CPUs, or 70 GiB.',
            *workload.notes)

    def test_a_header_is_no_machine(self):
        head = ('vmid,subscriptionid,deploymentid,vmcreated,vmdeleted,maxcpu,'
                'avgcpu,p95maxcpu,vmcategory,vmcorecountbucket,'
                'vmmemorybucket\n')
        row = self.rows((0, 300, 4, 8, 'Unknown'))
        self.assertEqual(self.read(row).jobs, self.read(head + row).jobs)

    def test_bad_rows_are_named(self):
        self.assertIn('log: line 2: vmcorecount must be a number', self.fails(
            self.rows((0, 300, 4, 8, 'Unknown'), (0, 300, 'x', 8, 'Unknown'))))

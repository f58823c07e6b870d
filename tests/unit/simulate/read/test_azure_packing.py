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

"""Azure's trace for packing.

The samples have the published form; their values are not of the trace.
"""

import contextlib
import gzip
import sqlite3

from tests.unit.simulate.read import files

TYPES = ((0, 1, 0, 0.25, 0.125), (1, 1, 1, 0.5, 0.25), (2, 2, 1, 1.0, 1.0),
         (3, 3, 1, 0.1, 0.03125))
MACHINES = ((0, 9, 1, 0, -1.5, 2.0), (1, 9, 2, 1, 0.5, None),
            (2, 8, 3, 0, 0.25, 0.75), (3, 8, 3, 0, 1.0, 1.0))


class AzurePackingTest(files.FilesTestCase):

    def database(self, types=TYPES, machines=MACHINES):
        path = self.folder / 'database'
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute(
                'CREATE TABLE vmType (id, vmTypeId, machineId, core REAL, '
                'memory REAL, hdd, ssd, nic)')
            database.execute(
                'CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, '
                'starttime REAL, endtime REAL)')
            database.executemany('INSERT INTO vmType VALUES (?, ?, ?, ?, ?, '
                                 '0, 0, 0)', types)
            database.executemany('INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)',
                                 machines)
            database.commit()
        return path.read_bytes()

    def test_sizes_are_parts_of_the_machine_with_the_most_types(self):
        workload = self.read(self.database(), machine=(40, 65536))
        day = 86400
        self.assertEqual(
            [(0, 3.5 * day, 20, 16384), (1.75 * day, day / 2, 4, 2048),
             (2 * day, 89.5 * day, 40, 65536)],
            [(job.time, job.duration, job.cpus, job.memory_mib)
             for job in workload.jobs])
        self.assertEqual(
            'Virtual machines are parts of one of 40 CPUs, 65536 MiB.\n'
            '1 machine of low priority is not evicted for others, as it may '
            'have been.\n'
            '1 machine that was not deleted is taken to run until day 90.\n'
            '1 machine that did not live is left out.',
            '\n'.join(workload.notes))

    def test_a_type_of_another_machine_only_is_a_part_of_that(self):
        workload = self.read(self.database(
            types=(*TYPES, (4, 7, 0, 0.75, 0.5)),
            machines=((0, 0, 7, 0, 0, 1),)), machine=(40, 65536))
        self.assertEqual((30, 32768), (workload.jobs[0].cpus,
                                       workload.jobs[0].memory_mib))

    def test_tables_as_csv_are_the_same_trace(self):
        whole = self.read(self.database())
        # As others export them.
        types = 'id,vmTypeId,core,memory\n' + ''.join(
            f'{number},{kind},{core},{memory}\n'
            for number, kind, machine, core, memory in TYPES if machine)
        machines = 'vmId,vmTypeId,priority,starttime,endtime\n' + ''.join(
            f'{number},{kind},{priority},{start},'
            f'{"" if end is None else end}\n'
            for number, _, kind, priority, start, end in MACHINES)
        for name, content in (('vm_types.csv', types.encode()),
                              ('vmType.csv.gz',
                               gzip.compress(types.encode()))):
            with self.subTest(name=name):
                path = self.folder / name
                path.write_bytes(content)
                workload = self.read(machines)
                self.assertEqual((whole.jobs, whole.notes),
                                 (workload.jobs, workload.notes))
                path.unlink()

    def test_what_is_missing_or_wrong_is_named(self):
        vm = 'vmId,vmTypeId,starttime,endtime\n1,1,0,1\n'
        self.assertIn('log: has no vmType.csv next to it', self.fails(vm))
        self.write('id,vmTypeId,core,memory\n0,2,0.5,0.5\n', 'vmType.csv')
        self.assertIn("log: line 2: vmTypeId '1' has no size",
                      self.fails(vm))
        self.write('id,vmTypeId,core,memory\n0,2,1.5,0.5\n', 'vmType.csv')
        self.assertIn('vmType.csv: line 2: core must be a number from 0',
                      self.fails(vm))
        whole = self.database()
        self.assertIn('row 1 of SELECT * FROM vm: starttime must be',
                      self.fails(self.database_of((0, 0, 1, 0, 'x', 1))))
        self.assertIn('cannot be read as a database of SQLite',
                      self.fails(whole[:100]))
        self.assertIn('expand it first if it is compressed',
                      self.fails(gzip.compress(whole)))

    def database_of(self, machine):
        (self.folder / 'database').unlink(missing_ok=True)
        data = self.database(machines=(machine,))
        (self.folder / 'database').unlink()
        return data

# SPDX-License-Identifier: Apache-2.0

"""Traces of research are read, and become a CSV of boots.

The samples have the published forms; their values are not of the traces.
"""

import contextlib
import gzip
import importlib.util
import io
import pathlib
import sqlite3
import sys
import time

from hpcvirt import exception
from hpcvirt.simulate import read
from tests.unit.simulate.read import files

_spec = importlib.util.spec_from_file_location(
    'traces', pathlib.Path(__file__).parents[3] / 'benchmarks' / 'traces.py')
traces = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = traces
_spec.loader.exec_module(traces)

MACHINE = 64, 262144
OPENB = ('name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,'
         'creation_time,deletion_time,scheduled_time\n')
TYPES = ((0, 1, 0, 0.25, 0.125), (1, 1, 1, 0.5, 0.25), (2, 2, 1, 1.0, 1.0),
         (3, 3, 1, 0.1, 0.03125))
MACHINES = ((0, 9, 1, 0, -1.5, 2.0), (1, 9, 2, 1, 0.5, None),
            (2, 8, 3, 0, 0.25, 0.75), (3, 8, 3, 0, 1.0, 1.0))

class TracesTestCase(files.FilesTestCase):
    def read(self, content, machine=MACHINE):
        return traces.read(self.write(content), machine)


class ConversionTest(TracesTestCase):
    def convert(self, content, *words):
        with contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(io.StringIO()) as error:
            status = traces.main([self.write(content), *words])
        return status, out.getvalue(), error.getvalue()

    def test_a_replay_reads_the_same_jobs(self):
        for content, words in (
                (OPENB + 'p0,12000,16384,1,460,,LS,Running,100,900,140\n'
                 'p1,1500,2048,0,0,,BE,Failed,50,80,60\n', ()),
                (AzurePackingTest.database(self),
                 ('--machine', '40', '65536'))):
            expected = self.read(content, (40, 65536))
            status, table, error = self.convert(content, *words)
            self.assertEqual(0, status)
            self.assertEqual([*expected.notes], error.splitlines())
            found = read.workload(self.write(table))
            self.assertEqual(expected.jobs, found.jobs)

    def test_what_is_no_trace_is_refused_in_one_line(self):
        status, out, error = self.convert('a thesis')
        self.assertEqual((2, ''), (status, out))
        self.assertRegex(error, '^traces: .*log: is no trace that is known$')
        with self.assertRaises(exception.InvalidInput):
            self.read('')


class OpenbTest(TracesTestCase):
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


class AzurePackingTest(TracesTestCase):
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

    def test_no_sql_of_a_database_is_executed(self):
        for statement in (
                ('ALTER TABLE vm RENAME TO x; CREATE VIEW vm AS '
                 'WITH RECURSIVE r(vmTypeId) AS (SELECT 1 UNION ALL '
                 'SELECT 1 FROM r) SELECT * FROM r'),
                ('DROP TABLE vm; CREATE TABLE vm (vmTypeId, starttime AS '
                 '(zeroblob(9e8)))')):
            self.database()
            path = self.folder / 'database'
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.executescript(statement)
            self.assertIn('vm is not a table of plain columns',
                          self.fails(path.read_bytes()))
            path.unlink()

    def test_many_types_of_many_machines_are_read_quickly(self):
        start = time.process_time()
        self.read(self.database(types=[
            (kind, kind, kind, 0.5, 0.5) for kind in range(2000)]))
        self.assertLess(time.process_time() - start, 5)

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
        self.assertIn("log: line 2: vmTypeId '1' has no size", self.fails(vm))
        self.write('id,vmTypeId,core,memory\n0,2,1.5,0.5\n', 'vmType.csv')
        self.assertIn('vmType.csv: line 2: core must be a number from 0',
                      self.fails(vm))
        whole = self.database()
        self.assertIn('row 1 of vm: starttime must be',
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


class AzureMachinesTest(TracesTestCase):
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

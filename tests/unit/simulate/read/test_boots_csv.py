# SPDX-License-Identifier: Apache-2.0

"""Tables of boots and deletions."""

import csv
import datetime
import io
import json
import time

from hypothesis import given
from hypothesis import strategies as st

from hpcvirt.simulate import mapping
from tests.unit.simulate.read import files

HEAD = 'uuid,created_at,deleted_at,vcpus,memory_mb,flavor,extra_specs\n'
PINNED = {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2'}


def of_nova(name='hpc', vcpus=4, memory_mb=8192, extra_specs=None):
    """A flavor as Nova's database has it in instance_extra."""
    return json.dumps({'new': None, 'old': None, 'cur': {
        'nova_object.name': 'Flavor', 'nova_object.namespace': 'nova',
        'nova_object.version': '1.2', 'nova_object.data': {
            'id': 7, 'name': name, 'vcpus': vcpus, 'memory_mb': memory_mb,
            'root_gb': 20, 'extra_specs': extra_specs or {}}}})


class BootsTest(files.FilesTestCase):
    def table(self, *rows, head=HEAD):
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        return head + text.getvalue()

    def test_an_instance_lives_from_its_creation_to_its_deletion(self):
        workload = self.read(self.table(
            ('a', '2026-10-01 10:00:30', '2026-10-01T10:05:00Z', 4, 8192,
             'm1', ''),
            ('b', '2026-10-01 12:00:00.5+02:00', '2026-10-02 10:00:00', 2,
             512, 'm2', '')))
        self.assertEqual([(0, 86399.5, 2, 512), (29.5, 270, 4, 8192)],
                         [(job.time, job.duration, job.cpus, job.memory_mib)
                          for job in workload.jobs])
        self.assertFalse(workload.splits)
        self.assertEqual({}, workload.flavors)

    def test_devices_are_read_where_there_is_a_column(self):
        workload = self.read('created_at,deleted_at,vcpus,memory_mb,gpus,vfs\n'
                             '0,9,4,64,2,\n1,9,4,64,,1\n')
        self.assertEqual([(2, 0), (0, 1)],
                         [(job.gpus, job.vfs) for job in workload.jobs])
        self.assertIn('log: line 2: gpus must be', self.fails(
            'created_at,deleted_at,vcpus,memory_mb,gpus\n0,9,4,64,x\n'))

    def test_times_may_be_seconds(self):
        workload = self.read('created_at,deleted_at,vcpus,memory_mb\n'
                             '1790000000,1790000060.5,1,64\n')
        self.assertEqual(60.5, workload.jobs[0].duration)

    def test_what_was_not_deleted_runs_to_the_end_of_the_log(self):
        workload = self.read(self.table(
            ('a', '2026-10-01 10:00', 'NULL', 4, 8192, '', ''),
            ('b', '2026-10-01 11:00', '2026-10-01 13:00', 4, 8192, '', ''),
            ('c', '2026-10-01 12:00', '', 4, 8192, '', '')))
        self.assertEqual([10800, 7200, 3600],
                         [job.duration for job in workload.jobs])
        self.assertEqual(
            '2 instances that were not deleted are taken to run until the '
            'last time in the log.', *workload.notes)

    def test_flavors_are_those_that_the_log_describes(self):
        workload = self.read(self.table(
            ('a', '10', '20', 4, 8192, 'hpc', json.dumps(PINNED)),
            ('b', '11', '20', 4, 8192, 'hpc', json.dumps(PINNED)),
            ('c', '12', '20', 4, 4096, 'hpc', json.dumps(PINNED)),
            ('d', '13', '20', 1, 512, 'plain', '{}'),
            ('e', '14', '20', 1, 512, 'named', '')))
        self.assertEqual(['hpc', 'hpc', 'hpc (2)', 'plain', 'named'],
                         [job.flavor for job in workload.jobs])
        self.assertEqual({'hpc': 8192, 'hpc (2)': 4096, 'plain': 512}, {
            name: flavor.ram_mib for name, flavor
            in workload.flavors.items()})
        self.assertEqual(PINNED, workload.flavors['hpc'].extra_specs)

    def test_thousands_of_flavors_of_a_name_take_no_longer_each(self):
        start = time.process_time()
        workload = self.read(self.table(*(
            (str(number), '10', '20', 2 + 2 * number, 512, 'vm',
             json.dumps(PINNED)) for number in range(3000))))
        requests = mapping.map_jobs(workload, [])
        self.assertEqual([*range(3000)],
                         [each.flavor for each in requests.arrivals])
        self.assertEqual('vm (3000)', requests.flavors[-1].flavor.name)
        # With a quadratic step, twice as many took half a minute.
        self.assertLess(time.process_time() - start, 4)

    def test_a_flavor_may_be_as_in_novas_database(self):
        rows = [('a', '10', '20', of_nova(extra_specs=PINNED)),
                ('b', '15', '20', of_nova('m1', 2, 64))]
        workload = self.read(self.table(
            *rows, head='uuid,created_at,deleted_at,flavor\n'))
        self.assertEqual([(4, 8192, 'hpc'), (2, 64, 'm1')],
                         [(job.cpus, job.memory_mib, job.flavor)
                          for job in workload.jobs])
        self.assertEqual(PINNED, workload.flavors['hpc'].extra_specs)

    def test_the_client_of_mariadb_prints_such_a_table(self):
        flavor = of_nova('with "quotes"', extra_specs=PINNED)
        row = '\t'.join(('a', '2026-10-01 10:00:00', 'NULL',
                         flavor.replace('\\', '\\\\')))
        workload = self.read('uuid\tcreated_at\tdeleted_at\tflavor\n'
                             f'{row}\nb\t2026-10-01 11:00:00\t'
                             f'2026-10-01 11:00:10\t{of_nova()}\n')
        self.assertEqual(['with "quotes"', 'hpc'], list(workload.flavors))
        self.assertEqual([3610, 10], [job.duration for job in workload.jobs])

    def test_instances_of_one_request_are_one_job(self):
        head = ('created_at,deleted_at,vcpus,memory_mb,reservation_id\n')
        workload = self.read(self.table(
            ('10', '20', 4, 512, 'r-1'), ('11', '40', 4, 512, 'r-1'),
            ('12', '20', 4, 512, 'r-2'), ('12', '20', 4, 512, ''),
            ('12', '20', 4, 512, ''), ('13', '20', 8, 512, 'r-1'), head=head))
        self.assertEqual(
            [(0, 19.5, 2, 4), (2, 8, 1, 4), (2, 8, 1, 4), (2, 8, 1, 4),
             (3, 7, 1, 8)],
            [(job.time, job.duration, job.count, job.cpus)
             for job in workload.jobs])
        self.assertIn('2 instances that were requested together are placed '
                      'or refused together, and taken to live for the mean '
                      'of their lives.', workload.notes)

    def test_rows_of_one_instance_count_once(self):
        workload = self.read(self.table(
            *[('a', '10', '20', 4, 512, '', '')] * 3,
            ('b', '10', '20', 4, 512, '', '')))
        self.assertEqual(2, len(workload.jobs))
        self.assertIn('2 rows that repeat an instance are left out.',
                      workload.notes)

    def test_instances_that_did_not_live_are_left_out(self):
        workload = self.read(self.table(
            ('a', '10', '10', 4, 512, '', ''),
            ('b', '10', '9', 4, 512, '', ''),
            ('c', '10', '20', 4, 512, '', '')))
        self.assertEqual(1, len(workload.jobs))
        self.assertIn('2 instances that did not live are left out.',
                      workload.notes)

    def test_bad_rows_are_named(self):
        good = self.table(('a', '10', '20', 4, 512, '', ''))
        for row, what in (
                ('b,10,20,4,512,', 'has 6 columns instead of 7'),
                ('b,,20,4,512,,', 'created_at must be a time such as'),
                ('b,yesterday,20,4,512,,', "seconds, not 'yesterday'"),
                ('b,1790000000000,20,4,512,,', 'created_at must be a number'),
                ('b,10,20,0,512,,', 'vcpus must be a number from 1'),
                ('b,10,20,,512,,', 'vcpus must be a number from 1'),
                ('b,10,20,1.5,512,,', 'vcpus must be a whole number'),
                ('b,10,20,4,-1,,', 'memory_mb must be a number from 0'),
                ('b,10,20,4,512,hpc,{', 'extra_specs: is not valid JSON'),
                ('b,10,20,4,512,hpc,[]', 'extra_specs: is not a mapping'),
                ('b,10,20,4,512,"{""cur"": null}",', 'is not a flavor of'),
                ('b,10,20,4,512,"{""cur"": {}}",', 'vcpus must be a number'),
                ('b,10,20,4,512,"hpc,', 'cannot be read as CSV')):
            with self.subTest(row=row):
                said = self.fails(f'{good}{row}\n')
                self.assertIn('log: line 3: ', said)
                self.assertIn(what, said)

    def test_a_table_without_instances_is_refused(self):
        self.assertIn('has no job that ran', self.fails(HEAD))
        self.assertIn('line 1: cannot be read as CSV',
                      self.fails('created_at,deleted_at,"x\n'))

    @given(st.lists(st.tuples(
        st.datetimes(*(datetime.datetime.fromisoformat(day) for day
                       in ('1980-01-01', '2100-01-01'))),
        st.integers(1, 10 ** 8), st.integers(1, 512),
        st.integers(0, 1 << 24), st.text('a",\n\'; \t', max_size=9)),
        min_size=1, max_size=20), st.sampled_from(',;'))
    def test_what_is_written_is_read_again(self, boots, delimiter):
        text = io.StringIO()
        writer = csv.writer(text, delimiter=delimiter)
        writer.writerow(HEAD.strip().split(','))
        for number, (created, life, *size, name) in enumerate(boots):
            writer.writerow([number, created, created + datetime.timedelta(
                seconds=life), *size, name, json.dumps({'own': name})])
        workload = self.read(text.getvalue())
        boots.sort(key=lambda boot: boot[0])
        self.assertEqual([tuple(boot[1:4]) for boot in boots],
                         [(round(job.duration), job.cpus, job.memory_mib)
                          for job in workload.jobs])
        self.assertEqual([boot[4] for boot in boots],
                         [workload.flavors[job.flavor].extra_specs['own']
                          for job in workload.jobs])

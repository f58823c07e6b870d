# SPDX-License-Identifier: Apache-2.0

"""The boots and deletions that Nova's database and API know."""

import contextlib
import csv
import datetime
import pathlib
import runpy

import sqlalchemy
from nova import context
from nova.db.main import api as database_api

from hpcvirt import exception
from hpcvirt.simulate import read
from testing import machines
from testing import nova
from tests.builders import folders

CONTRIB = pathlib.Path(__file__).parents[2] / 'contrib' / 'boots'
PINNED = {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '1'}


class BootsTest(nova.EmbeddedNova):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.add_machines(machines.build('node1', pages={2048: 1024}))

    def from_database(self):
        """Read what the query finds in the cells."""
        query = (CONTRIB / 'boots.sql').read_text()
        path = self.folder / 'database.csv'
        with path.open('w', newline='') as file:
            writer = csv.writer(file)
            header = False
            for connection in self.cell_connections():
                found = connection.execute(sqlalchemy.text(
                    query.rstrip(';\n')))
                if not header:
                    writer.writerow(found.keys())
                header = True
                writer.writerows(found)
        return read.workload(str(path))

    def from_api(self):
        """Read what the script prints."""
        self.use_as_cloud()
        path = self.folder / 'api.csv'
        with path.open('w', newline='') as file, \
                contextlib.redirect_stdout(file):
            runpy.run_path(str(CONTRIB / 'export_boots.py'),
                           run_name='__main__')
        return read.workload(str(path))

    def age(self, hours):
        """Let all instances have been created earlier."""
        for connection in self.cell_connections():
            for uuid, created in connection.execute(sqlalchemy.text(
                    'SELECT uuid, created_at FROM instances')).all():
                earlier = datetime.datetime.fromisoformat(
                    str(created)) - datetime.timedelta(hours=hours)
                connection.execute(
                    sqlalchemy.text('UPDATE instances SET created_at = '
                                    ':earlier WHERE uuid = :uuid'),
                    # SQLite compares times as text.
                    {'earlier': f'{earlier:%Y-%m-%d %H:%M:%S.%f}',
                     'uuid': uuid})

    def archive(self):
        """Do what "nova-manage db archive_deleted_rows" does."""
        for cell in self.cell_mappings.values():
            with context.target_cell(
                    context.get_admin_context(), cell) as targeted, (
                        self.shared_databases.in_use):
                database_api.archive_deleted_rows(targeted, max_rows=1000)

    def summary(self, workload):
        return sorted((round(job.time / 3600), round(job.duration / 3600),
                       job.cpus, job.memory_mib, job.count, job.flavor)
                      for job in workload.jobs)

    def test_periodic_database_and_api_tell_what_was_booted_and_deleted(self):
        pinned = self.create_flavor(2, 512, PINNED, name='pinned')
        other = self.create_flavor(1, 64, {'hw:cpu_policy': 'dedicated'},
                                   name='other')
        pair = self.boot_many(pinned, 2)
        self.boot(self.create_flavor(999, 64, PINNED), status='ERROR')
        for server in pair:
            self.delete(server)
        self.age(3)
        self.boot(other)
        gone = self.boot(other)
        self.age(2)
        self.delete(gone)

        jobs = [(0, 5, 2, 512, 2, 'pinned'), (3, 2, 1, 64, 1, 'other'),
                (3, 2, 1, 64, 1, 'other')]
        from_database, from_api = self.from_database(), self.from_api()
        for workload in (from_database, from_api):
            self.assertEqual(jobs, self.summary(workload))
            self.assertEqual(PINNED, workload.flavors['pinned'].extra_specs)
            self.assertEqual(1, sum('1 instance that was not deleted' in note
                                    for note in workload.notes))

        self.archive()
        self.assertEqual(from_database, self.from_database())
        with self.assertRaisesRegex(exception.InvalidInput, '1 instance '):
            self.from_api()

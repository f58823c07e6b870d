# SPDX-License-Identifier: Apache-2.0

import contextlib
import hashlib
import pathlib
import sqlite3

import testtools
from alembic import autogenerate
from alembic import script
from alembic.runtime import migration as runtime
from oslo_db import exception as db_exception

from hpcvirt import exception
from hpcvirt.bench.model import record
from hpcvirt.bench.results import database
from hpcvirt.bench.results import store
from hpcvirt.bench.results import tables
from tests.builders import folders
from tests.builders import runs

DATA = pathlib.Path(__file__).parents[3] / 'data' / 'bench' / 'store'
#: A store of the first format, which had neither revisions nor versions.
FIRST = (DATA / 'before_versions.sql').read_text(encoding='utf-8')

DOCUMENTS = {'runs': 'SELECT document FROM hpcvirt_runs',
             'samples': 'SELECT document FROM hpcvirt_samples'}


class TestMigration(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.scratch = str(folders.make(self))
        self.file = pathlib.Path(self.scratch, 'bench.sqlite')

    def change(self, script):
        with contextlib.closing(sqlite3.connect(self.file)) as connection:
            connection.executescript(script)

    def load(self, dump=FIRST):
        self.change(dump)
        self.before = self.digest()

    def digest(self):
        return hashlib.sha256(self.file.read_bytes()).hexdigest()

    def rows(self, query):
        connection = sqlite3.connect(self.file)
        self.addCleanup(connection.close)
        return connection.execute(query).fetchall()

    def open(self, **more):
        opened = store.Store(f'sqlite:///{self.file}', self.scratch, **more)
        self.addCleanup(opened.close)
        return opened

    def connect(self):
        engine = database.connect(database.parse_url(f'sqlite:///{self.file}'))
        self.addCleanup(engine.dispose)
        return engine

    def read(self):
        opened = store.open_existing(f'sqlite:///{self.file}', self.scratch)
        self.addCleanup(opened.close)
        return {entry: opened.result(entry.id) for entry in opened.entries()}

    def test_a_store_of_the_first_format_is_read_as_it_is(self):
        self.load()
        finished, unfinished = self.read().values()
        self.assertEqual([5, 1], [len(run.samples) for run in finished.runs])
        run = finished.runs[0]
        self.assertEqual(1.03, run.bounds['wall_s'].ratio)
        sample = run.samples[2]
        self.assertEqual(('7', 2.05, 'K\u00f6ln 3000'), (
            sample.launch_id, sample.outcome.metrics['wall_s'].value,
            sample.environment['cpu.model']))
        self.assertFalse(finished.runs[1].samples[0].outcome.valid)
        self.assertEqual(1, len(unfinished.runs[0].samples))
        self.assertEqual(self.before, self.digest())

    def test_it_is_migrated_before_it_is_written_and_loses_nothing(self):
        self.load()
        before = self.read()
        opened = self.open()
        self.assertEqual(before, self.read())
        self.assertEqual([('0002',)], self.rows(
            'SELECT version_num FROM hpcvirt_alembic_version'))
        for table, count in (('runs', 3), ('samples', 7)):
            documents = self.rows(DOCUMENTS[table])
            self.assertEqual(count, len(documents))
            for document, in documents:
                self.assertTrue(document.startswith('{"schema_version": 1, '))
        # The unfinished result goes on.
        entry = opened.open_entry(store.Entry('new', 'b' * 64, 'now', None),
                                  {})
        self.assertEqual('20261121b', entry.id)

    def test_a_migrated_store_is_left_alone(self):
        self.load()
        self.open().close()
        before = self.digest()
        self.open().close()
        self.assertEqual(before, self.digest())

    def test_what_an_older_version_adds_after_the_migration_is_read(self):
        self.load()
        self.open().close()
        self.change(
            'INSERT INTO hpcvirt_samples SELECT run_id, 1, replace('
            """replace(document, '"schema_version": 1, ', ''), """
            """'"position": 0', '"position": 1') """
            "FROM hpcvirt_samples WHERE run_id = '20261121b-0'")
        *_, result = self.read().values()
        self.assertEqual(2, len(result.runs[0].samples))

    def test_a_migration_that_fails_changes_nothing(self):
        self.load(FIRST + 'CREATE TRIGGER full BEFORE UPDATE ON '
                  "hpcvirt_samples BEGIN SELECT RAISE(ABORT, 'full'); END;")
        before = self.rows(DOCUMENTS['runs'])
        engine = self.connect()
        self.assertRaises(db_exception.DBError, tables.migrate, engine,
                          'here')
        self.assertEqual(before, self.rows(DOCUMENTS['runs']))
        self.assertEqual([], self.rows(
            "SELECT name FROM sqlite_master WHERE name LIKE '%alembic%'"))

    def test_a_newer_store_is_refused_and_left_alone(self):
        self.open().close()
        self.change(
            "UPDATE hpcvirt_alembic_version SET version_num = '0099'")
        before = self.digest()
        for act in (self.open, self.read):
            error = self.assertRaises(exception.InvalidInput, act)
            self.assertIn("bench.sqlite: is a store of the format '0099', but "
                          "this version of hpcvirt knows formats up to '0002'",
                          str(error))
        self.assertEqual(before, self.digest())

    def test_a_document_of_a_newer_schema_is_refused(self):
        self.load(FIRST.replace('{"arm"', '{"schema_version": 2, "arm"', 1))
        error = self.assertRaises(exception.InvalidInput, self.read)
        self.assertIn('sample 0 of 20261120a-0: schema_version: is 2',
                      str(error))

    def test_the_revisions_are_those_of_alembic(self):
        scripts = script.ScriptDirectory(tables.SCRIPTS)
        self.assertEqual(
            [each.revision for each in scripts.walk_revisions()],
            [*reversed(tables.REVISIONS)])

    def test_the_revisions_make_the_tables_of_the_store(self):
        self.open().close()
        engine = self.connect()
        with engine.connect() as connection:
            context = runtime.MigrationContext.configure(
                connection, opts={'version_table': tables.VERSION_TABLE})
            self.assertEqual([], autogenerate.compare_metadata(
                context, tables.METADATA))

    def test_documents_that_are_written_say_their_version(self):
        opened = self.open()
        opened.open_entry(store.Entry('e', 'plan', 'now', None), {})
        opened.add_run('e', 0, runs.stream())
        (document,), = self.rows(DOCUMENTS['runs'])
        self.assertTrue(document.startswith(
            f'{{"schema_version": {record.SCHEMA_VERSION}, '))

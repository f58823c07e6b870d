# SPDX-License-Identifier: Apache-2.0

import contextlib
import hashlib
import pathlib
import sqlite3

import testtools
from alembic import autogenerate
from alembic import script
from alembic.runtime import migration as runtime
from sqlalchemy import exc

from hpcvirt import exception
from hpcvirt.bench.model import record
from hpcvirt.bench.results import database
from hpcvirt.bench.results import store
from hpcvirt.bench.results import tables
from tests.builders import folders
from tests.builders import runs

DOCUMENTS = 'SELECT document FROM hpcvirt_runs'


class TestMigration(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.scratch = str(folders.make(self))
        self.file = pathlib.Path(self.scratch, 'bench.sqlite')

    def change(self, script):
        with contextlib.closing(sqlite3.connect(self.file)) as connection:
            connection.executescript(script)

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

    def test_a_store_that_is_there_is_left_alone(self):
        self.open().close()
        before = self.digest()
        self.open().close()
        self.assertEqual(before, self.digest())

    def test_tables_that_cannot_be_made_leave_nothing(self):
        self.change('CREATE TABLE other (id TEXT);'
                    'CREATE INDEX hpcvirt_samples ON other (id);')
        engine = self.connect()
        self.assertRaises(exc.DBAPIError, tables.migrate, engine, 'here')
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
                          "this version of hpcvirt knows formats up to '0001'",
                          str(error))
        self.assertEqual(before, self.digest())

    def test_a_document_of_a_newer_schema_is_refused(self):
        opened = self.open()
        opened.open_entry(store.Entry('e', 'plan', 'now', None), {})
        opened.add_run('e', 0, runs.stream())
        opened.close()
        self.change('UPDATE hpcvirt_runs SET document = replace(document, '
                    """'"schema_version": 1', '"schema_version": 2')""")
        error = self.assertRaises(exception.InvalidInput, self.read)
        self.assertIn('run r1: schema_version: is 2', str(error))

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
        (document,), = self.rows(DOCUMENTS)
        self.assertTrue(document.startswith(
            f'{{"schema_version": {record.SCHEMA_VERSION}, '))

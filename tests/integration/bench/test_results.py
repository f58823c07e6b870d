# SPDX-License-Identifier: Apache-2.0

import sqlite3
import threading

import testtools

from hpcvirt import exception
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store
from tests.builders import folders
from tests.builders import runs

STARTED_AT = '2026-11-20T10:00:00+00:00'
#: Longer than a write takes on a busy machine.
WAITING_S = 0.5
LIMIT_S = 60


class TestOtherWriters(testtools.TestCase):
    """Another process writes to the database of SQLite."""

    def setUp(self):
        super().setUp()
        self.scratch = str(folders.make(self))
        self.store = store.Store(None, self.scratch)
        self.addCleanup(self.store.close)
        self.store.open_entry(self.entry('e1'), {})
        self.store.add_run('e1', 0, self.run_of('r1'))

    def entry(self, name):
        return store.Entry(name, f'plan{name}', STARTED_AT, None)

    def run_of(self, name):
        return runs.stream(name)

    def check_waits(self, write):
        """Check that a write waits while another writer holds the lock."""
        other = sqlite3.connect(f'{self.scratch}/bench.sqlite',
                                isolation_level=None)
        other.execute('BEGIN IMMEDIATE')
        errors = []

        def keep_error():
            try:
                write()
            except exception.HpcvirtError as exc:
                errors.append(str(exc))

        writer = threading.Thread(target=keep_error)
        writer.start()
        writer.join(WAITING_S)
        waits = writer.is_alive()
        other.execute('COMMIT')
        other.close()
        writer.join(LIMIT_S)
        self.assertEqual([], errors)
        self.assertTrue(waits)

    def test_a_new_entry_waits(self):
        self.check_waits(lambda: self.store.open_entry(self.entry('e2'), {}))
        self.assertEqual(['e1', 'e2'],
                         [entry.id for entry in self.store.entries()])

    def test_a_new_run_waits(self):
        self.check_waits(
            lambda: self.store.add_run('e1', 1, self.run_of('r2')))
        self.assertEqual(
            ['r1', 'r2'], [run.id for run in self.store.result('e1').runs])

    def test_a_run_that_the_store_has_waits_and_stays_as_it_is(self):
        self.check_waits(
            lambda: self.store.add_run('e1', 1, self.run_of('r1')))
        self.assertEqual(
            ['r1'], [run.id for run in self.store.result('e1').runs])

    def test_a_new_sample_waits(self):
        self.check_waits(lambda: self.store.add_sample('r1', record.Sample(
            record.Side.GUEST, 0, 0, outcome.Outcome(False, 'no'))))
        (run,) = self.store.result('e1').runs
        self.assertEqual(1, len(run.samples))

    def test_the_end_of_an_entry_waits(self):
        self.check_waits(lambda: self.store.finish('e1', STARTED_AT))
        (entry,) = self.store.entries()
        self.assertEqual(STARTED_AT, entry.finished_at)

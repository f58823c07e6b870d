# SPDX-License-Identifier: Apache-2.0

import dataclasses
import os
import unittest

from sqlalchemy import schema
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite

from hpcvirt import exception
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store
from hpcvirt.bench.results import tables
from tests.builders import folders
from tests.builders import runs

FRESH = store.Entry('e2', 'plan', '2026-11-20T11:00:00+00:00', None)


def sample(position, side=record.Side.NATIVE, **more):
    return record.Sample(side, position, position, runs.TRIAD, **more)


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.scratch = str(folders.make(self))
        self.store = self.open()
        self.entry = self.store.open_entry(
            store.Entry('e1', 'plan', '2026-11-20T10:00:00+00:00', None),
            {'hpcvirt': '1.0'})
        self.run_ = runs.stream()
        self.store.add_run('e1', 0, self.run_)

    def open(self):
        url = f'sqlite:///{self.scratch}/new/bench.sqlite'
        opened = store.Store(url, os.path.join(self.scratch, 'raw'))
        self.addCleanup(opened.close)
        return opened

    def test_what_was_added_is_read_by_the_next_one(self):
        samples = (sample(0), sample(1, record.Side.GUEST, exit_status=0))
        for taken in samples:
            self.store.add_sample('r1', taken)
        result = self.open().result('e1')
        self.assertEqual(samples, result.runs[0].samples)
        self.assertEqual('n17', result.runs[0].host)
        self.assertEqual({'hpcvirt': '1.0'}, result.software)

    def test_samples_come_back_in_the_order_of_execution(self):
        for position in (2, 0, 1):
            self.store.add_sample('r1', sample(position))
        samples = self.store.result('e1').runs[0].samples
        self.assertEqual([0, 1, 2], [stored.position for stored in samples])

    def test_a_sample_is_never_overwritten(self):
        self.store.add_sample('r1', sample(0, exit_status=0))
        self.assertRaisesRegex(
            exception.InvalidInput, 'already has a sample 0',
            self.store.add_sample, 'r1', sample(0, exit_status=1))
        kept = self.store.result('e1').runs[0].samples
        self.assertEqual(0, kept[0].exit_status)

    def test_the_same_plan_continues_the_unfinished_entry(self):
        again = self.store.open_entry(FRESH, {})
        self.assertEqual('e1', again.id)

    def test_the_same_plan_starts_anew_after_a_finished_entry(self):
        self.store.finish('e1', '2026-11-20T10:30:00+00:00')
        self.assertEqual(FRESH, self.store.open_entry(FRESH, {}))
        self.assertEqual(['e1', 'e2'],
                         [entry.id for entry in self.store.entries()])

    def test_an_unfinished_entry_that_does_not_fit_is_left_as_it_is(self):
        self.assertEqual(FRESH, self.store.open_entry(
            FRESH, {}, lambda entry: entry.id != 'e1'))
        self.assertEqual('e1', self.store.open_entry(
            FRESH, {}, lambda entry: entry.id == 'e1').id)

    def test_earlier_attempts_on_the_same_subject_are_read(self):
        for number, (subject, host, hour) in enumerate((
                ('s', 'n17', 1), ('other', 'n17', 1), ('s', 'n18', 1),
                ('', 'n17', 1), ('s', 'n17', 3), ('s', 'n17', 2))):
            run = runs.stream(f'a{number}', host=host, subject=subject,
                              started_at=f'2026-11-20T0{hour}')
            self.store.add_run('e1', 1 + number, run)
            self.store.add_sample(run.id, sample(0, warm_up=True))
            self.store.add_sample(run.id, sample(
                1, command=('stream',), environment={
                    'boot_id@vm': 'b', 'kernel': '6.1'}))
        earlier = {run.id: run.earlier for run in self.store.result('e1').runs}
        self.assertEqual(
            {'r1': [], 'a0': [], 'a1': [], 'a2': [], 'a3': [],
             'a4': ['a0', 'a5'], 'a5': ['a0']},
            {name: [attempt.id for attempt in found]
             for name, found in earlier.items()})
        (attempt,) = earlier['a5']
        self.assertEqual((sample(1, environment={'boot_id@vm': 'b'}),),
                         attempt.samples)

    def test_of_many_attempts_the_last_ones_are_read(self):
        for number in range(25):
            run = runs.stream(f'a{number:02d}', subject='s',
                              started_at=f'2026-11-20T10:{number:02d}')
            self.store.add_run('e1', 1 + number, run)
            self.store.add_sample(run.id, sample(0))
            self.store.add_sample(run.id, dataclasses.replace(
                sample(1, warm_up=True),
                outcome=outcome.Outcome(number != 20, 'hung')))
        for _ in range(2):
            last = self.store.result('e1').runs[-1]
            # Only a warm-up that failed counts in later attempts.
            self.assertEqual([number == 20 for number in range(4, 24)], [
                any(each.warm_up for each in attempt.samples)
                for attempt in last.earlier])
            self.assertEqual(
                [f'a{number:02d}' for number in range(4, 24)],
                [attempt.id for attempt in last.earlier])
            self.assertEqual((4, 24), (last.omitted, last.attempts_before))
        # What was added since is read.
        self.store.add_sample('a23', sample(2))
        last = self.store.result('e1').runs[-1]
        self.assertEqual(2, len(last.earlier[-1].samples))

    def test_raw_output_is_kept_byte_by_byte(self):
        content = b'\x00\xff GB/s\r\n'
        raw = self.store.keep_raw('r1', 3, 'out/rsl.error.0000', content)
        path = os.path.join(self.scratch, 'raw', raw.path)
        with open(path, 'rb') as stream:
            self.assertEqual(content, stream.read())
        self.assertEqual(len(content), raw.size_bytes)

    def test_an_unknown_result_is_bad_input(self):
        self.assertRaises(exception.InvalidInput, self.store.result, 'e9')

    def test_what_is_no_url_is_bad_input(self):
        self.assertRaises(exception.InvalidInput, store.Store, 'nonsense',
                          self.scratch)

    def test_a_file_that_is_no_database_is_told_in_one_line(self):
        path = os.path.join(self.scratch, 'text')
        with open(path, 'w') as stream:
            stream.write('this is no database' * 100)
        with self.assertRaises(exception.Unreachable) as caught:
            store.Store(f'sqlite:///{path}', self.scratch)
        self.assertIn('not a database', str(caught.exception))


    def test_an_id_that_would_lead_to_another_directory_is_refused(self):
        for number, name in enumerate(('../../etc', 'a/b', '', 'a b')):
            self.store.open_entry(store.Entry(
                name, f'plan{number}', '2026-11-20T10:00:00+00:00', None), {})
            with self.subTest(name=name):
                self.assertRaisesRegex(
                    exception.InvalidInput, 'not the id of a result',
                    self.store.open_entry,
                    store.Entry('e3', f'plan{number}', '', None), {})


class SchemaTest(unittest.TestCase):
    def test_long_documents_have_a_type_on_every_server(self):
        for dialect, kind in ((mysql.dialect(), 'MEDIUMTEXT'),
                              (postgresql.dialect(), 'TEXT'),
                              (sqlite.dialect(), 'TEXT')):
            with self.subTest(server=dialect.name):
                statement = str(schema.CreateTable(tables.SAMPLES).compile(
                    dialect=dialect))
                self.assertIn(f'document {kind} NOT NULL', statement)

# SPDX-License-Identifier: Apache-2.0

"""What the commands say of a store that a disk or a person has damaged."""

import contextlib
import json
import random
import sqlite3
import unittest

import sqlalchemy

from hpcvirt.bench.model import record
from hpcvirt.bench.results import store
from tests.builders import commands
from tests.builders import folders
from tests.builders import runs

#: The columns of each table, documents last.
COLUMNS = {
    'hpcvirt_results': ('id', 'plan', 'started_at', 'finished_at', 'software'),
    'hpcvirt_runs': ('id', 'result_id', 'number', 'benchmark', 'host',
                     'document'),
    'hpcvirt_samples': ('run_id', 'position', 'document'),
    'hpcvirt_alembic_version': ('version_num',)}
VALUES = (None, '', 7, -1, 2 ** 62, 2.5, float('inf'), b'\xff\xfe', 'x\ny',
          '\x1b[31m', '\0', 're2', '../x', '9' * 5000, '[]', '[' * 9999)
#: What a document may hold instead of a value.
JSON_VALUES = (None, '', 7, -1, 0, 20000, 10 ** 400, 2 ** 62, 2.5, 1e308,
               1e-320, 'x\ny', '\x1b[31m', '\0', '\ud800', '9' * 5000, [], {},
               True, 'warm', 'guest', '2026-99-99T00:00:00', '2026-11-20',
               '0001-01-01T00:00:00+23:59', [5], [2 ** 62], ['x'], {'a': 1})
COMMANDS = (('bench', 'report'), ('bench', 'report', '--format', 'json'),
            ('bench', 'report', 'e2'), ('bench', 'report', '--unfinished'),
            ('bench', 'study', 'compare', 'S1'))
NAMES = ('e1', 'e2', 'e3')


class DamagedStoreTest(unittest.TestCase):
    def setUp(self):
        self.data = folders.make(self) / 'data'
        self.file = self.data / 'bench.sqlite'
        opened = store.Store(None, str(self.data))
        for number, name in enumerate(NAMES):
            at = f'2026-11-20T1{number}:00:00+00:00'
            opened.open_entry(store.Entry(name, name, at, None),
                              {'hpcvirt': '1.0'})
            # The first is an attempt before the second.
            host = 'n17' if number < 2 else 'n18'
            opened.add_run(name, 0, runs.stream(
                f'r{name}', host=host, subject=host,
                started_at=at, targets=('local',), planned_controls=1,
                relaunched=number == 0, study='S1', case='small-on'))
            for position, side in enumerate(tuple(record.Side) * 3):
                opened.add_sample(f'r{name}', record.Sample(
                    side, position // 2, position, runs.TRIAD, launch_id='a',
                    started_at=at, elapsed_s=3.0, exit_status=0,
                    environment={'boot_id': 'b', 'relaunch_s': '7'}))
            if number:
                opened.finish(name, at)
        opened.close()
        self.sound = self.file.read_bytes()

    def run_command(self, *words):
        ended = commands.run(*words, '--data', self.data)
        lines = ended.err.splitlines()
        self.assertNotIn('internal error', ended.err)
        self.assertIn(ended.status, (0, 2))
        self.assertEqual(ended.status == 2, lines[-1:] != []
                         and lines[-1].startswith('hpcvirt: '), ended.err)
        self.assertLessEqual(len(lines), 1 + len(NAMES), ended.err)
        for line in lines:
            self.assertTrue(line.isprintable(), line)
            self.assertRegex(line, r'bench\.sqlite|\br?e[123]\b|the result ')
        return ended

    def damage(self, chance, table, column, change):
        """Replace one cell of a column."""
        with contextlib.closing(sqlite3.connect(self.file)) as opened:
            opened.execute('PRAGMA writable_schema = ON')
            opened.execute('UPDATE sqlite_master SET '
                           "sql = replace(sql, 'NOT NULL', '')")
            opened.commit()
        engine = sqlalchemy.create_engine(f'sqlite:///{self.file}')
        cells = sqlalchemy.table(table, sqlalchemy.column('rowid'),
                                 sqlalchemy.column(column))
        with contextlib.suppress(sqlalchemy.exc.IntegrityError), (
                engine.begin()) as opened:
            row, value = chance.choice(
                opened.execute(sqlalchemy.select(cells)).all())
            opened.execute(cells.update().where(
                cells.c.rowid == row).values({column: change(value)}))
        engine.dispose()
        return column

    def damage_cell(self, chance):
        """Write any value into a cell; its column."""
        table = chance.choice(list(COLUMNS))
        return self.damage(chance, table, chance.choice(COLUMNS[table]),
                           lambda _: chance.choice(VALUES))

    def damage_document(self, chance):
        """Write any value into a document, or cut the document."""
        def change(text):
            if chance.random() > 0.2:
                return json.dumps(self.changed(chance, json.loads(text)))
            at = chance.randrange(len(text))
            return chance.choice((
                text[:at], text[at:],
                text[:at] + chance.choice('\0{}[]",:x9') + text[at + 1:]))
        table = chance.choice([name for name, columns in COLUMNS.items()
                               if columns[-1] != 'version_num'])
        return self.damage(chance, table, COLUMNS[table][-1], change)

    def changed(self, chance, value):
        if not value or not isinstance(value, dict | list) or (
                chance.random() < 0.1):
            return chance.choice(JSON_VALUES)
        key = chance.choice(list(value) if isinstance(value, dict)
                            else range(len(value)))
        value[key] = self.changed(chance, value[key])
        return value

    def damage_bytes(self, chance):
        """Cut the file, or change bytes of it."""
        content = bytearray(self.sound)
        if chance.random() < 0.3:
            del content[chance.randrange(len(content)):]
        else:
            for _ in range(chance.choice((1, 1, 3, 20, 200))):
                content[chance.randrange(len(content))] = chance.randrange(256)
        self.file.write_bytes(content)

    def check(self, cases):
        chance = random.Random(13)
        said = 0
        for _ in range(cases):
            self.file.write_bytes(self.sound)
            column = chance.choice((self.damage_cell, self.damage_document,
                                    self.damage_bytes))(chance)
            command = chance.choice(COMMANDS)
            ended = self.run_command(*command)
            said += bool(ended.err)
            if column in ('document', 'software', 'started_at', 'position'
                          ) and command == COMMANDS[0]:
                # The other results are read.
                self.assertEqual(0, ended.status, ended.err)
                for name in NAMES:
                    self.assertIn(name, ended.out + ended.err)
                self.assertIn(ended.err.count('is left out'), (0, 1, 2))
        self.assertGreater(said, cases // 4)

    def test_damage_is_named_and_the_rest_is_read(self):
        self.check(60)

    def test_periodic_much_damage_is_named_and_the_rest_is_read(self):
        self.check(10_000)

    def test_results_on_other_pages_are_read(self):
        size = int.from_bytes(self.sound[16:18], 'big')
        kept = []
        for page in range(size, len(self.sound), size):
            self.file.write_bytes(
                self.sound[:page] + b'\xff' + self.sound[page + 1:])
            ended = self.run_command('bench', 'report')
            if 'is left out' in ended.err:
                self.assertIn('bench.sqlite: database disk', ended.err)
                kept += [name for name in NAMES if name in ended.out]
        self.assertEqual(set(NAMES), set(kept))

    def test_a_byte_that_is_no_text_damages_one_document(self):
        at = self.sound.index(b'"re3"')
        self.file.write_bytes(
            self.sound[:at] + b'"\xff' + self.sound[at + 2:])
        ended = self.run_command('bench', 'report')
        self.assertRegex(ended.err, r'\Arun re3: [^\n]*e3 is left out\n\Z')
        self.assertIn('e1', ended.out)

    def test_no_column_hides_an_earlier_attempt(self):
        for column, value in (('host', 'n18'), ('host', ''), ('host', None),
                              ('benchmark', 'osu_latency'), ('host', 'n_7'),
                              ('benchmark', 7)):
            self.file.write_bytes(self.sound)
            self.damage(_First(), 'hpcvirt_runs', column,
                        lambda _, value=value: value)
            for words in (('bench', 'report'), ('bench', 'report', 'e2')):
                with self.subTest(column=column, value=value, words=words):
                    self.assertIn(f'run re1: {column}: is ',
                                  self.run_command(*words).err)


class _First:
    """Choose the first row of a table."""

    def choice(self, items):
        return items[0]

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

import pathlib
import sqlite3
import subprocess
import sys

import fixtures
import testtools

DATA = pathlib.Path(__file__).parents[3] / 'data' / 'bench' / 'store'
#: Opens the store to write, and adds a sample at the position it is told.
CLIENT = """
import sys
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store
opened = store.Store(f'sqlite:///{sys.argv[1]}/bench.sqlite', sys.argv[1])
opened.add_sample('20261121b-0', record.Sample(
    record.Arm.NATIVE, 0, int(sys.argv[2]), outcome.Outcome(False, 'no')))
"""
PROCESSES = 3


class TestMigration(testtools.TestCase):
    def test_processes_that_migrate_at_once_lose_nothing(self):
        scratch = self.useFixture(fixtures.TempDir()).path
        connection = sqlite3.connect(f'{scratch}/bench.sqlite')
        connection.executescript(
            (DATA / 'before_versions.sql').read_text(encoding='utf-8'))
        running = [subprocess.Popen(
            [sys.executable, '-c', CLIENT, scratch, str(number + 1)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for number in range(PROCESSES)]
        for process in running:
            printed, _ = process.communicate(timeout=120)
            self.assertEqual(0, process.returncode, printed)
        versions = connection.execute(
            'SELECT version_num FROM hpcvirt_alembic_version').fetchall()
        self.assertEqual([('0002',)], versions)
        documents = connection.execute(
            'SELECT document FROM hpcvirt_samples').fetchall()
        connection.close()
        self.assertEqual(7 + PROCESSES, len(documents))
        for document, in documents:
            self.assertEqual(1, document.count('"schema_version"'))

# SPDX-License-Identifier: Apache-2.0

"""Run the command with a nova.conf, as an operator does."""

import subprocess
import sys
import unittest

import sqlalchemy
from nova.db.api import models

from tests.builders import folders

CELLS = """
INSERT INTO cell_mappings
(id, uuid, name, transport_url, database_connection, disabled)
VALUES (1, '2f6d1c7e-0000-4000-8000-000000000001', 'one',
 '{scheme}://{username}:{password}@{hostname}:{port}/',
 'nosuch://nova:hidden-word@{hostname}/nova', 0)
"""


class NovaConfTest(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)

    def conf(self, text):
        path = self.folder / 'nova.conf'
        path.write_text(text)
        return path

    def capacity(self, path):
        """Run the command; it fails with one line, which is returned."""
        done = subprocess.run(
            [sys.executable, '-m', 'hpcvirt.cmd.main', 'capacity',
             '--config-file', str(path)],
            capture_output=True, text=True, check=False)
        self.assertEqual((2, ''), (done.returncode, done.stdout))
        self.assertEqual(1, done.stderr.count('\n'), done.stderr)
        self.assertNotIn('hidden-word', done.stderr)
        return done.stderr

    def test_cells_are_read_up_to_placement(self):
        url = f'sqlite:///{self.folder}/api.sqlite'
        engine = sqlalchemy.create_engine(url)
        models.BASE.metadata.create_all(engine)
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text(CELLS))
        self.assertRegex(self.capacity(self.conf(
            '[DEFAULT]\ntransport_url = rabbit://u:hidden-word@mq:5672/\n'
            f'[api_database]\nconnection = {url}\n'
            '[database]\nconnection = mysql+pymysql://n:x@db.test/nova\n')),
            '^hpcvirt: Placement cannot be used')

    def test_periodic_a_line_that_cannot_be_understood_is_not_repeated(self):
        self.assertRegex(self.capacity(self.conf(
            'connection mysql://nova:hidden-word@host/nova\n')),
            r'nova\.conf: cannot be understood at line 1\n$')

    def test_periodic_a_database_that_cannot_be_reached_is_one_line(self):
        self.assertRegex(self.capacity(self.conf(
            '[api_database]\n'
            'connection = nosuch://nova:hidden-word@127.0.0.1/nova\n')),
            "^hpcvirt: Nova's API database cannot be read")

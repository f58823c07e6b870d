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

"""What ``bench compare`` prints does not depend on the order of hashes."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest


class CompareTest(unittest.TestCase):

    def setUp(self):
        self.scratch = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))

    def answers(self, name, slower, **parameters):
        path = self.scratch / name
        path.write_text(json.dumps([{
            'benchmark': 'x', 'valid': True, 'reason': None,
            'metrics': {metric: {
                'value': (1 + number / 100) * slower, 'unit': 's',
                'direction': 'down'} for metric in 'abcdef'},
            'parameters': parameters} for number in range(6)]))
        return str(path)

    def printed(self, seed, *words):
        done = subprocess.run(
            [sys.executable, '-m', 'hpcvirt.cmd.main', 'bench', 'compare',
             *words], capture_output=True, text=True, check=False,
            env={**os.environ, 'PYTHONHASHSEED': seed})
        return done.returncode, done.stdout, done.stderr

    def test_each_message_is_the_same_with_all_hashes(self):
        native = self.answers('native', 1.0, np='1', ver='3', x='1', y='2')
        bounds = ('--bound', 'a=1.1', '--bound', 'b=1.01', '--bound', 'e=1.2')
        for guest in (
                self.answers('other', 1.0, np='2', ver='4', z='1', w='2'),
                self.answers('slow', 1.05, np='1', ver='3', x='1', y='2')):
            first = self.printed('1', native, guest, *bounds)
            self.assertEqual(1, first[0], first)
            self.assertEqual(first, self.printed('4', native, guest, *bounds))

# SPDX-License-Identifier: Apache-2.0

"""What ``bench compare`` prints does not depend on the order of hashes."""

import json
import os
import subprocess
import sys
import unittest

from tests.builders import folders

#: Makes several comparisons.
PROGRAM = """
import json
import sys
from hpcvirt.cmd import main
for words in json.loads(sys.argv[1]):
    print('ended with', main.main(['bench', 'compare', *words]))
"""


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.scratch = folders.make(self)

    def answers(self, name, slower, **parameters):
        path = self.scratch / name
        path.write_text(json.dumps([{
            'benchmark': 'x', 'valid': True, 'reason': None,
            'metrics': {metric: {
                'value': (1 + number / 100) * slower, 'unit': 's',
                'direction': 'down'} for metric in 'abcdef'},
            'parameters': parameters} for number in range(6)]))
        return str(path)

    def printed(self, seed, *comparisons):
        """What a process prints of comparisons, and how each ends."""
        done = subprocess.run(
            [sys.executable, '-c', PROGRAM, json.dumps(comparisons)],
            capture_output=True, text=True, check=True,
            env={**os.environ, 'PYTHONHASHSEED': seed})
        return done.stdout, done.stderr

    def test_each_message_is_the_same_with_all_hashes(self):
        native = self.answers('native', 1.0, np='1', ver='3', x='1', y='2')
        bounds = ('--bound', 'a=1.1', '--bound', 'b=1.01', '--bound', 'e=1.2')
        comparisons = [(native, guest, *bounds) for guest in (
            self.answers('other', 1.0, np='2', ver='4', z='1', w='2'),
            self.answers('slow', 1.05, np='1', ver='3', x='1', y='2'))]
        first = self.printed('1', *comparisons)
        self.assertEqual(2, first[0].count('ended with 1\n'), first)
        self.assertEqual(first, self.printed('4', *comparisons))

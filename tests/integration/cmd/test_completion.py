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

"""The completion that shtab makes from the parser, in bash."""

import subprocess
import sys
import unittest

MAKE = (sys.executable, '-m', 'shtab', '--shell=bash', '--error-unimportable',
        'hpcvirt.cmd.main.build_parser')
COMPLETE = """
source /dev/stdin <<<"$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_shtab_hpcvirt
echo "${COMPREPLY[@]}"
"""


class CompletionTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.script = subprocess.run(MAKE, capture_output=True, text=True,
                                    check=True).stdout

    def complete(self, *words):
        done = subprocess.run(
            ('bash', '-c', COMPLETE, 'bash', self.script, 'hpcvirt', *words),
            capture_output=True, text=True, check=True)
        self.assertEqual('', done.stderr)
        return done.stdout.split()

    def test_nouns_and_verbs_are_completed(self):
        self.assertEqual(['topology'], self.complete('t'))
        self.assertEqual(['plan'], self.complete('flavor', 'p'))

    def test_options_and_their_values_are_completed(self):
        self.assertIn('--profile',
                      self.complete('flavor', 'plan', '--p'))
        self.assertEqual(['json', 'shell', 'table', 'yaml'], sorted(
            self.complete('flavor', 'plan', '--format', '')))

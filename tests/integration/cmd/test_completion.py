# SPDX-License-Identifier: Apache-2.0

"""The completion that ``hpcvirt --completion`` prints, in bash."""

import subprocess
import sys
import unittest

MAKE = (sys.executable, '-m', 'hpcvirt.cmd.main', '--completion')
#: The function of bash-completion that the script calls.
COMPLETE = """
_get_comp_words_by_ref() {
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD - 1]}
    words=("${COMP_WORDS[@]}")
}
source /dev/stdin <<<"$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_hpcvirt
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
        self.assertEqual(['flavor', 'fleet'], self.complete('f'))
        self.assertEqual(['make-room'], self.complete('m'))
        self.assertEqual(['study'], self.complete('bench', 's'))
        self.assertEqual(['show'], self.complete('bench', 'study', 's'))
        self.assertEqual(['plan'], self.complete('flavor', 'p'))

    def test_options_are_completed(self):
        self.assertIn('--profile', self.complete('flavor', 'plan', '--p'))
        self.assertIn('--sort-column',
                      self.complete('host', 'show', '--so'))

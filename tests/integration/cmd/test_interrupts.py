# SPDX-License-Identifier: Apache-2.0

"""A signal ends a command, whenever it comes."""

import signal
import subprocess
import sys
import unittest

FINALIZED = """\
import os
class Finalized:
    def __del__(self):
        os.kill(os.getpid(), {number})
        time.sleep(0.01)
"""
SCRIPT = """\
import signal
import time
from hpcvirt.cmd import command
{finalized}
# The tests may run in the background of nohup, which lets it be ignored.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
with command.interrupting_signals():
    try:
        Finalized()
        time.sleep(60)
    finally:
        os.kill(os.getpid(), {second})
        time.sleep(0.5)
        print('cleaned up')
"""


#: The interrupted part ends before the interrupt is raised again.
ENDS = """\
import time
from hpcvirt.cmd import command
{finalized}
with command.interrupting_signals():
    Finalized()
time.sleep(0.5)
print('the result')
"""


NOHUP = """\
import os, signal
from hpcvirt.cmd import command
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with command.interrupting_signals():
    os.kill(os.getpid(), signal.SIGHUP)
print('the result')
"""


class InterruptTest(unittest.TestCase):
    def run_script(self, script, number, second=0):
        return subprocess.run(
            [sys.executable, '-c', script.format(
                finalized=FINALIZED.format(number=int(number)),
                second=int(second))],
            capture_output=True, text=True, timeout=30, check=False)

    def test_one_that_comes_while_a_finalizer_runs_is_not_lost(self):
        # 0 is no signal.
        for number, second in ((signal.SIGTERM, signal.SIGTERM),
                               (signal.SIGHUP, signal.SIGTERM),
                               (signal.SIGTERM, 0), (signal.SIGINT, 0)):
            with self.subTest(number=number, second=second):
                done = self.run_script(SCRIPT, number, second)
                self.assertEqual('cleaned up\n', done.stdout)
                self.assertTrue(done.stderr.endswith('KeyboardInterrupt\n'),
                                done.stderr)

    def test_the_end_of_the_login_may_be_ignored(self):
        done = self.run_script(NOHUP, 0)
        self.assertEqual((0, 'the result\n'),
                         (done.returncode, done.stdout), done.stderr)

    def test_what_follows_is_not_ended_by_it(self):
        done = self.run_script(ENDS, signal.SIGTERM)
        self.assertEqual((0, 'the result\n'),
                         (done.returncode, done.stdout), done.stderr)

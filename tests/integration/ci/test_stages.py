# SPDX-License-Identifier: Apache-2.0

"""The stages of .ci/run, and what they leave when they take too long."""

import pathlib
import signal
import subprocess
import tempfile
import unittest

from hpcvirt import waiting
from tests.builders import processes

ROOT = pathlib.Path(__file__).parents[3]
SCRIPT = """
. .ci/stages.sh
logs=$1 STAGE_LIMIT_S=$2
run one bash -c "$3"
echo "failed: ${failed_stages[*]}"
"""


class StagesTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.logs = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, limit_s: int, command: str) -> subprocess.Popen:
        """Run one stage, and name the failed stages at the end."""
        run = self.enterContext(subprocess.Popen(
            ['bash', '-euo', 'pipefail', '-c', SCRIPT, 'run', self.logs,
             str(limit_s), command],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
            stdin=subprocess.DEVNULL))
        self.addCleanup(run.kill)
        return run

    def log(self) -> str:
        return (self.logs / 'one.log').read_text()

    def assert_ended(self, child: str) -> None:
        self.assertTrue(waiting.poll(
            lambda: processes.has_ended(int(child)), bool, 60, 0.1))

    def test_a_stage_passes_or_fails(self) -> None:
        shown = self.start(60, 'echo well').communicate()[0]
        self.assertRegex(shown, r'^one +passed +\d+s\nfailed: \n$')
        self.assertEqual('well\n', self.log())
        shown = self.start(60, 'exit 3').communicate()[0]
        self.assertRegex(shown, r'^one +FAILED +\d+s \(status 3, .*\)\n'
                                r'failed: one\n$')

    def test_a_stage_ends_with_all_its_processes_at_its_limit(self) -> None:
        shown = self.start(
            2, 'setsid sleep 3600 & echo $!; exec sleep 3600').communicate()[0]
        self.assertRegex(shown, r'^one +FAILED +\d+s \(status 124, .*\)\n'
                                r'failed: one\n$')
        child, why = self.log().splitlines()
        self.assertEqual('ended after 2 s', why)
        self.assert_ended(child)

    def test_an_interrupted_stage_ends_with_all_its_processes(self) -> None:
        run = self.start(3600, 'setsid sleep 3600 & echo $!; exec sleep 3600')
        child = waiting.poll(
            lambda: self.log() if list(self.logs.iterdir()) else '',
            bool, 60, 0.1)
        run.send_signal(signal.SIGTERM)
        run.communicate()
        self.assertEqual(143, run.returncode)
        self.assert_ended(child)

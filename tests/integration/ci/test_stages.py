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
TWO_STAGES = """
. .ci/stages.sh
logs=$1 STAGE_LIMIT_S=$2
beside two bash -c "$4"
run one bash -c "$3"
join
echo "failed: ${failed_stages[*]}"
"""
FOREVER = 'setsid sleep 3600 & echo $!; exec sleep 3600'


class StagesTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.logs = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, limit_s: int, *commands: str) -> subprocess.Popen:
        """Run one stage or two, and name the failed stages at the end."""
        script = SCRIPT if len(commands) == 1 else TWO_STAGES
        run = self.enterContext(subprocess.Popen(
            ['bash', '-euo', 'pipefail', '-c', script, 'run', self.logs,
             str(limit_s), *commands],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
            stdin=subprocess.DEVNULL))
        self.addCleanup(run.kill)
        return run

    def log(self, name: str = 'one') -> str:
        return (self.logs / f'{name}.log').read_text()

    def wait_for_log(self, name: str = 'one') -> str:
        path = self.logs / f'{name}.log'
        return waiting.poll(
            lambda: path.read_text() if path.exists() else '', bool, 60, 0.1)

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
        shown = self.start(2, FOREVER).communicate()[0]
        self.assertRegex(shown, r'^one +FAILED +\d+s \(status 124, .*\)\n'
                                r'failed: one\n$')
        child, why = self.log().splitlines()
        self.assertEqual('ended after 2 s', why)
        self.assert_ended(child)

    def test_an_interrupted_stage_ends_with_all_its_processes(self) -> None:
        run = self.start(3600, FOREVER)
        child = self.wait_for_log()
        run.send_signal(signal.SIGTERM)
        run.communicate()
        self.assertEqual(143, run.returncode)
        self.assert_ended(child)

    def test_a_stage_beside_another_passes_or_fails_by_itself(self) -> None:
        shown = self.start(60, 'echo well', 'exit 3').communicate()[0]
        self.assertRegex(shown, r'(?m)^one +passed +\d+s$')
        self.assertRegex(shown, r'(?m)^two +FAILED +\d+s \(status 3, .*\)$')
        self.assertRegex(shown, r'\nfailed: two\n$')
        self.assertEqual('well\n', self.log())

    def test_a_stage_that_ends_at_its_limit_ends_no_other(self) -> None:
        shown = self.start(2, FOREVER, 'echo begun').communicate()[0]
        self.assertRegex(shown, r'(?m)^two +passed +\d+s$')
        self.assertRegex(shown, r'\nfailed: one\n$')
        self.assertEqual('begun\n', self.log('two'))

    def test_an_interrupt_ends_both_of_two_stages(self) -> None:
        run = self.start(3600, FOREVER, FOREVER)
        children = [self.wait_for_log(name) for name in ('one', 'two')]
        run.send_signal(signal.SIGTERM)
        run.communicate()
        self.assertEqual(143, run.returncode)
        for child in children:
            self.assert_ended(child)

    def test_the_slowest_of_many_tests_are_printed(self) -> None:
        # More than a pipe holds.
        times = self.logs / 'py3.slowest'
        times.write_text(''.join(
            f'{number} tests.unit.test_name\n' for number in range(20000)))
        shown = subprocess.run(
            ['bash', '-euo', 'pipefail', '-c',
             '. .ci/stages.sh; slowest "$1"', 'run', times],
            cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(
            [f'{number} tests.unit.test_name'
             for number in range(19999, 19989, -1)],
            shown.splitlines())

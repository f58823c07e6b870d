# SPDX-License-Identifier: Apache-2.0

"""What holds wherever hpcvirt lets a program run.

On this machine, behind ssh, on a node of Slurm, as ``apply`` of an experiment,
and as the command of a strategy for Watcher.
"""

import os
import pathlib
import tempfile
import time
from unittest import mock

from hpcvirt import child_environment
from hpcvirt import exception
from hpcvirt import waiting

#: Variables whose values no program may see.
SECRETS = (
    'OS_PASSWORD', 'OS_APPLICATION_CREDENTIAL_SECRET', 'OS_TOKEN',
    'OS_AUTH_URL', 'HPCVIRT_STORE_PASSWORD', 'AWS_SECRET_ACCESS_KEY',
    'PGPASSWORD', 'VAULT_TOKEN')

#: Starts processes, and writes down their ids: one of its group that ignores
#: SIGTERM, one that has left its group, and one that has left its session.
FAMILY = """
cd "$1" || exit
echo $$ > pids
sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 0.1; done' &
{leavers}
sleep 300
"""
LEAVERS = """
setsid sh -c 'echo $$ >> pids; exec sleep 300' &
(setsid sh -c 'exec > /dev/null 2>&1; echo $$ >> pids; exec sleep 300' &)
"""
#: It has cleared its environment, too, but its parents live.
CLEARED = """
(setsid sh -c 'echo $$ >> pids; exec env -i sleep 300') &
"""


def list_running(folder: pathlib.Path) -> list[str]:
    """List the processes that have written down their ids and still run."""
    return [pid for pid in (folder / 'pids').read_text().split()
            if is_running(pid)]


def is_running(pid: int | str) -> bool:
    """Whether a process runs, and is no zombie."""
    try:
        state = pathlib.Path('/proc', str(pid), 'stat').read_text()
    except OSError:
        return False
    return state.rpartition(')')[2].split()[0] != 'Z'


class ProgramTests:
    """Tests of one way to run a program.

    :cvar errors: what is raised for a program that was ended
    :cvar leavers: starts processes that are ended although they have left the
        session of a program whose time is up
    :cvar slack_s: how much longer than its limit a program may take
    """

    errors = exception.Unreachable
    leavers = LEAVERS + CLEARED
    slack_s = 15.0

    def call(self, argv, limit_s):
        """Run a program, and return its status."""
        raise NotImplementedError

    def bound(self, most_bytes):
        """Return patches with which less output is too much."""
        raise NotImplementedError

    def make_scratch(self):
        return pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def wait_for_end(self, scratch):
        self.assertEqual([], waiting.poll(
            lambda: list_running(scratch), lambda left: not left, 15, 0.05))

    def refuse(self, argv, limit_s, pattern):
        begin = time.monotonic()
        with self.assertRaisesRegex(self.errors, pattern):
            self.call(argv, limit_s)
        self.assertLess(time.monotonic() - begin, limit_s + self.slack_s)

    def test_a_flood_is_ended_and_holds_nobody(self):
        for stream in ('1', '2'):
            scratch = self.make_scratch()
            with self.bound(2 ** 20):
                self.refuse(
                    ['sh', '-c', f'echo $$ > "$1"; exec yes >&{stream}',
                     'sh', f'{scratch}/pids'], 60,
                    'printed more than 1 MiB and was stopped')
            self.wait_for_end(scratch)

    def test_a_flood_within_the_bound_ends_at_the_limit(self):
        scratch = self.make_scratch()
        script = 'echo $$ > "$1"; while :; do echo x; sleep 0.001; done'
        self.refuse(['sh', '-c', script, 'sh', f'{scratch}/pids'], 1,
                    'did not end within 1 s')
        self.wait_for_end(scratch)

    def test_what_a_program_has_started_ends_at_its_limit(self):
        scratch = self.make_scratch()
        family = FAMILY.format(leavers=self.leavers)
        self.refuse(['sh', '-c', family, 'sh', str(scratch)], 2,
                    'did not end within 2 s')
        self.assertLess(1, len((scratch / 'pids').read_text().split()))
        self.wait_for_end(scratch)

    def test_output_that_stays_open_holds_nobody(self):
        scratch = self.make_scratch()
        begin = time.monotonic()
        try:
            self.call(['sh', '-c', 'sleep 300 & echo $! > "$1"', 'sh',
                       f'{scratch}/pids'], 5)
        except self.errors as exc:  # a way may wait up to the limit
            self.assertIn('did not end within', str(exc))
        self.assertLess(time.monotonic() - begin, 5 + self.slack_s)
        for pid in list_running(scratch):
            os.kill(int(pid), 9)

    def test_no_secret_of_the_caller_reaches_a_program(self):
        scratch = self.make_scratch()
        with mock.patch.dict(os.environ, {
                **dict.fromkeys(SECRETS, 'secret'), 'LC_TIME': 'C'}):
            self.assertEqual(0, self.call(
                ['sh', '-c', 'env > "$1"', 'sh', f'{scratch}/env'], 30))
        found = (scratch / 'env').read_text()
        self.assertNotIn('secret', found)
        for name in ('HOME', 'PATH'):
            self.assertRegex(found, f'(?m)^{name}=')

    def test_a_site_lets_a_variable_pass(self):
        scratch = self.make_scratch()
        with mock.patch.dict(os.environ, {
                child_environment.FURTHER: 'SITE_* OS_CLOUD',
                'SITE_ONE': 'passes', 'OS_CLOUD': 'passes',
                'OS_PASSWORD': 'secret'}):
            self.call(['sh', '-c', 'env > "$1"', 'sh', f'{scratch}/env'], 30)
        self.assertEqual(2, (scratch / 'env').read_text().count('=passes'))
        self.assertNotIn('secret', (scratch / 'env').read_text())

# SPDX-License-Identifier: Apache-2.0

"""The agent, with programs of this machine in place of Slurm's.

``salloc`` runs the agent here. What Slurm itself does is in tests/slurm.
"""

import contextlib
import os
import subprocess
import sys
import time
import tracemalloc
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import job
from hpcvirt.bench.execute import slurm
from tests.builders import folders
from tests.builders import processes
from tests.integration import program_tests
from tests.integration.bench import executor_tests

#: Starts the agent as srun does, after what a prolog prints.
SALLOC = """\
#!/bin/sh
echo "$1" "$2" "$3" "$4" >> {folder}/allocations
[ ! -e {folder}/refused ] || {{
  echo "salloc: error: Job submit/allocate failed: $(cat {folder}/refused)" >&2
  exit 1
}}
[ ! -e {folder}/waits ] || {{
  echo "salloc: Pending job allocation 12" >&2
  echo "salloc: job 12 queued and waiting for resources" >&2
  exec sleep 60
}}
while [ "$1" != /bin/sh ]; do shift; done
echo Welcome to node n1
export SLURM_JOB_ID=77 SLURM_NTASKS=1
exec "$@"
"""
#: Other programs print what is in a file of their name.
OTHER = """\
#!/bin/sh
echo "$@" >> {folder}/{name}.log
[ ! -e {folder}/{name}.out ] || cat {folder}/{name}.out
"""


class StandInCase(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)
        programs = self.folder / 'bin'
        programs.mkdir()
        texts = {'salloc': SALLOC, 'sinfo': OTHER, 'scancel': OTHER}
        for name, text in texts.items():
            path = programs / name
            path.write_text(text.format(folder=self.folder, name=name))
            path.chmod(0o755)
        path = mock.patch.dict(os.environ, {
            'PATH': f'{programs}:{os.environ["PATH"]}',
            'SLURM_JOB_ID': '5', 'SLURM_CONF': '/nowhere'})
        path.start()
        self.addCleanup(path.stop)
        self.place = slurm.SlurmExecutor('n1')
        self.addCleanup(self.place.close)

    def say(self, program, *lines):
        (self.folder / f'{program}.out').write_text(
            ''.join(f'{line}\n' for line in lines))

    def allocations(self):
        path = self.folder / 'allocations'
        return path.read_text().splitlines() if path.exists() else []


class SlurmExecutorTest(executor_tests.ExecutorTests, StandInCase):
    # The agent finds processes by their environment.
    leavers = program_tests.LEAVERS

    def test_all_commands_have_one_allocation(self):
        for number in range(5):
            self.place.run(['true'], b'x' * 5000 * number)
        (words,) = self.allocations()
        self.assertIn('--nodelist=n1 ', words)
        self.assertIn('--exclusive', words)

    def test_arguments_pass_as_they_are(self):
        argv = ['printf', '%s|', '', ' a  b ', "'", '"$HOME"', '`id`', '*',
                'line\nline', '\udcff\\']
        self.assertEqual(''.join(f'{word}|' for word in argv[2:]).encode(
            'utf-8', 'surrogateescape'), self.place.run(argv).stdout)

    def test_input_of_any_size_is_what_the_program_reads(self):
        for size in (0, 1, 4000, 4096, 8192, 100_001):
            data = os.urandom(size)
            self.assertEqual(data, self.place.run(['cat'], data).stdout)
            self.place.run(['true'], data)

    def test_a_missing_program_ends_with_127(self):
        self.assertEqual(127, self.place.run(['no-such-program']).status)

    def test_programs_do_not_see_the_step_that_they_run_in(self):
        names = [line.partition(b'=')[0] for line in self.place.run(
            ['env']).stdout.splitlines()]
        self.assertEqual([b'SLURM_CONF'], [
            name for name in names if name.startswith(b'SLURM_')])

    def test_a_program_that_was_given_up_does_not_answer_the_next(self):
        with self.given_up():
            self.place.run(['sh', '-c', 'sleep 0.5; echo late'], b'', 1)
        self.assertEqual(b'next\n', self.place.run(['echo', 'next']).stdout)
        self.assertEqual(2, len(self.allocations()))

    @contextlib.contextmanager
    def given_up(self):
        """Expect that the agent does not answer for 0.1 s beyond the limit."""
        self.place.run(['true'])
        with (mock.patch.object(slurm, 'GRACE_S', -0.9),
              self.assertRaisesRegex(exception.ConnectionLost,
                                     '^slurm:n1: does not answer$')):
            yield

    def test_a_job_goes_on_between_commands(self):
        detached = job.Job(self.place, str(self.folder / 'run' / 'job'))
        detached.prepare(['sh', '-c', 'sleep 0.3; cat data'],
                         {'data': b'\xff\n'}, {})
        detached.start(0)
        ended = waiting.poll(detached.poll, lambda state: isinstance(
            state, job.Ended), 20, 0.05)
        self.assertEqual(0, ended.status)
        self.assertEqual(b'\xff\n', detached.read('stdout')['stdout'])

    def test_a_job_ends_with_the_allocation(self):
        detached = job.Job(self.place, str(self.folder / 'run' / 'job'))
        detached.prepare(['sleep', '300'], {}, {})
        detached.start(0)
        waiting.poll(detached.poll, lambda state: state is
                     job.JobState.RUNNING, 20, 0.05)
        leader = detached.read('pid')['pid'].split()[0].decode()
        self.place.close()
        self.assertTrue(waiting.poll(
            lambda: processes.has_ended(int(leader)), bool, 10, 0.05))

    def test_closing_ends_the_job_and_removes_its_files(self):
        path = self.place.run(['readlink', '/proc/self/fd/0']).stdout.strip()
        scratch = os.path.dirname(os.fsdecode(path))
        self.assertTrue(os.path.isdir(scratch))
        self.place.close()
        self.place.close()
        self.assertFalse(os.path.exists(scratch))
        self.assertEqual('77\n', (self.folder / 'scancel.log').read_text())

    def test_nothing_waits_for_a_command_that_is_busy(self):
        begin = time.monotonic()
        with mock.patch.object(slurm, 'END_S', 0.5), self.given_up():
            self.place.run(['sleep', '50'], b'', 1)
        self.assertLess(time.monotonic() - begin, 20)

    def test_a_lost_allocation_is_replaced_by_the_next_command(self):
        self.place.run(['true'])
        self.place._agent.process.kill()
        with self.assertRaisesRegex(exception.ConnectionLost,
                                    '^slurm:n1: the job has ended$'):
            self.place.run(['sleep', '5'])
        self.assertEqual(0, self.place.run(['true']).status)
        self.assertEqual(2, len(self.allocations()))

    def test_a_killed_process_leaves_no_allocation(self):
        process = subprocess.Popen([sys.executable, '-c', (
            'import sys, time\n'
            'from hpcvirt.bench.execute import slurm\n'
            'slurm.connect("n1").run(["true"])\n'
            'print("up", flush=True)\n'
            'time.sleep(60)\n')], stdout=subprocess.PIPE)
        self.assertEqual(b'up\n', process.stdout.readline())
        process.kill()
        process.wait()
        process.stdout.close()
        log = self.folder / 'scancel.log'
        self.assertTrue(waiting.poll(log.exists, bool, 10, 0.05))

    def test_targets_on_one_node_share_the_allocation(self):
        self.assertIs(slurm.connect('n9'), slurm.connect('n9'))


class NodeTest(StandInCase):
    """What a node prints, and reads, holds nobody."""

    def start(self, script):
        """Let the node run a script instead of the agent."""
        (self.folder / 'bin' / 'salloc').write_text(f'#!/bin/sh\n{script}\n')

    def refused(self, pattern, argv=('true',), stdin=b'', limit_s=0.5,
                patience_s=2):
        begin = time.monotonic()
        with (mock.patch.object(slurm, 'GRACE_S', 0.5),
              mock.patch.object(slurm, 'END_S', 0.5),
              mock.patch.object(executor, 'PATIENCE_S', patience_s),
              self.assertRaisesRegex(exception.ConnectionLost, pattern)):
            self.place.run(argv, stdin, limit_s)
        self.assertLess(time.monotonic() - begin, 25)

    def test_a_node_that_prints_without_end_is_given_up(self):
        begins = 'printf "\\nhpcvirt 0  \\n"; '
        endless = 'exec tr "\\\\0" x < /dev/zero'
        for script in ('exec yes', endless, f'{begins} exec yes hpcvir',
                       f'{begins} printf "hpcvirt 0 "; {endless}'):
            self.start(script)
            tracemalloc.start()
            # Less is too much here, so that it is printed in time.
            with mock.patch.object(executor, 'MAX_OUTPUT_BYTES', 2 ** 22):
                self.refused('does not answer$', patience_s=0.5)
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                self.assertLess(peak, 3 * executor.MAX_OUTPUT_BYTES)

    def test_a_node_that_does_not_read_is_given_up(self):
        self.start('printf "\\nhpcvirt 0  \\n"; exec sleep 300')
        self.refused('does not answer$', stdin=bytes(2 ** 22))

    def test_an_answer_of_another_form_is_no_answer(self):
        for answer in ('x', '0 a', '0 = =', '0 a b c', '9' * 5000 + '  '):
            self.start('printf "\\nhpcvirt 0  \\n"; read line; '
                       f'printf "hpcvirt {answer}\\n"; exec sleep 300')
            self.refused('its answer cannot be read$')

    def test_lines_around_an_answer_are_not_part_of_it(self):
        self.start('printf "Welcome\\nhpcvirt 0  \\nYou have mail\\n"; '
                   'read line; printf "wall: reboot\\nhpcvirt 3 "; sleep 0.2; '
                   'printf "aGk= \\nnoise"; exec sleep 300')
        done = self.place.run(['true'])
        self.assertEqual((3, b'hi', b''),
                         (done.status, done.stdout, done.stderr))


class RefusalTest(StandInCase):
    def refused(self, kind, pattern):
        with self.assertRaisesRegex(kind, pattern) as caught:
            self.place.run(['true'])
        self.assertNotIn('\n', str(caught.exception))
        self.assertIs(kind, type(caught.exception))
        return str(caught.exception)

    def test_a_job_that_is_refused_is_not_asked_for_again(self):
        (self.folder / 'refused').write_text('Invalid partition name')
        self.refused(exception.Unreachable,
                     '^slurm:n1: Job .*failed: Invalid partition name$')

    def test_each_refusal_says_why_in_its_own_words(self):
        for reason in ('Invalid account specified', 'Invalid qos'):
            (self.folder / 'refused').write_text(reason)
            with self.assertRaises(exception.Unreachable) as caught:
                self.place.run(['true'])
            self.assertEqual(
                f'slurm:n1: Job submit/allocate failed: {reason}',
                str(caught.exception))

    def test_a_job_that_waits_is_given_up_with_the_state_of_the_node(self):
        (self.folder / 'waits').touch()
        begin = time.monotonic()
        with mock.patch.object(executor, 'PATIENCE_S', 0.5):
            for lines, state in (
                    (['the node is down: bad DIMM'] * 2,
                     '; the node is down: bad DIMM'), ([], '')):
                self.say('sinfo', *lines)
                self.assertEqual(
                    'slurm:n1: job 12 queued and waiting for resources'
                    + state, self.refused(exception.Unreachable, ''))
        self.assertGreater(time.monotonic() - begin, 1)

    def test_only_the_name_of_one_node_is_taken(self):
        for name in ('n[1-3]', 'n1,n2', '', '-w', 'n 1', 'n;1', 'n\n'):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'not the name of one node'):
                slurm.connect(name)

# SPDX-License-Identifier: Apache-2.0

import contextlib
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.bench.execute import job
from hpcvirt.bench.execute import job_scripts
from hpcvirt.bench.execute import local
from hpcvirt.bench.parsers import text
from tests.builders import folders
from tests.builders import processes


class JobTest(unittest.TestCase):
    def setUp(self):
        self.job = job.Job(local.LocalExecutor(),
                           str(folders.make(self) / 'a b' / 'job'))
        self.addCleanup(self.job.remove)

    def until(self, read, is_met=bool):
        """Wait until what is read is as it must be, and return it."""
        found = waiting.poll(read, is_met, 20, 0.05)
        self.assertTrue(is_met(found), found)
        return found

    def wait(self):
        return self.until(self.job.poll, lambda answer: isinstance(
            answer, job.Ended) or answer is job.JobState.LOST)

    def wait_until_running(self):
        self.until(lambda: self.job.poll() is job.JobState.RUNNING)

    def make_directory(self):
        for directory in reversed([self.job.directory,
                                   os.path.dirname(self.job.directory)]):
            os.mkdir(directory, 0o700)

    def read(self, name):
        return self.job.read(name).get(name)

    def start(self, *argv, limit_s=0, inputs=None, environment=None):
        self.job.prepare(argv, inputs or {}, environment or {})
        self.job.start(limit_s)

    def test_before_the_start_it_is_absent(self):
        self.assertIs(job.JobState.ABSENT, self.job.poll())

    def test_it_ends_with_the_status_of_its_program(self):
        self.start('sh', '-c', 'sleep 0.2; exit 3')
        ended = self.wait()
        self.assertEqual(3, ended.status)
        self.assertGreater(ended.elapsed_s, 0.1)

    def test_inputs_and_environment_reach_the_program(self):
        self.start('sh', '-c', 'cat data; echo "$WORD"',
                   inputs={'data': b'\x00\xff\n'},
                   environment={'WORD': "a 'b'"})
        self.wait()
        self.assertEqual(b"\x00\xff\na 'b'\n", self.read('stdout'))

    def test_a_second_start_has_no_effect(self):
        self.start('sleep', '0.5')
        self.start('sh', '-c', 'exit 9')
        self.assertEqual(0, self.wait().status)

    def test_a_command_that_was_half_written_is_written_again(self):
        self.make_directory()
        with open(os.path.join(self.job.directory, 'command'), 'wb') as half:
            half.write(b'sh -c ')
        self.start('sh', '-c', 'exit 3')
        self.assertEqual(3, self.wait().status)

    def test_a_job_whose_directory_is_gone_does_not_start(self):
        self.job.prepare(['true'], {}, {})
        shutil.rmtree(self.job.directory)
        self.job._put('data', b'')
        self.job.start(0)
        self.assertIs(job.JobState.ABSENT, self.job.poll())

    def test_a_job_prepared_before_a_restart_does_not_start(self):
        self.job.prepare(['true'], {}, {})
        boot = pathlib.Path(self.job.directory, 'boot')
        self.assertTrue(boot.read_text())
        boot.write_text('another\n')
        self.job.start(0)
        self.assertIs(job.JobState.STARTING, self.job.poll())
        self.assertIsNone(self.read('stdout'))

    def test_another_process_finds_the_job_by_its_directory(self):
        self.start('sh', '-c', 'echo found')
        self.job = job.Job(local.LocalExecutor(), self.job.directory)
        self.assertEqual(0, self.wait().status)
        self.assertEqual(b'found\n', self.read('stdout'))

    def test_a_job_whose_time_is_up_ends_with_124(self):
        self.start('sh', '-c', 'trap "" TERM; sleep 60', limit_s=1)
        self.assertEqual(124, self.wait().status)

    def test_a_job_that_ended_leaves_no_process(self):
        for program, status in (('exit 4', 4), ('sleep 60 & exit 3', 3),
                                *[('exit 0', 0)] * 5):
            self.start('sh', '-c', program, limit_s=600)
            self.assertEqual(status, self.wait().status)
            group = self.read('pid').split()[0].decode()
            self.until(lambda group=group: not list(self.processes(group)))
            self.job.remove()

    def processes(self, group):
        """The processes of a process group, without zombies."""
        for stat in pathlib.Path('/proc').glob('[0-9]*/stat'):
            with contextlib.suppress(OSError):
                fields = stat.read_text(
                    errors='replace').rpartition(')')[2].split()
                if fields[2] == group and fields[0] != 'Z':
                    yield stat.parent.name

    def test_a_killed_job_is_lost(self):
        self.start('sleep', '60')
        self.wait_until_running()
        os.killpg(int(self.read('pid').split()[0]), signal.SIGKILL)
        self.assertIs(job.JobState.LOST, self.wait())

    def test_a_job_that_is_asked_to_end_is_lost(self):
        """Slurm and systemd send a TERM to each process, one by one."""
        for pause_s in (0, 0.2):
            with self.subTest(pause_s=pause_s):
                self.start('sh', '-c', 'echo $$ > child; exec sleep 60')
                child = int(self.until(lambda: self.read('child')))
                leader = int(self.until(lambda: self.read('pid')).split()[0])
                os.kill(child, signal.SIGTERM)
                time.sleep(pause_s)
                os.killpg(leader, signal.SIGTERM)
                self.assertIs(job.JobState.LOST, self.wait())
                self.assertIsNone(self.read('status'))
                self.job.remove()

    def test_a_program_that_alone_is_killed_has_ended(self):
        self.start('sh', '-c', 'kill $$')
        self.assertEqual(143, self.wait().status)

    def test_a_removed_job_is_ended(self):
        self.start('sh', '-c', 'echo $$ > child; sleep 60')
        child = int(self.until(lambda: self.read('child')))
        self.job.remove()
        self.assertIs(job.JobState.ABSENT, self.job.poll())
        self.assertRaises(ChildProcessError, os.waitpid, child, os.WNOHANG)
        self.until(lambda: processes.has_ended(child))

    def test_a_job_that_is_removed_while_it_starts_is_ended(self):
        self.job.prepare(['true'], {}, {})
        os.mkdir(os.path.join(self.job.directory, 'started'))
        with subprocess.Popen(
                ['sh', '-c', job_scripts.LOOK
                 + 'sleep 0.5; look $$; echo "$$ $began" > pid; sleep 60'],
                cwd=self.job.directory, start_new_session=True) as leader:
            self.job.remove()
            self.assertEqual(-signal.SIGKILL, leader.wait())
        self.assertFalse(os.path.exists(self.job.directory))

    def test_a_process_that_got_the_id_of_a_job_gets_no_signal(self):
        self.job.prepare(['true'], {}, {})
        os.mkdir(os.path.join(self.job.directory, 'started'))
        other = subprocess.Popen(['sleep', '60'], start_new_session=True)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        for forged in (f'{other.pid}', f'{other.pid} 1', f'{other.pid} x'):
            with self.subTest(forged=forged):
                with open(os.path.join(self.job.directory, 'pid'),
                          'w') as stream:
                    stream.write(forged + '\n')
                self.assertIs(job.JobState.LOST, self.job.poll())
                self.job.stop()
                self.assertIsNone(other.poll())
        self.job.remove()
        self.assertIsNone(other.poll())

    def test_what_a_killed_leader_leaves_is_ended(self):
        self.start('sh', '-c', 'echo $$ > child; exec sleep 60')
        self.until(lambda: self.read('pid'))
        child = int(self.until(lambda: self.read('child')))
        os.kill(int(self.read('pid').split()[0]), signal.SIGKILL)
        self.assertIs(job.JobState.LOST, self.wait())
        self.assertFalse(processes.has_ended(child))
        self.job.stop()
        self.until(lambda: processes.has_ended(child))

    def processes_in(self, directory):
        """The processes in a directory, without zombies."""
        for process in pathlib.Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):
                number = int(process.name)
                if (os.readlink(process / 'cwd') == directory
                        and not processes.has_ended(number)):
                    yield number

    def test_the_ranks_of_mpirun_are_ended_with_it(self):
        self.start('mpirun', '--allow-run-as-root', '--oversubscribe', '-np',
                   '2', 'sh', '-c', 'trap "" TERM; echo $$ > rank.$$; '
                   'while :; do sleep 1; done')
        directory = pathlib.Path(self.job.directory)
        ranks = self.until(lambda: list(directory.glob('rank.*')),
                           lambda found: len(found) == 2)
        leader = int(self.read('pid').split()[0])
        # Open MPI takes them out of the process group of the job.
        self.assertTrue(all(os.getpgid(int(rank.suffix[1:])) != leader
                            for rank in ranks))
        self.job.stop()
        self.assertEqual([], list(self.processes_in(str(directory))))
        self.assertIs(job.JobState.LOST, self.job.poll())

    def test_ranks_that_another_machine_started_are_ended(self):
        # The job itself was never started here.
        self.job.prepare(['true'], {}, {})
        rank = subprocess.Popen(['sleep', '60'], cwd=self.job.directory,
                                start_new_session=True)
        self.job.remove()
        self.assertEqual(-signal.SIGTERM, rank.wait(10))
        self.assertFalse(os.path.exists(self.job.directory))

    def test_a_job_that_is_stopped_has_not_ended(self):
        self.start('sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.1; '
                   'done')
        self.wait_until_running()
        self.job.stop()
        self.assertIs(job.JobState.LOST, self.job.poll())

    def test_a_program_of_any_name_is_looked_at(self):
        name = os.path.join(os.path.dirname(os.path.dirname(
            self.job.directory)), 'a) R 1 2')
        shutil.copy('/bin/sleep', name)
        process = subprocess.Popen([name, '60'])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        looked = subprocess.run(
            ['sh', '-c', job_scripts.LOOK
             + 'look "$1"; echo "$1 $began $session"',
             'test', str(process.pid)],
            capture_output=True, text=True, check=True).stdout
        self.assertEqual(f'{_identity(process.pid)} {os.getsid(process.pid)}',
                         looked.strip())

    def test_a_file_that_is_not_there_is_none(self):
        self.start('true')
        self.assertIsNone(self.read('nothing'))

    def test_several_files_are_read_at_once(self):
        self.start('sh', '-c', 'printf "out 3\\nx"; printf "a b" >&2; '
                   ': > none')
        self.wait()
        self.assertEqual(
            {'stderr': b'a b', 'none': b'', 'stdout': b'out 3\nx'},
            self.job.read('stderr', 'none', 'nothing', 'stdout'))

    def test_no_more_of_a_file_is_read_than_a_parser_refuses(self):
        self.start('sh', '-c', 'head -c 80000000 /dev/zero > output; '
                   'mkfifo pipe; ln -s /dev/zero link')
        self.wait()
        self.assertEqual(text.LIMIT_BYTES + 1, len(self.read('output')))
        self.assertIsNone(self.read('pipe'))
        self.assertIsNone(self.read('link'))

    def test_a_job_that_prints_too_much_floods(self):
        for stream in ('1', '2'):
            self.start('sh', '-c', f'yes >&{stream}')
            self.assertIs(job.JobState.FLOODING, self.until(
                self.job.poll, lambda state: state not in (
                    job.JobState.STARTING, job.JobState.RUNNING)))
            self.job.remove()

    def test_an_input_outside_the_directory_is_refused(self):
        self.assertRaises(exception.InvalidInput, self.start, 'true',
                          inputs={'../x': b''})


class PollTest(unittest.TestCase):
    """What happens between any two commands of a poll."""

    def setUp(self):
        self.scratch = folders.make(self) / 'job'
        self.scratch.mkdir(0o700)

    def poll(self, event, step):
        """The answer if an event comes before a command, and if it did."""
        (self.scratch / 'events').write_text('')
        trap = (f"commands=0; trap 'commands=$((commands+1)); "
                f'[ $commands != {step} ] || {{ {event}; '
                f"echo > {self.scratch}/events; }}' DEBUG; set -T")
        done = subprocess.run(
            ['bash', '-c', f'cd "$1"; {trap}\n{job_scripts.POLL}', 'job',
             str(self.scratch)], capture_output=True, check=True)
        happened = (self.scratch / 'events').read_text() != ''
        return done.stdout.decode().strip(), happened

    def test_a_job_that_begins_meanwhile_is_not_lost(self):
        pid = self.scratch / 'pid'
        for step in itertools.count(1):
            pid.unlink(missing_ok=True)
            answer, happened = self.poll(
                f'echo {_identity(os.getpid())} > {pid}', step)
            self.assertIn(answer, ('starting', 'running'), f'step {step}')
            if not happened:
                break
        self.assertGreater(step, 3)

    def test_a_job_that_ends_meanwhile_is_not_lost(self):
        for step in itertools.count(1):
            leader = subprocess.Popen(['sleep', '60'])
            (self.scratch / 'pid').write_text(f'{_identity(leader.pid)}\n')
            (self.scratch / 'status').unlink(missing_ok=True)
            answer, happened = self.poll(
                f'echo 0 1 2 > {self.scratch}/status; kill {leader.pid}',
                step)
            leader.kill()
            leader.wait()
            self.assertIn(answer, ('done 0 1 2', 'running'), f'step {step}')
            if not happened:
                break
        self.assertGreater(step, 3)


def _identity(pid):
    """A process id with the start time, as a job keeps it."""
    status = pathlib.Path(f'/proc/{pid}/stat').read_text()
    return f'{pid} {status.rpartition(")")[2].split()[19]}'

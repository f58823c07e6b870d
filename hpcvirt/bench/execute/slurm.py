# SPDX-License-Identifier: Apache-2.0

"""Run programs on a node of a Slurm cluster.

``salloc`` allocates the whole node, and one step of the job runs an *agent*, a
shell script that reads commands from its standard input. Polls need no further
steps, which Slurm would record, and jobs that a command leaves behind run on
in the step of the agent, at whose end Slurm kills them.

The pipe to the agent ends with this process, even if that is killed. The agent
then ends, and the allocation with it. What a client that lost power has left
is cancelled by its next run.
"""

import contextlib
import functools
import os
import pathlib
import re
import select
import shlex
import signal
import subprocess
import tempfile
import threading
import time
import typing
from collections.abc import Callable
from collections.abc import Sequence
from typing import IO

from hpcvirt import exception
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import local

#: The agent reads requests in blocks, and so never reads too far.
BLOCK = 4096
#: How long the agent may take beyond the time limit of a program.
GRACE_S = 30.0
LOOK_S = 3.0
#: How long an allocation may take to end by itself.
END_S = 3.0
#: Stands for the exit status of a program whose time was up.
TIME_UP = 999

#: Runs the command in the directory $1, and stops it if it prints more than
#: $2 bytes.
_COMMAND = """
{ { (. "$1/command"); echo $? > "$1/status"; } 2>&1 >&3 3>&- |
  head -c "$2" > "$1/stderr"; } 3>&1 | head -c "$2" > "$1/stdout"
"""

#: A request is a line with its number, the time limit, the limit of output,
#: the number of blocks of the command, and the size and the number of blocks
#: of its input; the blocks follow. The answer is a line with the number, the
#: exit status and the sizes of both outputs, then these, and a newline,
#: because srun passes on whole lines. The answer 0 says that the agent runs.
#: Without Slurm's variables, mpirun does not count the tasks of the step. Not
#: every configuration of Slurm ends all processes with the step, so the agent
#: does.
_AGENT = f"""
job=$SLURM_JOB_ID
for name in $(env | sed -n 's/^\\(SLURM_[A-Za-z0-9_]*\\)=.*/\\1/p'); do
  [ "$name" = SLURM_CONF ] || unset "$name"
done
at=$(mktemp -d /var/tmp/hpcvirt-slurm.XXXXXX) || exit
export HPCVIRT_AGENT="$at"
leave() {{
  for process in /proc/[0-9]*; do
    tr '\\0' '\\n' 2>/dev/null < "$process/environ" |
      grep -qx "HPCVIRT_AGENT=$at" && kill -KILL "${{process#/proc/}}"
  done
  rm -rf "$at"
  scancel "$job"
}} 2>/dev/null
trap leave EXIT
trap exit HUP INT TERM
cd || cd /
echo "hpcvirt 0 0 0 0
"
while read -r number limit most blocks size more; do
  dd bs={BLOCK} count="$blocks" iflag=fullblock of="$at/command" 2>/dev/null
  : > "$at/stdin"
  [ "$size" = 0 ] || dd bs={BLOCK} count="$more" iflag=fullblock 2>/dev/null |
    head -c "$size" > "$at/stdin"
  : > "$at/stdout"
  : > "$at/stderr"
  echo {TIME_UP} > "$at/status"
  timeout -k 5 "$limit" sh -c "$1" run "$at" "$most" < "$at/stdin"
  read -r status < "$at/status"
  set -- "$1" $(cd "$at" && wc -c stdout stderr)
  echo "hpcvirt $number $status $2 $4"
  cat "$at/stdout" "$at/stderr"
  echo
done
"""

_ANSWER = re.compile(rb'hpcvirt (\d+) (\d+) (\d+) (\d+)\n')
_NODE = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]*')
#: States of a node that takes no job.
_DOWN = re.compile(r'.*\*|(down|drain|fail|err|inval|unk|future).*')
#: Reasons for which a job waits and will start.
_WAITS = re.compile('None|Priority|Resources|Reservation|ReqNodeNotAvail.*')
_PREFIX = re.compile(r'^\w+: (error: )?')
#: Part of the message if Slurm refuses a job, as it would again.
_REFUSED = 'allocate failed'


class SlurmExecutor:
    """A node of the cluster to which ``salloc`` submits jobs.

    The first command allocates the node, and :meth:`close` releases it. The
    variables of salloc, such as SALLOC_PARTITION, say how.
    """

    def __init__(self, node: str) -> None:
        self.name = f'slurm:{node}'
        self._node = node
        self._job_name = f'hpcvirt-{os.uname().nodename}-{os.getpid()}'
        self._lock = threading.Lock()
        self._agent: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._number = 0
        self._answers = bytearray()

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        command = os.fsencode(f'exec {shlex.join(argv)}\n')
        blocks, more = (-(-len(data) // BLOCK) for data in (command, stdin))
        with self._lock:
            agent = self._agent or self._allocate()
            self._number += 1
            line = (f'{self._number} {timeout_s:.3f} '
                    f'{executor.MAX_OUTPUT_BYTES + 1} {blocks} {len(stdin)} '
                    f'{more}\n')
            done = self._ask(
                agent, line.encode() + command.ljust(blocks * BLOCK, b'\n')
                + stdin.ljust(more * BLOCK, b'\n'), timeout_s + GRACE_S)
        executor.check_output(self.name, argv[0], done.stdout, done.stderr)
        if done.status == TIME_UP:
            raise exception.TimedOut(
                f'{self.name}: {argv[0]} did not end within {timeout_s:g} s')
        return done

    def expect_restart(self) -> None:
        pass

    def close(self) -> None:
        agent, self._agent = self._agent, None
        if agent is None:
            return
        for stream in filter(None, (agent.stdin, agent.stdout)):
            stream.close()
        # Without its input the agent ends. If salloc is told to end, it
        # cancels a job that waits, and a step that is busy.
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            agent.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                agent.wait(END_S)
                break

    def _ask(self, agent: 'subprocess.Popen[bytes]', request: bytes,
             limit_s: float, wait: Callable[[], None] = lambda: None,
             ) -> executor.Completed:
        """Send a request to the agent, and return its answer.

        :param wait: called while there is no answer
        :raises ConnectionLost: if the job has ended or does not answer
        """
        send, receive = (typing.cast(IO[bytes], each)
                         for each in (agent.stdin, agent.stdout))
        deadline = time.monotonic() + limit_s
        rest = memoryview(request)
        try:
            if agent.poll() is not None:
                raise BrokenPipeError
            while rest:
                rest = rest[send.write(rest):]
            while time.monotonic() < deadline:
                if not select.select([receive], [], [], LOOK_S)[0]:
                    wait()
                    continue
                chunk = receive.read(65536)
                if not chunk:
                    raise BrokenPipeError
                self._answers += chunk
                if (found := self._take()) is not None:
                    return found
        except BrokenPipeError as exc:
            raise self._lose() from exc
        except BaseException:
            # The agent may have a part of the request.
            self.close()
            raise
        raise exception.ConnectionLost(f'{self.name}: does not answer')

    def _take(self) -> executor.Completed | None:
        """Take the answer to the last request, if all of it is there."""
        while (match := _ANSWER.search(self._answers)) is not None:
            number, status, size, errors = map(int, match.groups())
            begin, end = match.end(), match.end() + size + errors
            if len(self._answers) <= end:
                break
            found = bytes(self._answers[begin:end])
            del self._answers[:end + 1]
            # An earlier request may have been given up.
            if number == self._number:
                return executor.Completed(status, found[:size], found[size:])
        return None

    def _lose(self) -> exception.Unreachable:
        """Give up an allocation that has ended, and say why it has."""
        self.close()
        self._errors.seek(0)
        said = self._errors.read().decode('utf-8', 'replace')
        kind = (exception.Unreachable if _REFUSED in said
                else exception.ConnectionLost)
        return kind(f'{self.name}: {_last(said) or "the job has ended"}')

    def _allocate(self) -> 'subprocess.Popen[bytes]':
        """Allocate the node, and start the agent there."""
        self._check_node()
        self._cancel_stale()
        self._number = 0
        self._answers.clear()
        # Programs write at the offset that they share with this file.
        self._errors.seek(0)
        self._errors.truncate()
        agent = self._agent = subprocess.Popen(
            ['salloc', '--nodes=1', f'--nodelist={self._node}', '--ntasks=1',
             '--exclusive', '--mem=0', f'--job-name={self._job_name}',
             'srun', '--ntasks=1', '--mem=0', '--cpu-bind=none', '--mpi=none',
             '/bin/sh', '-c', _AGENT, 'agent', _COMMAND],
            bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, process_group=0, env={
                name: value for name, value in os.environ.items()
                if not name.startswith('SLURM_') or name == 'SLURM_CONF'})
        deadline = time.monotonic() + executor.PATIENCE_S

        def wait() -> None:
            self._check_node()
            for job, reason in self._jobs(
                    '%r', '-n', self._job_name, '-t', 'PD'):
                if (time.monotonic() > deadline
                        or not _WAITS.fullmatch(reason)):
                    raise exception.Unreachable(
                        f'{self.name}: job {job} does not start: {reason}')
        self._ask(agent, b'', executor.PATIENCE_S + GRACE_S, wait)
        return agent

    def _check_node(self) -> None:
        """Check that the node takes jobs.

        :raises ConnectionLost: if it does not
        :raises Unreachable: if there is no such node
        """
        states = self._query('sinfo', '-h', '-N', '-n', self._node,
                             '-o', '%T %E')
        if not states:
            raise exception.Unreachable(
                f'{self.name}: Slurm has no such node')
        state, _, reason = states[0].partition(' ')
        if _DOWN.fullmatch(state):
            raise exception.ConnectionLost(
                f'{self.name}: the node is {state}: {reason}')

    def _cancel_stale(self) -> None:
        """Cancel the jobs of processes of this machine that have ended."""
        for job, name in self._jobs('%j', '-u', str(os.getuid())):
            start, _, pid = name.rpartition('-')
            if (start == self._job_name.rpartition('-')[0] and pid.isdigit()
                    and not pathlib.Path('/proc', pid).exists()):
                self._query('scancel', job)

    def _jobs(self, field: str, *options: str) -> list[list[str]]:
        """Return the ids of jobs with a field of each."""
        return [line.split(' ', 1) for line in self._query(
            'squeue', '-h', *options, '-o', f'%A {field}')]

    def _query(self, *argv: str) -> list[str]:
        """Run a program of Slurm, and return the lines that it prints."""
        done = local.LocalExecutor().run(argv)
        if done.status:
            said = done.stderr.decode('utf-8', 'replace')
            raise exception.ConnectionLost(
                f'{self.name}: {argv[0]}: {_last(said)}')
        return done.stdout.decode('utf-8', 'replace').splitlines()


@functools.cache
def connect(node: str) -> SlurmExecutor:
    """Return the executor of a node, one for all targets on it.

    :raises InvalidInput: if this is not the name of one node
    """
    if not _NODE.fullmatch(node):
        raise exception.InvalidInput(f'slurm:{node}',
                                     'not the name of one node')
    return SlurmExecutor(node)


def _last(said: str) -> str:
    """Return the last error, or else message, of a program of Slurm."""
    lines = said.strip().splitlines() or ['']
    errors = [line for line in lines if ' error: ' in line]
    return _PREFIX.sub('', (errors or lines)[-1])

# SPDX-License-Identifier: Apache-2.0

"""Run programs on a node of a Slurm cluster.

``salloc`` allocates the whole node, and one step of the job runs an *agent*, a
shell script that reads commands from its standard input. Polls need no further
steps, which Slurm would record, and jobs that a command leaves behind run on
in the step of the agent, at whose end Slurm kills them.

The pipe to the agent ends with this process, even if that is killed. The agent
then ends, and the allocation with it.
"""

import base64
import contextlib
import functools
import os
import re
import selectors
import shlex
import threading
import time
import typing
from collections.abc import Sequence
from typing import IO

from hpcvirt import child_environment
from hpcvirt import child_process
from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import job_scripts

CHUNK = 65536
#: How long the agent may take beyond the time limit of a program.
GRACE_S = 30.0
#: How long an allocation may take to end by itself.
END_S = 3.0
PAUSE_S = 0.05
#: Stands for the exit status of a program whose time was up.
TIME_UP = 999

#: A request is a line with the time limit, the limit of each output, and the
#: sizes of the command and of its input, which follow. The answer is a line
#: with the exit status and both outputs in base64. One without outputs says
#: that the agent runs. Without Slurm's variables, mpirun does not count the
#: tasks of the step. Not every configuration of Slurm ends all processes with
#: the step, so the agent does. What has left the process group of a program
#: whose time is up is ended, too.
_AGENT = job_scripts.RESOLVE + r"""
job=$SLURM_JOB_ID
for name in $(env | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\)=.*/\1/p'); do
  [ "$name" = SLURM_CONF ] || unset "$name"
done
state=$(resolve slurm) && (umask 077 && mkdir -p "$state") || exit
# What an agent has left that Slurm killed.
for left in "$state/$(uname -n)-"*; do
  [ ! -d "$left" ] || kill -0 "${left##*-}" || rm -rf "$left"
done 2>/dev/null
at=$state/$(uname -n)-$$
(umask 077 && mkdir "$at") || exit
export HPCVIRT_AGENT="$at"
sweep() {
  for found in $(grep -lzxF "$1" /proc/[0-9]*/environ); do
    process=${found#/proc/}
    kill -KILL "${process%/environ}"
  done
} 2>/dev/null
leave() {
  trap '' HUP INT TERM
  sweep "HPCVIRT_AGENT=$at"
  rm -rf "$at"
  scancel "$job"
} 2>/dev/null
trap leave EXIT
number=0
trap exit HUP INT TERM
cd || cd /
printf '\nhpcvirt 0  \n'
while read -r limit most command size; do
  head -c "$command" > "$at/command"
  head -c "$size" > "$at/stdin"
  echo 999 > "$at/status"
  number=$((number + 1))
  HPCVIRT_PROGRAM="$at/$number" timeout -s KILL "$limit" sh -c '
    { { (. "$0/command"); echo $? > "$0/status"; } 2>&1 >&3 3>&- |
      head -c "$1" > "$0/stderr"; } 3>&1 | head -c "$1" > "$0/stdout"
  ' "$at" "$most" < "$at/stdin"
  [ "$(cat "$at/status")" != 999 ] || sweep "HPCVIRT_PROGRAM=$at/$number"
  printf '\nhpcvirt %s ' "$(cat "$at/status")"
  base64 -w 0 "$at/stdout"
  printf ' '
  base64 -w 0 "$at/stderr"
  echo
done
"""

#: With which a line begins that is an answer. Slurm and a prolog print others.
_ANSWER = b'hpcvirt '
#: How much of what else is printed is kept, for messages.
_MAX_SAID_BYTES = 65536
_NODE = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]*')
_PREFIX = re.compile(r'^\w+: (error: )?')
#: Parts of the messages if Slurm refuses a job, as it would again, or has not
#: started it in time.
_REFUSED = 'allocate failed'
_WAITS = 'waiting for resources'


class SlurmExecutor:
    """A node of the cluster to which ``salloc`` submits jobs.

    The first command allocates the node, and :meth:`close` releases it. The
    variables of salloc, such as SALLOC_PARTITION, say how.
    """

    def __init__(self, node: str) -> None:
        self.name = f'slurm:{node}'
        self._node = node
        self._lock = threading.Lock()
        self._agent: child_process.Child | None = None

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        command = os.fsencode(f'exec {shlex.join(argv)}\n')
        with self._lock:
            agent = self._agent or self._allocate()
            words = self._ask(
                agent, f'{timeout_s:.3f} {executor.MAX_OUTPUT_BYTES + 1} '
                f'{len(command)} {len(stdin)}\n'.encode() + command + stdin,
                timeout_s + GRACE_S)
        try:
            status, *outputs = words
            stdout, stderr = (base64.b64decode(each, validate=True)
                              for each in outputs)
            number = int(status)
        except ValueError as exc:
            self.close()
            raise exception.ConnectionLost(
                f'{self.name}: its answer cannot be read') from exc
        executor.check_output(self.name, argv[0], stdout, stderr)
        if number == TIME_UP:
            raise exception.TimedOut(
                f'{self.name}: {argv[0]} did not end within {timeout_s:g} s')
        return executor.Completed(number, stdout, stderr)

    def expect_restart(self) -> None:
        pass

    def close(self) -> None:
        agent, self._agent = self._agent, None
        if agent is None:
            return
        for stream in filter(None, (agent.process.stdin,
                                    agent.process.stdout)):
            stream.close()
        # Without its input the agent ends. If salloc is told to end, it
        # cancels a job that waits, and a step that is busy.
        waiting.poll(agent.has_ended, bool, END_S, PAUSE_S)
        agent.end(END_S)

    def _allocate(self) -> child_process.Child:
        """Allocate the node, and start the agent there."""
        # Slurm passes the environment of salloc to the node.
        agent = self._agent = child_process.Child(
            ['salloc', '--nodes=1', f'--nodelist={self._node}', '--ntasks=1',
             '--exclusive', '--mem=0', '--job-name=hpcvirt', 'srun',
             '--ntasks=1', '--mem=0', '--cpu-bind=none', '--mpi=none',
             '/bin/sh', '-c', _AGENT], where=self.name,
            stdin=child_process.PIPE, stderr=child_process.STDOUT,
            environment=child_environment.choose(
                *child_environment.BENCHMARK, *child_environment.SLURM))
        self._ask(agent, b'', executor.PATIENCE_S)
        return agent

    def _ask(self, agent: child_process.Child, request: bytes,
             limit_s: float) -> list[bytes]:
        """Send a request to the agent, and return the words of its answer.

        A node that does not read, or prints without end, holds nobody.

        :raises ConnectionLost: if the job has ended or does not answer
        :raises Unreachable: if Slurm does not start the job
        """
        send, receive = (typing.cast(IO[bytes], each) for each in (
            agent.process.stdin, agent.process.stdout))
        os.set_blocking(send.fileno(), False)
        reader, rest = _AnswerReader(), memoryview(request)
        deadline = time.monotonic() + limit_s
        with (contextlib.ExitStack() as failed,
              selectors.DefaultSelector() as selector):
            # The agent may have a part of the request.
            failed.callback(self.close)
            selector.register(receive, selectors.EVENT_READ)
            if rest:
                selector.register(send, selectors.EVENT_WRITE)
            while (left_s := deadline - time.monotonic()) > 0:
                for key, _ in selector.select(left_s):
                    if key.fileobj is send:
                        rest = rest[_write(send, rest):]
                        if not rest:
                            selector.unregister(send)
                        continue
                    chunk = os.read(receive.fileno(), CHUNK)
                    if not chunk:
                        raise self._explain(reader.read_said(), True)
                    if words := reader.add(chunk):
                        failed.pop_all()
                        return words
            raise self._explain(reader.read_said(), agent.has_ended())

    def _explain(self, text: str, has_ended: bool) -> exception.Unreachable:
        """Say why the job has ended, or else why it does not answer.

        :param text: what Slurm has printed
        """
        lines = text.splitlines()
        errors = [line for line in lines if ' error: ' in line]
        said = _PREFIX.sub('', (errors or lines or [''])[-1])
        if has_ended:
            kind = (exception.Unreachable if _REFUSED in said
                    else exception.ConnectionLost)
            return kind(f'{self.name}: {said or "the job has ended"}')
        if _WAITS not in said:
            return exception.ConnectionLost(f'{self.name}: does not answer')
        _, states, _ = child_process.run(
            ['sinfo', '-h', '-N', '-n', self._node, '-o',
             'the node is %T: %E'], where='local', limit_s=executor.SHORT_S,
            environment=child_environment.choose(*child_environment.SLURM))
        first = states.decode('utf-8', 'replace').splitlines()[:1]
        return exception.Unreachable(
            f'{self.name}: {"; ".join((said, *first))}')


class _AnswerReader:
    """Finds the answer of the agent among the lines that are printed.

    No more is kept than the longest answer.
    """

    def __init__(self) -> None:
        self._line, self._said = bytearray(), bytearray()
        # Each output is one byte longer than what is too much, in base64.
        self._max_bytes = 2 * (executor.MAX_OUTPUT_BYTES * 4 // 3 + 1024)

    def add(self, chunk: bytes) -> list[bytes]:
        """Add what was printed.

        :returns: the words of the answer; none if it is not complete
        """
        *ends, rest = chunk.split(b'\n')
        for end in ends:
            self._add_part(end)
            line = bytes(self._line)
            self._line.clear()
            if line.startswith(_ANSWER):
                return line.removeprefix(_ANSWER).split(b' ')
            self._said += line[:_MAX_SAID_BYTES] + b'\n'
            del self._said[:-_MAX_SAID_BYTES]
        self._add_part(rest)
        return []

    def _add_part(self, part: bytes) -> None:
        self._line += part
        is_answer = self._line.startswith(_ANSWER[:len(self._line)])
        del self._line[self._max_bytes if is_answer else _MAX_SAID_BYTES:]

    def read_said(self) -> str:
        """Return the last lines that are no answer."""
        return (self._said + self._line[:_MAX_SAID_BYTES]).decode(
            'utf-8', 'replace')


def _write(stream: IO[bytes], data: memoryview) -> int:
    """Write a part of the data to a pipe; return how much was written.

    A pipe that nobody reads any more takes everything.
    """
    try:
        return os.write(stream.fileno(), data[:CHUNK])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(data)


@functools.cache
def connect(node: str) -> SlurmExecutor:
    """Return the executor of a node, one for all targets on it.

    :raises InvalidInput: if this is not the name of one node
    """
    if not _NODE.fullmatch(node):
        raise exception.InvalidInput(f'slurm:{node}',
                                     'not the name of one node')
    return SlurmExecutor(node)

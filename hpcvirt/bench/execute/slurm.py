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
import select
import shlex
import signal
import subprocess
import threading
import time
import typing
from collections.abc import Sequence
from typing import IO

from hpcvirt import exception
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import local

CHUNK = 65536
#: How long the agent may take beyond the time limit of a program.
GRACE_S = 30.0
#: How long an allocation may take to end by itself.
END_S = 3.0
#: Stands for the exit status of a program whose time was up.
TIME_UP = b'999'

#: A request is a line with the time limit, the limit of each output, and the
#: sizes of the command and of its input, which follow. The answer is a line
#: with the exit status and both outputs in base64. One without outputs says
#: that the agent runs. Without Slurm's variables, mpirun does not count the
#: tasks of the step. Not every configuration of Slurm ends all processes with
#: the step, so the agent does.
_AGENT = r"""
job=$SLURM_JOB_ID
for name in $(env | sed -n 's/^\(SLURM_[A-Za-z0-9_]*\)=.*/\1/p'); do
  [ "$name" = SLURM_CONF ] || unset "$name"
done
at=$(mktemp -d /var/tmp/hpcvirt-slurm.XXXXXX) || exit
export HPCVIRT_AGENT="$at"
leave() {
  for process in /proc/[0-9]*; do
    tr '\0' '\n' 2>/dev/null < "$process/environ" |
      grep -qx "HPCVIRT_AGENT=$at" && kill -KILL "${process#/proc/}"
  done
  rm -rf "$at"
  scancel "$job"
} 2>/dev/null
trap leave EXIT
trap exit HUP INT TERM
cd || cd /
printf '\nhpcvirt 0  \n'
while read -r limit most command size; do
  head -c "$command" > "$at/command"
  head -c "$size" > "$at/stdin"
  echo 999 > "$at/status"
  timeout -k 5 "$limit" sh -c '
    { { (. "$0/command"); echo $? > "$0/status"; } 2>&1 >&3 3>&- |
      head -c "$1" > "$0/stderr"; } 3>&1 | head -c "$1" > "$0/stdout"
  ' "$at" "$most" < "$at/stdin"
  printf 'hpcvirt %s ' "$(cat "$at/status")"
  base64 -w 0 "$at/stdout"
  printf ' '
  base64 -w 0 "$at/stderr"
  echo
done
"""

#: Slurm and a prolog print other lines.
_ANSWER = re.compile(rb'^hpcvirt (.*)$', re.MULTILINE)
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
        self._agent: subprocess.Popen[bytes] | None = None

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        command = os.fsencode(f'exec {shlex.join(argv)}\n')
        with self._lock:
            agent = self._agent or self._allocate()
            status, *outputs = self._ask(
                agent, f'{timeout_s:.3f} {executor.MAX_OUTPUT_BYTES + 1} '
                f'{len(command)} {len(stdin)}\n'.encode() + command + stdin,
                timeout_s + GRACE_S)
        stdout, stderr = map(base64.b64decode, outputs)
        executor.check_output(self.name, argv[0], stdout, stderr)
        if status == TIME_UP:
            raise exception.TimedOut(
                f'{self.name}: {argv[0]} did not end within {timeout_s:g} s')
        return executor.Completed(int(status), stdout, stderr)

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

    def _allocate(self) -> 'subprocess.Popen[bytes]':
        """Allocate the node, and start the agent there."""
        agent = self._agent = subprocess.Popen(
            ['salloc', '--nodes=1', f'--nodelist={self._node}', '--ntasks=1',
             '--exclusive', '--mem=0', '--job-name=hpcvirt', 'srun',
             '--ntasks=1', '--mem=0', '--cpu-bind=none', '--mpi=none',
             '/bin/sh', '-c', _AGENT],
            bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, process_group=0, env={
                name: value for name, value in os.environ.items()
                if not name.startswith('SLURM_') or name == 'SLURM_CONF'})
        self._ask(agent, b'', executor.PATIENCE_S)
        return agent

    def _ask(self, agent: 'subprocess.Popen[bytes]', request: bytes,
             limit_s: float) -> list[bytes]:
        """Send a request to the agent, and return the words of its answer.

        :raises ConnectionLost: if the job has ended or does not answer
        :raises Unreachable: if Slurm does not start the job
        """
        send, receive = (typing.cast(IO[bytes], each)
                         for each in (agent.stdin, agent.stdout))
        answer = bytearray()
        has_ended = agent.poll() is not None
        deadline = time.monotonic() + (0 if has_ended else limit_s)
        with contextlib.ExitStack() as failed:
            # The agent may have a part of the request.
            failed.callback(self.close)
            with contextlib.suppress(BrokenPipeError):
                rest = memoryview(b'' if has_ended else request)
                while rest:
                    rest = rest[send.write(rest):]
            while select.select([receive], [], [], max(
                    0, deadline - time.monotonic()))[0]:
                chunk = receive.read(CHUNK)
                if not chunk:
                    has_ended = True
                    break
                answer += chunk
                if chunk.endswith(b'\n') and (match := _ANSWER.search(answer)):
                    failed.pop_all()
                    return bytes(match[1]).split(b' ')
            raise self._explain(answer.decode('utf-8', 'replace'), has_ended)

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
        states = local.LocalExecutor().run([
            'sinfo', '-h', '-N', '-n', self._node, '-o', 'the node is %T: %E'
            ]).stdout.decode('utf-8', 'replace').splitlines()
        return exception.Unreachable(
            f'{self.name}: {"; ".join((said, *states[:1]))}')


@functools.cache
def connect(node: str) -> SlurmExecutor:
    """Return the executor of a node, one for all targets on it.

    :raises InvalidInput: if this is not the name of one node
    """
    if not _NODE.fullmatch(node):
        raise exception.InvalidInput(f'slurm:{node}',
                                     'not the name of one node')
    return SlurmExecutor(node)

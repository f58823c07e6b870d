# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""A long program that runs detached and is polled.

A job lives in a directory of the place where it runs, so it survives the
connection and the process that started it. The caller chooses the directory
before the job starts, and finds the job there again, running or ended.

Files in the directory: ``command`` (the shell commands), ``stdout``,
``stderr``, ``pid``, and ``status``, which appears in one step when the
program has ended and holds its exit status and the times of its begin and
end. The place needs a POSIX shell and ``setsid`` and ``date`` of GNU or
busybox.
"""

import dataclasses
import enum
import getpass
import posixpath
import shlex
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.execute import executor

#: Writes the command, which comes on standard input, to the directory $1
#: unless the job was started already. A broken connection may have left half
#: of a command, so that of a job which was not started is written again.
PREPARE = """
set -eu
umask 077
mkdir -p "$1"
cd "$1"
[ ! -d started ] || exit 17
cat > command
"""

#: Runs the command that PREPARE wrote. setsid makes a session and a process
#: group, which outlives the connection and which the watchdog can end as a
#: whole; the leader of the group survives the TERM to write the status.
#: "status" is renamed into place so that no reader sees half of it. If the
#: answer to a start is lost, the start is repeated, and has no effect then.
START = """
set -eu
cd "$1"
mkdir started 2>/dev/null || exit 0
setsid sh -c '
echo $$ > pid
trap : TERM
finish() {
  echo "$1 $begin $(date +%s.%N)" > status.new
  mv status.new status
}
begin=$(date +%s.%N)
sh ./command &
child=$!
if [ "$1" != 0 ]; then
  ( trap - TERM; sleep "$1"; : > overdue; kill -TERM 0 ) &
  watchdog=$!
fi
while :; do
  wait "$child" && status=0 || status=$?
  kill -0 "$child" 2>/dev/null && [ ! -e overdue ] || break
done
if [ -e overdue ]; then
  sleep 2
  finish 124
  kill -KILL 0
fi
[ "$1" = 0 ] || kill "$watchdog" 2>/dev/null || :
finish "$status"
' job "$2" > stdout 2> stderr < /dev/null &
"""

#: Prints "done STATUS BEGIN END", "running", "starting", "lost" or "absent".
#: The job may change between two commands of this script: it checks once
#: whether the job has begun, and checks the status again if the leader has
#: ended. A killed leader may stay as a zombie.
POLL = """
cd "$1" 2>/dev/null || { echo absent; exit 0; }
alive() {
  kill -0 "$(cat pid)" 2>/dev/null || return 1
  ! grep -qs "^State:.*Z" "/proc/$(cat pid)/status"
}
if [ -f status ]; then echo "done $(cat status)"
elif [ ! -s pid ]; then echo starting
elif alive; then echo running
elif [ -f status ]; then echo "done $(cat status)"
else echo lost
fi
"""

#: Waits for the process id of a job that was started a moment ago: without
#: it the job cannot be ended.
STOP = """
cd "$1" 2>/dev/null || exit 0
tries=50
while [ -d started ] && [ ! -s pid ] && [ "$tries" -gt 0 ]; do
  sleep 0.1
  tries=$((tries - 1))
done
if [ -s pid ] && [ ! -f status ]; then
  kill -KILL "-$(cat pid)" 2>/dev/null || true
fi
"""

#: A process that was just killed may still create a file.
REMOVE = STOP + """
cd /
for pause in 0.1 0.3 1 3; do
  rm -rf "$1" 2>/dev/null && exit 0
  sleep "$pause"
done
rm -rf "$1"
"""


class State(enum.StrEnum):
    """A job that has no exit status.

    ``LOST``: it was killed together with its shell, or its machine restarted.
    """

    ABSENT = 'absent'
    STARTING = 'starting'
    RUNNING = 'running'
    LOST = 'lost'


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """A job that has ended.

    :ivar status: exit status; 124 if its time was up
    :ivar elapsed_s: None if the place has no clock that shows it
    """

    status: int
    elapsed_s: float | None


class Job:
    """One job at one place.

    :param directory: absolute directory of the job, its name
    """

    def __init__(self, place: executor.Executor, directory: str) -> None:
        self._place = place
        self.directory = directory

    def prepare(self, argv: Sequence[str], inputs: Mapping[str, bytes],
                environment: Mapping[str, str],
                commands_before: Sequence[Sequence[str]] = ()) -> None:
        """Write the command and its input files, unless the job was started.

        :param inputs: files that the program finds in its directory, each
            made executable
        :param commands_before: argument lists to run first; if one fails,
            its status is the job's
        :raises Unreachable: if the place does not answer
        """
        words = [f'{name}={value}' for name, value in environment.items()]
        lines = [shlex.join(line) + ' || exit' for line in commands_before]
        lines.append(shlex.join(['env', *words, *argv] if words else argv))
        text = '\n'.join(lines) + '\n'
        if self._shell(PREPARE, text.encode(), accept=(17,)).status == 17:
            return
        for name, content in inputs.items():
            self._put(name, content)

    def start(self, limit_s: int) -> None:
        """Start the job that was prepared, once.

        It is one short message, so that several jobs start at once.

        :param limit_s: seconds after which the program is ended, 0 for none
        """
        self._shell(START, b'', str(limit_s))

    def poll(self) -> Ended | State:
        """Ask for the state of the job."""
        printed = self._shell(POLL, b'').stdout.decode('ascii', 'replace')
        word, *rest = printed.split() or ['absent']
        if word == 'done':
            return _ended(rest)
        if word in list(State):
            return State(word)
        raise exception.Unreachable(
            f'{self._place.name}: cannot read the state of {self.directory}')

    def read(self, name: str) -> bytes | None:
        """Read a file of the job; None if there is none."""
        path = posixpath.join(self.directory, name)
        done = self._place.run(['cat', path], timeout_s=300)
        return done.stdout if done.status == 0 else None

    def stop(self) -> None:
        """End the job if it runs; its state is lost then."""
        self._shell(STOP, b'')

    def remove(self) -> None:
        """End the job if it runs, and remove its directory."""
        self._shell(REMOVE, b'')

    def _put(self, name: str, content: bytes) -> None:
        if posixpath.basename(name) != name or name in ('', '.', '..'):
            raise exception.InvalidInput(name, 'not a plain file name')
        path = posixpath.join(self.directory, name)
        done = self._place.run(
            ['sh', '-c', 'cat > "$1" && chmod 700 "$1"', 'put', path],
            content, 300)
        self._check(done)

    def _shell(self, script: str, stdin: bytes, *arguments: str,
               accept: tuple[int, ...] = ()) -> executor.Completed:
        done = self._place.run(
            ['sh', '-c', script, 'job', self.directory, *arguments], stdin)
        if done.status not in accept:
            self._check(done)
        return done

    def _check(self, done: executor.Completed) -> None:
        if done.status:
            stderr = done.stderr.decode('utf-8', 'replace').strip()
            raise exception.Unreachable(
                f'{self._place.name}: cannot use {self.directory}: '
                f'{stderr or done.status}')


def _ended(words: Sequence[str]) -> Ended | State:
    """Read the file ``status``, which a full disk may have cut short."""
    try:
        status, begin, end = words
        return Ended(int(status), max(0.0, float(end) - float(begin)))
    except ValueError:
        if words and words[0].isdigit():
            return Ended(int(words[0]), None)
        return State.LOST


def parent_directory() -> str:
    """Where the directories of jobs are, at every place: on a disk."""
    return f'/var/tmp/hpcvirt-{getpass.getuser()}'  # noqa: S108

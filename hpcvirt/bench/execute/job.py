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

"""A long program that runs on its own and is asked how it goes.

A job lives in a directory of the place where it runs, so it survives the
connection and the one who started it. Its name is fixed by the caller before
it starts: who comes back later finds it by the same name, running or done.

Files in the directory: ``command`` (what is run), ``stdout``, ``stderr``,
``pid``, and ``status``, which appears in one step when the program has ended
and holds its exit status and its seconds. The place needs a POSIX shell and
``setsid`` and ``date`` of GNU or busybox.
"""

import dataclasses
import posixpath
import shlex
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.execute import executor

#: Makes the job unless it is launched already. $1 directory. The command
#: comes on standard input; a connection that broke may have left half of it,
#: so what is not launched is laid anew.
START = """
set -eu
umask 077
mkdir -p "$1"
cd "$1"
[ ! -d launched ] || exit 17
cat > command
"""

#: Runs the command that START left. setsid makes a session and a process
#: group of its own, which outlives the connection and which the watchdog can
#: end as a whole; the leader itself survives the TERM to tell the tale.
#: "status" is renamed into place so that nobody reads half of it. A launch
#: whose answer was lost on the way may be asked for again: once is enough.
LAUNCH = """
set -eu
cd "$1"
mkdir launched 2>/dev/null || exit 0
setsid sh -c '
echo $$ > pid
trap : TERM
tell() { echo "$1 $begin $(date +%s.%N)" > status.new; mv status.new status; }
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
  tell 124
  kill -KILL 0
fi
[ "$1" = 0 ] || kill "$watchdog" 2>/dev/null || :
tell "$status"
' job "$2" > stdout 2> stderr < /dev/null &
"""

#: Prints "done STATUS BEGIN END", "running", "starting", "lost" or "absent".
#: The job goes on between two looks: whether it has begun is looked for once,
#: and the status again when the leader is gone. A killed leader may stay as a
#: zombie.
ASK = """
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

#: A job that was launched a moment ago is waited for: who is not known cannot
#: be ended.
STOP = """
cd "$1" 2>/dev/null || exit 0
tries=50
while [ -d launched ] && [ ! -s pid ] && [ "$tries" -gt 0 ]; do
  sleep 0.1
  tries=$((tries - 1))
done
if [ -s pid ] && [ ! -f status ]; then
  kill -KILL "-$(cat pid)" 2>/dev/null || true
fi
"""

#: What was killed may still be making a file.
REMOVE = STOP + """
cd /
for pause in 0.1 0.3 1 3; do
  rm -rf "$1" 2>/dev/null && exit 0
  sleep "$pause"
done
rm -rf "$1"
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """A job that is over.

    :ivar status: exit status; 124 if its time was up; None if it was lost:
        killed together with its shell, or by a restart of the machine
    """

    status: int | None
    elapsed_s: float | None


class Job:
    """One job at one place.

    :param directory: absolute directory of the job, its name
    """

    def __init__(self, place: executor.Executor, directory: str) -> None:
        self._place = place
        self.directory = directory

    def start(self, argv: Sequence[str], limit_s: int,
              inputs: Mapping[str, bytes],
              environment: Mapping[str, str],
              prepare: Sequence[Sequence[str]] = ()) -> bool:
        """Start the job, or leave it be if it is there already.

        :param limit_s: seconds after which the program is ended, 0 for none
        :param inputs: files that the program finds in its directory, each
            made executable
        :param prepare: argument lists to be run before; if one fails its
            status is the job's
        :returns: False if the job is there already
        :raises Unreachable: if the place does not answer
        """
        laid = self.lay(argv, inputs, environment, prepare)
        if laid:
            self.launch(limit_s)
        return laid

    def lay(self, argv: Sequence[str], inputs: Mapping[str, bytes],
            environment: Mapping[str, str],
            prepare: Sequence[Sequence[str]] = ()) -> bool:
        """Put everything in place that :meth:`launch` starts."""
        words = [f'{name}={value}' for name, value in environment.items()]
        lines = [shlex.join(line) + ' || exit' for line in prepare]
        lines.append(shlex.join(['env', *words, *argv] if words else argv))
        text = '\n'.join(lines) + '\n'
        made = self._shell(START, text.encode(), fail=(17,))
        if made.status == 17:
            return False
        for name, content in inputs.items():
            self._put(name, content)
        return True

    def launch(self, limit_s: int) -> None:
        """Start what was laid: one message, so that several start at once."""
        self._shell(LAUNCH, b'', str(limit_s))

    def ask(self) -> Ended | str:
        """Ask how it goes.

        :returns: the end, or ``running``, ``starting``, ``absent``
        """
        words = self._shell(ASK, b'').stdout.decode('ascii', 'replace')
        state, *rest = words.split() or ['absent']
        if state == 'lost':
            return Ended(None, None)
        if state != 'done':
            return state
        try:
            status, begin, end = rest
            return Ended(int(status), max(0.0, float(end) - float(begin)))
        except ValueError:
            return Ended(int(rest[0]) if rest and rest[0].isdigit() else None,
                         None)

    def read(self, name: str) -> bytes | None:
        """Read a file of the job; None if there is none."""
        path = posixpath.join(self.directory, name)
        done = self._place.run(['cat', path], timeout_s=300)
        return done.stdout if done.status == 0 else None

    def stop(self) -> None:
        """End the job if it runs; it counts as lost then."""
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

    def _shell(self, script: str, stdin: bytes, *more: str,
               fail: tuple[int, ...] = ()) -> executor.Completed:
        done = self._place.run(
            ['sh', '-c', script, 'job', self.directory, *more], stdin)
        if done.status not in fail:
            self._check(done)
        return done

    def _check(self, done: executor.Completed) -> None:
        if done.status:
            said = done.stderr.decode('utf-8', 'replace').strip()
            raise exception.Unreachable(
                f'{self._place.name}: cannot use {self.directory}: '
                f'{said or done.status}')

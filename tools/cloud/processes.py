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

"""Start programs, find them again by pid file, stop exactly those.

A program gets a session of its own, so that its children are found even
after it died, and ``HPCVIRT_CLOUD_RUN`` in its environment, so that those
which leave the session are found too. A pid file holds the start time as
well: a number that the kernel has given to somebody else is not ours.
"""

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from tools.cloud import settings as cloud_settings

MARK = 'HPCVIRT_CLOUD_RUN'


@dataclasses.dataclass(frozen=True)
class Stat:
    """What /proc/PID/stat says.

    :ivar started: clock ticks from boot to the start of the process
    """

    pid: int
    state: str
    session: int
    started: int


def stat(pid: int) -> Stat | None:
    """Look at a process; None if there is none or it is a zombie."""
    try:
        text = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return None
    # The name stands in parentheses and may hold anything, spaces too.
    fields = text.rpartition(')')[2].split()
    if fields[0] in 'ZX':
        return None
    return Stat(pid, fields[0], int(fields[3]), int(fields[19]))


def pids() -> list[int]:
    """List all processes of the machine."""
    return [int(name) for name in os.listdir('/proc') if name.isdigit()]


class Processes:
    """The programs of one cloud."""

    def __init__(self, settings: cloud_settings.Settings) -> None:
        self._directory = settings.run / 'pid'
        self._log = settings.log
        self._mark = f'{MARK}={settings.run}'

    def start(self, name: str, argv: Sequence[str],
              environment: Mapping[str, str] | None = None) -> None:
        """Start a program unless it is running already.

        Its output goes to ``log/NAME.log``.
        """
        if self.alive(name):
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        values = {'PATH': os.environ.get('PATH', os.defpath),
                  'HOME': os.environ.get('HOME', '/root'),
                  'LC_ALL': 'C.UTF-8', **(environment or {})}
        key, _, value = self._mark.partition('=')
        values[key] = value
        with open(self.log_file(name), 'ab') as log:
            process = subprocess.Popen(
                list(argv), env=values, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, close_fds=True)
        found = stat(process.pid)
        started = found.started if found else 0
        self._file(name).write_text(f'{process.pid} {started}\n')

    def names(self) -> list[str]:
        """List the programs that were started and not stopped."""
        if not self._directory.is_dir():
            return []
        return sorted(path.name for path in self._directory.iterdir())

    def pid(self, name: str) -> int | None:
        """Give the process id of a program, None if it does not run."""
        recorded = self._recorded(name)
        if recorded is None:
            return None
        found = stat(recorded[0])
        if found is None or found.started != recorded[1]:
            return None
        return found.pid

    def alive(self, name: str) -> bool:
        return self.pid(name) is not None

    def resident_mib(self, name: str) -> int:
        """Sum the memory of a program and its children."""
        total = 0
        for pid in self._members(name):
            with contextlib.suppress(OSError, ValueError, IndexError):
                text = pathlib.Path(f'/proc/{pid}/statm').read_text()
                total += int(text.split()[1]) * os.sysconf('SC_PAGE_SIZE')
        return total >> 20

    def stop(self, names: Iterable[str], patience_s: float = 15.0) -> None:
        """Ask programs to end, insist after a while."""
        chosen = list(names)
        for name in chosen:
            pid = self.pid(name)
            if pid is not None:
                _signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + patience_s
        for name in chosen:
            while self._members(name) and time.monotonic() < deadline:
                time.sleep(0.1)
            self.kill(name)

    def kill(self, name: str) -> None:
        """End a program and its children at once, as a power cut does."""
        for _ in range(50):
            members = self._members(name)
            if not members:
                break
            for pid in members:
                _signal(pid, signal.SIGKILL)
            time.sleep(0.1)
        self._file(name).unlink(missing_ok=True)

    def sweep(self) -> int:
        """End what carries our mark but is in no session of ours.

        :returns: number of processes ended
        """
        ended = 0
        mark = self._mark.encode()
        for pid in pids():
            if pid == os.getpid():
                continue
            try:
                data = pathlib.Path(f'/proc/{pid}/environ').read_bytes()
            except OSError:
                continue
            if mark in data.split(b'\0') and stat(pid) is not None:
                _signal(pid, signal.SIGKILL)
                ended += 1
        return ended

    def log_file(self, name: str) -> pathlib.Path:
        """The file that holds a program's output."""
        return self._log / f'{name}.log'

    def tail(self, name: str, lines: int = 15) -> str:
        """The last lines of a program's log that are worth reading."""
        try:
            with open(self.log_file(name), 'rb') as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - (1 << 20)))
                text = log.read().decode(errors='replace')
        except OSError:
            return '(no log)'
        found = [line[:300] for line in text.splitlines()
                 if line.strip() and ' DEBUG ' not in line]
        return '\n'.join(found[-lines:]) or '(empty log)'

    def _file(self, name: str) -> pathlib.Path:
        return self._directory / name

    def _recorded(self, name: str) -> tuple[int, int] | None:
        try:
            pid, started = self._file(name).read_text().split()
            return int(pid), int(started)
        except (OSError, ValueError):
            return None

    def _members(self, name: str) -> list[int]:
        recorded = self._recorded(name)
        if recorded is None:
            return []
        leader = stat(recorded[0])
        if leader is not None and leader.started != recorded[1]:
            return []
        found = (stat(pid) for pid in pids())
        return [item.pid for item in found if item is not None
                and item.session == recorded[0]
                and item.started >= recorded[1]]


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)

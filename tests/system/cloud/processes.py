# SPDX-License-Identifier: Apache-2.0

"""Start programs, find them again by their pid files, and stop only these.

Each program runs in a session of its own, so that its children are found even
after it has ended. ``HPCVIRT_CLOUD_RUN`` in its environment identifies
children that leave the session. A pid file also has the start time of the
program, so that another program with the same pid is not stopped.
"""

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import waiting
from tests.system.cloud import settings as cloud_settings

MARK = 'HPCVIRT_CLOUD_RUN'


@dataclasses.dataclass(frozen=True)
class Stat:
    """Fields of /proc/PID/stat.

    :ivar started: clock ticks from boot to the start of the process
    """

    pid: int
    state: str
    session: int
    started: int


def stat(pid: int) -> Stat | None:
    """Read the status of a process; None if it has ended or is a zombie."""
    try:
        text = pathlib.Path(f'/proc/{pid}/stat').read_text(errors='replace')
    except OSError:
        return None
    # The name in parentheses may contain any byte.
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
        """Return the process id of a program, None if it does not run."""
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
        """Terminate programs; kill those that do not end in time."""
        chosen = list(names)
        for name in chosen:
            pid = self.pid(name)
            if pid is not None:
                _signal(pid, signal.SIGTERM)
        waiting.poll(lambda: any(map(self._members, chosen)),
                     lambda running: not running, patience_s, 0.1)
        for name in chosen:
            self.kill(name)

    def kill(self, name: str) -> None:
        """Kill a program and its children at once."""
        def kill_members() -> list[int]:
            members = self._members(name)
            for pid in members:
                _signal(pid, signal.SIGKILL)
            return members

        waiting.poll(kill_members, lambda members: not members, 5, 0.1)
        self._file(name).unlink(missing_ok=True)

    def sweep(self) -> int:
        """Kill processes of this cloud that have left their sessions.

        :returns: the number of processes killed
        """
        killed = 0
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
                killed += 1
        return killed

    def log_file(self, name: str) -> pathlib.Path:
        """Return the file with a program's output."""
        return self._log / f'{name}.log'

    def tail(self, name: str, lines: int = 15) -> str:
        """Return the last lines of a program's log, without debug messages."""
        try:
            with open(self.log_file(name), 'rb') as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - (1 << 20)))
                text = log.read().decode(errors='replace')
        except OSError:
            return '(no log)'
        messages = [line[:300] for line in text.splitlines()
                    if line.strip() and ' DEBUG ' not in line]
        return '\n'.join(messages[-lines:]) or '(empty log)'

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
        return [process.pid for process in found if process is not None
                and process.session == recorded[0]
                and process.started >= recorded[1]]


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)

# SPDX-License-Identifier: Apache-2.0

"""Find and end processes of this machine, with their descendants.

The environment of a program has a *mark*, a word that its descendants inherit.
A daemon that has left the group and the session of the program is found by it.
A descendant that has cleared its environment is found as long as its parents
live. Only a process that does both is not found.
"""

import contextlib
import dataclasses
import os
import pathlib
import signal
import time
from collections.abc import Iterable
from collections.abc import Iterator

#: The variable with the mark of a program. If that is one of hpcvirt, which
#: starts another program, it has both marks.
MARKS = 'HPCVIRT_CHILD'

#: How long processes may take to disappear after SIGKILL.
KILL_S = 10.0

_PAUSE_S = 0.01


@dataclasses.dataclass(frozen=True, slots=True)
class RunningProcess:
    """A process of this machine, whose id may have another owner later.

    :ivar began: when it was started, in ticks since the boot
    """

    pid: int
    began: int


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessEntry:
    """A line of the table of processes.

    A process whose parent has ended has another parent, such as 1.

    :ivar state: one letter, Z for one that has ended
    """

    process: RunningProcess
    state: str
    parent: int
    group: int
    session: int


def end_processes(mark: str, grace_s: float, *, leader: int | None = None,
                  known: Iterable[RunningProcess] = (),
                  ) -> tuple[RunningProcess, ...]:
    """End the processes that have a mark, and their descendants.

    :param grace_s: how long they have to end by themselves after SIGTERM
    :param leader: a process whose group and session are ended too
    :param known: further processes
    :returns: the processes that could not be ended
    """
    begin = time.monotonic()
    found = frozenset(known)
    sent: set[tuple[RunningProcess, signal.Signals]] = set()
    while True:
        found = find_processes(mark, leader, found)
        spent_s = time.monotonic() - begin
        if not found or spent_s > grace_s + KILL_S:
            return tuple(found)
        number = signal.SIGTERM if spent_s < grace_s else signal.SIGKILL
        fresh = [process for process in found
                 if (process, number) not in sent]
        sent.update((process, number) for process in fresh)
        # A shell whose command is ended first goes on with the next one:
        # the group gets the signal in one step, and parents before children.
        if fresh and leader is not None:
            with contextlib.suppress(OSError):
                os.killpg(leader, number)
        for process in sorted(fresh, key=lambda each: each.began):
            # It has ended meanwhile, or is of another user.
            with contextlib.suppress(OSError):
                if leader is None or os.getpgid(process.pid) != leader:
                    os.kill(process.pid, number)
        time.sleep(_PAUSE_S)


def find_processes(mark: str, leader: int | None,
                   known: frozenset[RunningProcess],
                   ) -> frozenset[RunningProcess]:
    """Find the processes that run, see :func:`end_processes`."""
    table = [entry for entry in read_table() if entry.state not in 'ZX'
             and entry.process.pid != os.getpid()]
    found = set()
    for entry in table:
        if (entry.process in known
                or leader in (entry.process.pid, entry.group, entry.session)
                or mark in _read_marks(entry.process.pid)):
            found.add(entry.process)
    while True:
        parents = {process.pid for process in found}
        children = {entry.process for entry in table
                    if entry.parent in parents}
        if children <= found:
            return frozenset(found)
        found |= children


def read_table() -> Iterator[ProcessEntry]:
    """Read which processes there are (proc_pid_stat(5))."""
    for name in os.listdir('/proc'):
        if name.isdecimal():
            # It has ended meanwhile.
            with contextlib.suppress(OSError):
                yield _read_entry(int(name))


def _read_entry(pid: int) -> ProcessEntry:
    text = pathlib.Path('/proc', str(pid), 'stat').read_text(errors='replace')
    # The name of the program may have spaces and brackets.
    fields = text.rpartition(')')[2].split()
    return ProcessEntry(RunningProcess(pid, int(fields[19])), fields[0],
                        int(fields[1]), int(fields[2]), int(fields[3]))


def _read_marks(pid: int) -> list[str]:
    """Read the marks of a process; none of one of another user."""
    try:
        environment = pathlib.Path('/proc', str(pid), 'environ').read_bytes()
    except OSError:
        return []
    for variable in environment.split(b'\0'):
        name, _, value = variable.partition(b'=')
        if name == MARKS.encode():
            return value.decode(errors='replace').split()
    return []


def name_processes(processes: Iterable[RunningProcess]) -> str:
    """Name processes in a message."""
    return 'process ' + ', '.join(
        str(pid) for pid in sorted(each.pid for each in processes))


def read_own() -> RunningProcess:
    """Read which process this is."""
    return _read_entry(os.getpid()).process

# SPDX-License-Identifier: Apache-2.0

"""Start a program, and end it with all that it has started.

A program runs in a session of its own. To end it means to end this session,
its process group, its descendants, and what else has its mark, see
:mod:`hpcvirt.process_tree`.

No call waits for a program without a limit: neither for one that does not end,
nor for one that prints without end, nor for output that stays open.
"""

import contextlib
import os
import select
import selectors
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from collections.abc import Sequence
from typing import IO

from hpcvirt import exception
from hpcvirt import host_lock
from hpcvirt import process_tree

#: What :class:`Child` takes for a stream: a pipe, or the pipe of the output.
PIPE = subprocess.PIPE
STDOUT = subprocess.STDOUT

#: The most that a program may print, unless the caller says otherwise.
MAX_OUTPUT_BYTES = 64 * 2 ** 20

#: How long the output is read after the end of the program, since a process
#: that it has left behind may keep it open for ever.
LINGER_S = 2.0

_CHUNK = 65536
#: What a pipe that takes anything takes without blocking (pipe(7)).
_RELAY_CHUNK = 4096
#: How often the end of a program is looked for that prints nothing.
_LOOK_S = 0.25
_PAUSE_S = 0.01


class Child:
    """A program that was started.

    :param where: where it runs, for messages, such as ``local``
    :param environment: all variables that it gets, see
        :mod:`hpcvirt.child_environment`
    :param folder: the working directory, None for that of the caller
    :param lock: the lock of the host that it changes
    :raises NotInstalled: if there is no such program
    :raises Unreachable: if it cannot be started
    """

    def __init__(self, argv: Sequence[str], *, where: str,
                 environment: Mapping[str, str],
                 stdin: int | IO[bytes] = subprocess.DEVNULL,
                 stderr: int = subprocess.PIPE, folder: str | None = None,
                 lock: host_lock.HostLock | None = None) -> None:
        self.program = argv[0]
        self._where = where
        self._lock = lock
        self._mark = uuid.uuid4().hex if lock is None else lock.mark
        # A program that itself starts programs is one of them for another.
        marks = [*os.environ.get(process_tree.MARKS, '').split(), self._mark]
        try:
            self.process = subprocess.Popen(
                list(argv), bufsize=0, stdin=stdin, stdout=subprocess.PIPE,
                stderr=stderr, cwd=folder, start_new_session=True,
                env={**environment, process_tree.MARKS: ' '.join(marks)},
                pass_fds=() if lock is None else (lock.descriptor,))
        except FileNotFoundError as exc:
            raise exception.NotInstalled(
                f'{where}: {self.program}: {exc.strerror}') from exc
        except OSError as exc:
            raise exception.Unreachable(
                f'{where}: {self.program}: {exc.strerror}') from exc

    def has_ended(self) -> bool:
        """Whether the program itself has ended; it keeps its id even then."""
        if self.process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG
                         | os.WNOWAIT) is not None

    def close(self) -> int:
        """Wait for the program itself, and return its status."""
        for stream in (self.process.stdin, self.process.stdout,
                       self.process.stderr):
            if stream is not None:
                stream.close()
        return self.process.wait()

    def end(self, grace_s: float = 0.0) -> int:
        """End the program with all that it has started, and wait for that.

        An interrupt meanwhile ends them at once, and is raised afterwards.

        :param grace_s: how long they have to end by themselves after SIGTERM
        :returns: the status of the program
        :raises Unreachable: with the processes that cannot be ended, such as
            those of another user
        """
        interrupt = None
        while True:
            try:
                left = process_tree.end_processes(
                    self._mark, grace_s, leader=self.process.pid)
                break
            except KeyboardInterrupt as exc:
                interrupt, grace_s = exc, 0.0
        if left:
            if self._lock is not None:
                self._lock.keep(left)
            raise exception.Unreachable(
                f'{self._where}: {self.program} was ended, but not what it '
                f'has started: {process_tree.name_processes(left)}')
        status = self.close()
        if interrupt is not None:
            raise interrupt
        return status


def run(argv: Sequence[str], *, where: str, limit_s: float,
        environment: Mapping[str, str], stdin: bytes = b'',
        most_bytes: int = MAX_OUTPUT_BYTES, grace_s: float = 0.0,
        folder: str | None = None, relay: int | None = None,
        leaves_processes: bool = False, lock: host_lock.HostLock | None = None,
        program: str | None = None, end_mark: bytes | None = None,
        ) -> tuple[int, bytes, bytes]:
    """Run a program to its end; see :class:`Child` for the other arguments.

    :param limit_s: how long it may take
    :param most_bytes: the most that it may print
    :param grace_s: how long it has to end by itself if its time is up
    :param relay: a descriptor to which all output goes, instead of being
        returned; what it does not take in time is lost
    :param leaves_processes: whether processes that it has left behind run on;
        otherwise they are ended
    :param program: its name in messages, if it stands for another one
    :param end_mark: what it prints to standard error as its last act; if it
        runs on, because something holds its output, it is ended
    :returns: the exit status, or less than 0 for a signal, and both outputs
    :raises TimedOut: if it does not end in time
    :raises NotInstalled: if there is no such program
    :raises Unreachable: if it prints too much or cannot be started, or if
        something that it has started cannot be ended
    """
    deadline = time.monotonic() + limit_s
    program = program or argv[0]
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        child = Child(
            argv, where=where, environment=environment, stdin=given,
            stderr=subprocess.PIPE if relay is None else subprocess.STDOUT,
            folder=folder, lock=lock)
    try:
        outputs = _Outputs(most_bytes, relay, end_mark)
        if not outputs.read(child, deadline):
            raise exception.TimedOut(
                f'{where}: {program} did not end within {limit_s:g} s')
        if outputs.size > most_bytes:
            raise refuse_output(where, program, most_bytes)
    except BaseException:
        child.end(grace_s)
        raise
    if leaves_processes and child.has_ended():
        status = child.close()
    else:
        status = child.end(grace_s)
    return status, bytes(outputs.stdout), bytes(outputs.stderr)


def refuse_output(where: str, program: str,
                  most_bytes: int) -> exception.Unreachable:
    """Return the error for a program that prints too much."""
    return exception.Unreachable(
        f'{where}: {program} printed more than {most_bytes >> 20} MiB and was '
        'stopped')


class _Outputs:
    """What a program prints.

    :param most_bytes: how much is read, of both together
    :param relay: where it goes instead of being kept
    :param end_mark: what says that the program ends
    :ivar size: how much was read; more than the most if there was more
    """

    def __init__(self, most_bytes: int, relay: int | None,
                 end_mark: bytes | None) -> None:
        self._most_bytes = most_bytes
        self._relay = relay
        self._end_mark = end_mark
        self._searched = 0
        self.stdout, self.stderr = bytearray(), bytearray()
        self.size = 0

    def read(self, child: Child, deadline: float) -> bool:
        """Read until the program ends or has printed too much.

        :returns: False if the time is up before
        """
        ended: float | None = None
        with selectors.DefaultSelector() as selector:
            for stream, data in ((child.process.stdout, self.stdout),
                                 (child.process.stderr, self.stderr)):
                if stream is not None:
                    selector.register(stream, selectors.EVENT_READ, data)
            while self.size <= self._most_bytes:
                now = time.monotonic()
                has_ended = child.has_ended()
                if ended is None and (has_ended or self._says_end()):
                    ended = now
                is_open = bool(selector.get_map())
                if has_ended and not is_open:
                    break
                if ended is not None and now > ended + LINGER_S:
                    break
                if now > deadline:
                    return ended is not None
                if is_open:
                    self._take(selector, min(_LOOK_S, deadline - now))
                else:
                    time.sleep(_PAUSE_S)
        return True

    def _says_end(self) -> bool:
        """Whether the mark of the end is among what was printed."""
        if self._end_mark is None:
            return False
        begin = max(0, self._searched - len(self._end_mark))
        self._searched = len(self.stderr)
        return self.stderr.find(self._end_mark, begin) >= 0

    def _take(self, selector: selectors.BaseSelector, wait_s: float) -> None:
        """Wait for some output, and take it."""
        if self._relay is not None and not select.select(
                [], [self._relay], [], wait_s)[1]:
            return
        for key, _ in selector.select(wait_s):
            chunk = os.read(key.fd, _CHUNK if self._relay is None
                            else _RELAY_CHUNK)
            self.size += len(chunk)
            if not chunk:
                selector.unregister(key.fileobj)
            elif self._relay is None:
                key.data.extend(chunk)
            else:
                # Its reader may have gone.
                with contextlib.suppress(OSError):
                    os.write(self._relay, chunk)

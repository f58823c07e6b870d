# SPDX-License-Identifier: Apache-2.0

"""Lock a host while a program of hpcvirt changes it.

The lock is a file that the program and its descendants have open and locked,
and that names their mark (:mod:`hpcvirt.process_tree`) and the process of
hpcvirt that has started them. If that is killed, they run on, and the next
process that locks the host ends them first. The file goes when nothing runs
any more.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import time
import uuid
from collections.abc import Iterable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import process_tree

#: How long a program that changes a host has to end by itself after SIGTERM.
GRACE_S = 10.0

_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_MAX_BYTES = 65536
_PAUSE_S = 0.01


class HostLock:
    """The lock of a host that a program changes; see :func:`lock`.

    :ivar mark: the mark of the program
    :ivar descriptor: the file, which the program inherits
    """

    def __init__(self, descriptor: int) -> None:
        self.mark = uuid.uuid4().hex
        self.descriptor = descriptor
        self.keep(())

    def keep(self, left: Iterable[process_tree.RunningProcess]) -> None:
        """Write down who has the lock, and what could not be ended."""
        text = json.dumps({
            'machine': os.uname().nodename, 'mark': self.mark,
            'owner': dataclasses.astuple(process_tree.read_own()),
            'left': [dataclasses.astuple(process) for process in left]})
        os.pwrite(self.descriptor, text.encode(), 0)
        os.ftruncate(self.descriptor, len(text))


@dataclasses.dataclass(frozen=True, slots=True)
class _Written:
    """What is in the file.

    :ivar machine: where the process runs
    :ivar owner: the process of hpcvirt
    :ivar left: what it has started and could not end
    """

    machine: str
    mark: str
    owner: process_tree.RunningProcess
    left: tuple[process_tree.RunningProcess, ...]


@contextlib.contextmanager
def lock(path: str, host: str) -> Iterator[HostLock]:
    """Lock a host while a program of the caller changes it.

    :param path: the file, in a folder of the user
    :param host: the name of the host, for messages
    :raises Unreachable: if a process that runs has the lock, or if what one
        that was killed has left cannot be ended
    """
    descriptor = _open_lock(path, host)
    try:
        yield HostLock(descriptor)
    finally:
        os.close(descriptor)
        _remove_lock(path)


def _open_lock(path: str, host: str) -> int:
    """Open and lock the file, after what an earlier process has left ended."""
    deadline = time.monotonic() + GRACE_S + process_tree.KILL_S
    while True:
        try:
            descriptor = os.open(path, _FLAGS | os.O_CREAT, 0o600)
        except OSError as exc:
            raise exception.Unreachable(f'{path}: {exc.strerror}') from exc
        with contextlib.ExitStack() as refused:
            refused.callback(os.close, descriptor)
            is_free = _try_lock(descriptor)
            left = _end_left(path, descriptor, host, is_free)
            # Another process may just have removed the file.
            with contextlib.suppress(FileNotFoundError):
                if is_free and not left and os.path.samestat(
                        os.stat(path), os.fstat(descriptor)):
                    refused.pop_all()
                    return descriptor
            if left or time.monotonic() > deadline:
                what = process_tree.name_processes(left) if left else path
                raise exception.Unreachable(
                    f'{host} may still be changed by what an earlier run has '
                    f'started: {what}')
        time.sleep(_PAUSE_S)


def _end_left(path: str, descriptor: int, host: str,
              is_free: bool) -> tuple[process_tree.RunningProcess, ...]:
    """End what runs of a process that had the lock and was killed.

    :param is_free: whether no process has the file locked any more
    :returns: what could not be ended
    :raises Unreachable: if the process that has the lock runs, or if it was
        one of another machine
    """
    written = _read_lock(descriptor)
    if written is None:
        return ()
    pid = written.owner.pid
    if written.machine != os.uname().nodename:
        raise exception.Unreachable(
            f'{host} is changed by process {pid} on {written.machine}; if '
            'that was killed and nothing that it has started runs there, '
            f'remove {path}')
    running = {entry.process for entry in process_tree.read_table()}
    if not is_free and written.owner in running and pid != os.getpid():
        raise exception.Unreachable(f'{host} is being changed by process '
                                    f'{pid}')
    return process_tree.end_processes(
        written.mark, GRACE_S, known=[*written.left, *_find_holders(path)])


def _read_lock(descriptor: int) -> _Written | None:
    """Read what :meth:`HostLock.keep` has written; None if it has not."""
    try:
        found = json.loads(os.pread(descriptor, _MAX_BYTES, 0))
        left = [process_tree.RunningProcess(*map(int, each))
                for each in found['left']]
        return _Written(
            str(found['machine']), str(found['mark']),
            process_tree.RunningProcess(*map(int, found['owner'])),
            tuple(left))
    except (KeyError, TypeError, ValueError):
        return None


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _find_holders(path: str) -> Iterator[process_tree.RunningProcess]:
    """Find the processes that have the file open and locked."""
    place = os.path.realpath(path)
    for entry in process_tree.read_table():
        process = pathlib.Path('/proc', str(entry.process.pid))
        # It has ended meanwhile, or is of another user.
        with contextlib.suppress(OSError):
            for link in (process / 'fd').iterdir():
                if (os.readlink(link) == place and 'FLOCK' in (
                        process / 'fdinfo' / link.name).read_text()):
                    yield entry.process


def _remove_lock(path: str) -> None:
    """Remove the file, unless something still runs that had the lock."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(path, _FLAGS)
        try:
            written = _read_lock(descriptor)
            if not _try_lock(descriptor) or written is None:
                return
            if not process_tree.find_processes(written.mark, None,
                                               frozenset(written.left)):
                os.unlink(path)
        finally:
            os.close(descriptor)

# SPDX-License-Identifier: Apache-2.0

"""Save what a process has done so far, and keep other processes away.

A document is a frozen dataclass with a ``schema_version``. It is replaced in
one step, so that the next process finds this content or the former one.

The lock of a document, or of anything else that has a path, is a file beside
it. It names its process, and ends with that, even if it is killed.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import stat
import time
from collections.abc import Iterator
from typing import Any
from typing import TypeVar

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file
from hpcvirt import serialization

T = TypeVar('T')

#: The state of 10,000 hosts is smaller.
_MAX_BYTES = 1 << 28
_MAX_LOCK_BYTES = 4096
#: How long a lock may be taken by somebody who only asks whose it is, or by
#: a child of a process that was killed.
_ASKING_S = 1.0
_PAUSE_S = 0.01

_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def save(path: str, document: object) -> None:
    """Save a document, or other plain values.

    :raises InvalidInput: if that fails; what was there before is kept
    """
    text = json.dumps(serialization.dump(document), allow_nan=False)
    try:
        output_file.replace(pathlib.Path(path), f'{text}\n'.encode())
    except OSError as exc:
        raise exception.InvalidInput(
            path, f'cannot be written ({exc.strerror or exc})') from exc


def find(kind: type[T], version: int, path: str) -> T | None:
    """Read a document; return None if there is none.

    :raises InvalidInput: if the file is no such document
    """
    plain = find_plain(path)
    if plain is None:
        return None
    where = input_file.name(path)
    serialization.require_version(plain, version, where)
    return serialization.load(kind, plain, where)


def find_plain(path: str) -> Any:
    """Read plain values that :func:`save` wrote; return None without a file.

    :raises InvalidInput: if the file is not JSON
    """
    content = input_file.find_content(path, _MAX_BYTES)
    if content is None:
        return None
    return serialization.json_value(content, input_file.name(path))


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """A process that has a lock.

    :ivar host: name of the machine that it runs on
    """

    pid: int
    host: str


@contextlib.contextmanager
def lock(path: str, what: str) -> Iterator[str]:
    """Lock a path.

    No link to the lock is followed, and no other user may own it, because the
    owner could lock or exchange it.

    :param path: need not exist, but its folder must
    :param what: what another process does if it has the lock, for the error:
        ``the result is being measured``
    :returns: the path without links
    :raises InvalidInput: if the lock cannot be written or is of another user
    :raises Unreachable: if another process has it
    """
    real = os.path.realpath(path)
    name = f'{real}.lock'
    handle = _take(name, what)
    try:
        _write_process(handle, name)
        yield real
    finally:
        # Those who opened the file before find that it is gone.
        with contextlib.suppress(OSError):
            os.unlink(name)
        os.close(handle)


def find_process(path: str) -> Process | None:
    """Return the process that has the lock of a path; None if none has it.

    A child that a killed process had not yet started has the lock until its
    program runs. So one that has ended is looked at again for a moment; it is
    returned after that, because it may live where this process cannot see it,
    such as in another container.
    """
    deadline = time.monotonic() + _ASKING_S
    while True:
        found = _read_process(path)
        if (found is None or not _has_ended(found)
                or time.monotonic() > deadline):
            return found
        time.sleep(_PAUSE_S)


def _has_ended(process: Process) -> bool:
    if process.host != os.uname().nodename:
        return False
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _read_process(path: str) -> Process | None:
    try:
        handle = os.open(f'{os.path.realpath(path)}.lock',
                         os.O_RDONLY | _FLAGS)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    with os.fdopen(handle, 'rb') as stream:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            try:
                found = json.loads(stream.read(_MAX_LOCK_BYTES))
                return Process(int(found['pid']), str(found['host']))
            except (ValueError, TypeError, KeyError):
                # It is just being written.
                return None
    return None


def _take(name: str, what: str) -> int:
    """Open and lock a file, and return its descriptor."""
    deadline = time.monotonic() + _ASKING_S
    while True:
        handle = _open(name)
        with contextlib.ExitStack() as refused:
            refused.callback(os.close, handle)
            is_free = True
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                is_free = False
            # Another process may just have removed the file.
            with contextlib.suppress(FileNotFoundError):
                if is_free and os.path.samestat(os.lstat(name),
                                                os.fstat(handle)):
                    refused.pop_all()
                    return handle
        owner = find_process(name.removesuffix('.lock'))
        if owner is not None or time.monotonic() > deadline:
            by = f' by process {owner.pid} on {owner.host}' if owner else ''
            raise exception.Unreachable(what + by)
        time.sleep(_PAUSE_S)


def _open(name: str) -> int:
    try:
        handle = os.open(name, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
    except OSError as exc:
        raise exception.InvalidInput(
            name, f'cannot be written ({exc.strerror or exc})') from exc
    status = os.fstat(handle)
    owners = os.geteuid(), os.stat(os.path.dirname(name)).st_uid
    # A file with a second name may be one that must not be written.
    if (not stat.S_ISREG(status.st_mode) or status.st_uid not in owners
            or status.st_nlink > 1):
        os.close(handle)
        raise exception.InvalidInput(
            name, 'is not a file of this user, or of the owner of its folder')
    return handle


def _write_process(handle: int, name: str) -> None:
    text = json.dumps({'pid': os.getpid(), 'host': os.uname().nodename})
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)
    except OSError as exc:
        raise exception.InvalidInput(
            name, f'cannot be written ({exc.strerror or exc})') from exc

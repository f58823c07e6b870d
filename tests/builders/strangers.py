# SPDX-License-Identifier: Apache-2.0

"""Another user of the machine, who attacks what root does."""

import contextlib
import ctypes
import os
import pathlib
import signal
from collections.abc import Callable
from collections.abc import Iterator

#: Any user but the one that runs the tests.
SOMEBODY = 65534

_LIBC = ctypes.CDLL(None)
_EXCHANGE = 2
_HERE = -100


def become_somebody() -> None:
    """Give up the rights of root for good."""
    os.setgroups([])
    os.setgid(SOMEBODY)
    os.setuid(SOMEBODY)


@contextlib.contextmanager
def acting(act: Callable[[], None]) -> Iterator[int]:
    """Let somebody do something again and again; yield his process."""
    parent = os.getpid()
    child = os.fork()
    if not child:
        try:
            become_somebody()
            while os.getppid() == parent:
                act()
        finally:
            os._exit(0)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def exchange(one: pathlib.Path, other: pathlib.Path) -> None:
    """Exchange two names in one step, if both are there."""
    _LIBC.renameat2(_HERE, bytes(one), _HERE, bytes(other), _EXCHANGE)

# SPDX-License-Identifier: Apache-2.0

"""The interface to a place, which is a machine that runs programs.

A place runs an argument list and passes bytes to its standard input. It is
this machine (:mod:`hpcvirt.bench.execute.local`), a machine behind ssh
(:mod:`hpcvirt.bench.execute.ssh`), or a guest that is reached through another
guest. Everything else is built on that operation, such as detached jobs
(:mod:`hpcvirt.bench.execute.job`).
"""

import dataclasses
from collections.abc import Sequence
from collections.abc import Sized
from typing import Protocol

from hpcvirt import child_process
from hpcvirt import exception
from hpcvirt import waiting

#: Time limit of a short command; a healthy machine never needs it.
SHORT_S = 60.0

#: Time to wait for a machine: a guest may reboot, a network be repaired.
PATIENCE_S = 300.0
PAUSE_S = 3.0

#: Programs on a machine that somebody else controls must not fill the memory
#: of this one.
MAX_OUTPUT_BYTES = 256 * 2 ** 20


@dataclasses.dataclass(frozen=True, slots=True)
class Completed:
    """A program that ended.

    :ivar status: exit status; a negative number is a signal
    """

    status: int
    stdout: bytes
    stderr: bytes


class Executor(Protocol):
    """A place where programs run."""

    @property
    def name(self) -> str:
        """The name of the place in reports: ``local``, ``ssh://n17``."""

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = SHORT_S) -> Completed:
        """Run a program to its end.

        :raises ConnectionLost: if the place does not answer
        :raises TimedOut: if the program does not end in time
        :raises Unreachable: if it prints more than :data:`MAX_OUTPUT_BYTES`;
            it is stopped
        :raises NotInstalled: if there is no such program; over ssh the status
            is 127 instead
        """

    def expect_restart(self) -> None:
        """Accept new host keys, because the machine is restarted."""

    def close(self) -> None:
        """Release what the executor holds, such as a connection."""


def check_output(name: str, program: str, stdout: Sized,
                 stderr: Sized) -> None:
    """Check the size of a program's output.

    :raises Unreachable: if it is above :data:`MAX_OUTPUT_BYTES`
    """
    if len(stdout) + len(stderr) > MAX_OUTPUT_BYTES:
        raise child_process.refuse_output(name, program, MAX_OUTPUT_BYTES)


class RetryingExecutor:
    """An executor that repeats a command if the connection is lost.

    It does not repeat a command that does not end in time, or a program that
    is missing, since both would fail again.
    """

    def __init__(self, place: Executor,
                 patience_s: float = PATIENCE_S) -> None:
        self._place = place
        self._patience_s = patience_s

    @property
    def name(self) -> str:
        return self._place.name

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = SHORT_S) -> Completed:
        return waiting.retry(
            lambda: self._place.run(argv, stdin, timeout_s),
            exception.ConnectionLost, self._patience_s, PAUSE_S)

    def expect_restart(self) -> None:
        self._place.expect_restart()

    def close(self) -> None:
        self._place.close()

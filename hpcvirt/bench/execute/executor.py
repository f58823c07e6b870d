# SPDX-License-Identifier: Apache-2.0

"""Where a benchmark runs: the one operation that every place offers.

A benchmark can run wherever an argument list can be run and be given bytes:
this machine (:mod:`hpcvirt.bench.execute.local`), a machine behind ssh
(:mod:`hpcvirt.bench.execute.ssh`), a guest that is reached through another
guest. Everything else, detached jobs above all, is built on that operation
(:mod:`hpcvirt.bench.execute.job`).
"""

import dataclasses
from collections.abc import Sequence
from collections.abc import Sized
from typing import Protocol

from hpcvirt import exception
from hpcvirt import waiting

#: No short command of hpcvirt takes longer on a healthy machine.
SHORT_S = 60.0

#: Long enough for a guest to reboot, or for a network to be repaired.
PATIENCE_S = 300.0
PAUSE_S = 3.0

#: The most bytes that a program may print. Programs on a machine that somebody
#: else controls would otherwise fill the memory of this one.
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
            it is ended then
        :raises NotInstalled: if there is no such program, where no shell
            answers with status 127 instead
        """

    def expect_restart(self) -> None:
        """Know that the machine is started again, and may have new keys."""

    def close(self) -> None:
        """Release what the executor holds, such as a connection."""


def check_output(name: str, program: str, stdout: Sized,
                 stderr: Sized) -> None:
    """Check how much a program has printed.

    :raises Unreachable: if it is too much
    """
    if len(stdout) + len(stderr) > MAX_OUTPUT_BYTES:
        raise exception.Unreachable(
            f'{name}: {program} printed more than {MAX_OUTPUT_BYTES >> 20} '
            'MiB, and was ended')


class RetryingExecutor:
    """Runs commands at another place, again if the connection is lost.

    A command that does not end in time is not repeated, and neither is a
    program that is missing: the next time would be no better.
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

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

"""Where a benchmark runs: the one operation that every place offers.

A benchmark can run wherever an argument list can be run and be given bytes:
this machine (:mod:`hpcvirt.bench.execute.local`), a machine behind ssh
(:mod:`hpcvirt.bench.execute.ssh`), a guest that is reached through another
guest. Everything else, detached jobs above all, is built on that operation
(:mod:`hpcvirt.bench.execute.job`).
"""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

#: No short command of hpcvirt takes longer on a healthy machine.
SHORT_S = 60.0


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
        :raises NotInstalled: if there is no such program, where no shell
            answers with status 127 instead
        """

    def expect_restart(self) -> None:
        """Know that the machine is started again, and may have new keys."""

    def close(self) -> None:
        """Release what the executor holds, such as a connection."""

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

"""A place whose commands are repeated while it does not answer."""

from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.bench.execute import executor

#: Long enough for a guest to reboot, or for a network to be repaired.
PATIENCE_S = 300.0
PAUSE_S = 3.0


class RetryingExecutor:
    """Runs commands at another place, again if the connection is lost.

    A command that does not end in time is not repeated, and neither is a
    program that is missing: the next time would be no better.
    """

    def __init__(self, place: executor.Executor,
                 patience_s: float = PATIENCE_S) -> None:
        self._place = place
        self._patience_s = patience_s

    @property
    def name(self) -> str:
        return self._place.name

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        return waiting.retry(
            lambda: self._place.run(argv, stdin, timeout_s),
            exception.ConnectionLost, self._patience_s, PAUSE_S)

    def expect_restart(self) -> None:
        self._place.expect_restart()

    def close(self) -> None:
        self._place.close()

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

"""Keep the quarantine of a host as its signature wants it.

A cloud that does not answer changes nothing: the state keeps what is wanted
and what was done, and the change is tried again after a pause that doubles
from attempt to attempt. What was begun is completed then, because every step
may be repeated.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Protocol

from hpcvirt import exception
from hpcvirt.health import quarantine
from hpcvirt.health import signature

#: The longest pause between two attempts.
LONGEST_PAUSE_S = 900.0

#: What the metadata of the aggregate have room for.
_MOST_CHARACTERS = 150


class Cloud(Protocol):
    """The quarantine of a cloud."""

    def hold(self, host: str, hold: quarantine.Hold) -> None: ...

    def release(self, host: str, holder: str) -> None: ...


@dataclasses.dataclass
class Keeper:
    """Puts one host in quarantine, and releases it.

    :ivar connect: makes a client of the cloud, for each change anew
    :ivar by: the program and its machine
    :ivar pause_s: after the first attempt that failed
    :ivar failures: attempts that have failed so far
    """

    host: str
    connect: Callable[[], Cloud]
    by: str
    pause_s: float
    clock: Callable[[], float] = time.monotonic
    failures: int = 0
    _in_succession: int = 0
    _due: float = 0.0

    def settle(self, state: signature.State, since: str,
               ) -> tuple[signature.State, str | None]:
        """Change the cloud if it is not as wanted, and it is time to try.

        :param since: the time of the decision
        :returns: the new state, and what was done or why not; None if
            nothing was tried
        """
        wanted = state.wanted
        if wanted is None or wanted is state.held:
            self._in_succession = 0
            return state, None
        if self._in_succession and self.clock() < self._due:
            return state, None
        try:
            if wanted:
                self.connect().hold(self.host, quarantine.Hold(
                    quarantine.WATCH, _cut(state.reason), since, self.by))
            else:
                self.connect().release(self.host, quarantine.WATCH)
        except exception.HpcvirtError as exc:
            self.failures += 1
            pause_s = min(self.pause_s * 2 ** self._in_succession,
                          LONGEST_PAUSE_S)
            self._in_succession = min(self._in_succession + 1, 20)
            self._due = self.clock() + pause_s
            return state, (f'{_attempt(wanted)} failed, next attempt in '
                           f'{pause_s:.0f} s: {exc}')
        self._in_succession = 0
        return (dataclasses.replace(state, held=wanted),
                f'{_attempt(wanted)} is done')


def _attempt(wanted: bool) -> str:
    return 'quarantine' if wanted else 'release from quarantine'


def _cut(reason: str) -> str:
    return (reason if len(reason) <= _MOST_CHARACTERS
            else reason[:_MOST_CHARACTERS - 3] + '...')

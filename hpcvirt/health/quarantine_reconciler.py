# SPDX-License-Identifier: Apache-2.0

"""Keep a host in quarantine as long as its signature requires it.

If the cloud does not answer, the state keeps both the change that is wanted
and the steps that were done. The change is tried again after a pause, which
doubles from attempt to attempt. It can be completed then, because every step
can be repeated.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Protocol

from hpcvirt import exception
from hpcvirt.health import signature
from hpcvirt.model import quarantine

#: The longest pause between two attempts.
LONGEST_PAUSE_S = 900.0

#: The longest text in the metadata of the aggregate.
_MAX_CHARACTERS = 150


class QuarantineClient(Protocol):
    """The quarantine of a cloud."""

    def hold(self, host: str, hold: quarantine.Hold) -> None: ...

    def release(self, host: str, holder: str) -> None: ...


@dataclasses.dataclass
class QuarantineReconciler:
    """Puts one host in quarantine, and releases it.

    :ivar connect: makes a client of the cloud, for each change anew
    :ivar by: the program and its machine
    :ivar pause_s: after the first attempt that failed
    :ivar failures: attempts that have failed so far
    """

    host: str
    connect: Callable[[], QuarantineClient]
    by: str
    pause_s: float
    clock: Callable[[], float] = time.monotonic
    failures: int = 0
    _in_succession: int = 0
    _due: float = 0.0

    def settle(self, state: signature.HostHealth, since: str,
               ) -> tuple[signature.HostHealth, str | None]:
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
    return (reason if len(reason) <= _MAX_CHARACTERS
            else reason[:_MAX_CHARACTERS - 3] + '...')

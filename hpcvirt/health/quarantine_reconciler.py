# SPDX-License-Identifier: Apache-2.0

"""Put hosts in quarantine, and release them, until the cloud has done so.

A change that failed is tried again after a pause, which doubles from attempt
to attempt. It can be completed then, because every step can be repeated.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Protocol

from hpcvirt import exception
from hpcvirt.model import quarantine

#: The longest pause between two attempts.
LONGEST_PAUSE_S = 900.0


class QuarantineClient(Protocol):
    """The quarantine of a cloud."""

    def hold(self, host: str, hold: quarantine.Hold) -> None: ...

    def release(self, host: str, holder: str) -> None: ...


@dataclasses.dataclass
class QuarantineReconciler:
    """Puts hosts in quarantine, and releases them.

    :ivar connect: makes a client of the cloud, for each change anew
    :ivar by: the program and its machine
    :ivar pause_s: after the first attempt that failed
    """

    connect: Callable[[], QuarantineClient]
    by: str
    pause_s: float
    clock: Callable[[], float] = time.monotonic
    #: The attempts for each host that failed, and when the next one is due.
    _failures: dict[str, tuple[int, float]] = dataclasses.field(
        default_factory=dict)

    def settle(self, host: str, reason: str, since: str) -> tuple[bool, str]:
        """Change the quarantine of a host, if it is time to try.

        :param reason: why it is put there; empty to release it
        :param since: the time of the decision
        :returns: whether that is done, and what was done or why not; empty
            if nothing was tried
        """
        what = 'quarantine' if reason else 'release from quarantine'
        failures, due = self._failures.get(host, (0, self.clock()))
        if self.clock() < due:
            return False, ''
        try:
            if reason:
                # The metadata of the aggregate cut a reason that is long.
                self.connect().hold(host, quarantine.Hold(
                    quarantine.WATCH, reason, since, self.by))
            else:
                self.connect().release(host, quarantine.WATCH)
        except exception.HpcvirtError as exc:
            pause_s = min(self.pause_s * 2 ** failures, LONGEST_PAUSE_S)
            self._failures[host] = (min(failures + 1, 20),
                                    self.clock() + pause_s)
            return False, (f'{what} failed, next attempt in {pause_s:.0f} s: '
                           f'{exc}')
        self._failures.pop(host, None)
        return True, f'{what} is done'

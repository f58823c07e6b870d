# SPDX-License-Identifier: Apache-2.0

"""Threads of pools that wait for work without looking whether they end.

The base of Nova's tests lets each idle thread look a hundred times a second,
so that none has to be waited for when a service stops. An embedded Nova has
dozens of them, which take a tenth of its time.
"""

import queue
from typing import Any

import fixtures
from futurist import _thread

#: How long a thread waits that nobody wakes.
IDLE_S = 1.0


class WokenWorkers(fixtures.Fixture):
    """Wake the threads that shall end, and no others."""

    def _setUp(self) -> None:  # noqa: N802
        for name, method in (('_wait_for_work', _wait_for_work),
                             ('stop', _stop)):
            self.useFixture(fixtures.MonkeyPatch(
                f'futurist._thread.ThreadWorker.{name}', method))


class _Nothing:
    """Work that only wakes a thread."""

    def run(self) -> None:
        pass


def _wait_for_work(worker: Any) -> Any:
    worker.idle = True
    while True:
        try:
            work = worker.work_queue.get(True, IDLE_S)
        except queue.Empty:
            if worker._is_dying():
                raise _thread._Stopping from None
        else:
            worker.idle = False
            return work


def _stop(worker: Any) -> None:
    worker.should_stop = True
    worker.work_queue.put(_Nothing())

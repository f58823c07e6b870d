# SPDX-License-Identifier: Apache-2.0

"""Run the parts in several processes, and print their progress.

One part more than there are cores runs in parallel, because parts also wait.
A process runs several parts one after the other, because importing Nova takes
seconds.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from demo import fleet

#: The most parts that run in parallel.
MAX_PARALLEL = 6
#: The most seconds without a line of progress.
PROGRESS_S = 5


class PartFailed(Exception):
    """A part ended without a result."""


class Parts:
    """The parts of one demonstration.

    :param seed: seed of the requests
    :param log: directory of the logs
    """

    def __init__(self, seed: int, log: pathlib.Path) -> None:
        self._seed = seed
        self._log = log
        self._start = time.monotonic()
        self._printing = threading.Lock()
        self._thread = threading.local()
        self._workers: list[subprocess.Popen[str]] = []

    def run(self, names: Sequence[str]) -> dict[str, Any]:
        """Run parts.

        :param names: see :mod:`demo.worker`; the longest parts first
        :returns: name to result
        :raises PartFailed: if a part has no result; the others are stopped
        """
        with concurrent.futures.ThreadPoolExecutor(at_a_time()) as pool:
            futures = {name: pool.submit(self._part, name) for name in names}
            try:
                self._wait(futures)
                return {name: future.result()
                        for name, future in futures.items() if future.done()}
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in self._workers:
                    worker.terminate()

    def _wait(self, futures: Mapping[str, concurrent.futures.Future[Any]],
              ) -> None:
        """Wait until all parts have ended or one has failed.

        A line each few seconds says which parts still run.
        """
        pending = set(futures.values())
        while pending:
            ended, pending = concurrent.futures.wait(
                pending, PROGRESS_S, concurrent.futures.FIRST_COMPLETED)
            if any(future.exception() for future in ended):
                return
            running = [name for name, future in futures.items()
                       if future.running()]
            if not ended and running:
                self._say('running', ', '.join(running))

    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._start

    def _part(self, name: str) -> Any:
        self._say(name, 'started')
        worker = self._worker()
        print(name, file=worker.stdin, flush=True)
        why = 'it ended early'
        for line in worker.stdout or ():
            message = json.loads(line)
            if 'say' in message:
                self._say(name, message['say'])
            elif 'result' in message:
                self._say(name, 'done')
                return message['result']
            why = message.get('broken', why)
        raise PartFailed(f'{name}: {why}; see {self._log / log_name(name)}')

    def _worker(self) -> subprocess.Popen[str]:
        """Return the process of this thread; start it for the first part."""
        if not hasattr(self._thread, 'worker'):
            self._thread.worker = subprocess.Popen(
                (sys.executable, '-W', 'ignore', '-m', 'demo.worker',
                 str(self._seed), str(self._log)),
                cwd=fleet.ROOT, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True)
            self._workers.append(self._thread.worker)
        return self._thread.worker

    def _say(self, name: str, what: str) -> None:
        with self._printing:
            print(f'  {self.seconds():4.0f} s  {name:14}  {what}', flush=True)


def log_name(part: str) -> str:
    """Return the file name of a part's log."""
    return f'{part.replace(":", "-")}.log'


def at_a_time() -> int:
    """Return the number of parts that run in parallel."""
    return min(len(os.sched_getaffinity(0)) + 1, MAX_PARALLEL)

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

"""Call functions that share nothing in processes of their own.

The results do not depend on how many processes there are.
"""

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from multiprocessing import connection
from multiprocessing import context as contexts
from typing import Any

from hpcvirt import exception

#: Reports how much of a task is done, and how much there is to do.
Report = Callable[[int, int], None]
#: A piece of work.
Task = Callable[[Report], Any]
#: Shows which part of the task with this number is done, from 0 to 1.
Show = Callable[[int, float], None]

#: A report is passed on if so much more is done.
_STEP = 0.005


def run(tasks: Sequence[Task], show: Show) -> list[Any]:
    """Run tasks, and return their results in the order of the tasks.

    :raises Unreachable: if a process ended without a result
    :raises Exception: what the first task that failed raised
    """
    most = len(os.sched_getaffinity(0))
    # A forked process has its task; nothing needs to be pickled.
    context = multiprocessing.get_context('fork')
    results: list[Any] = [None] * len(tasks)
    waiting = list(range(len(tasks)))
    running: dict[connection.Connection,
                  tuple[int, contexts.ForkProcess]] = {}
    with _ended(running):
        while waiting or running:
            while waiting and len(running) < most:
                place = waiting.pop(0)
                ours, theirs = context.Pipe(duplex=False)
                child = context.Process(
                    target=_work, args=(tasks[place], theirs), daemon=True)
                with _uninterrupted():
                    child.start()
                    running[ours] = place, child
                theirs.close()
            for ready in connection.wait(list(running)):
                if not isinstance(ready, connection.Connection):
                    continue
                place, child = running[ready]
                done, result = _received(ready)
                show(place, done)
                if isinstance(result, Exception):
                    raise result
                if done == 1:
                    results[place] = result
                    child.join()
                    ready.close()
                    del running[ready]
    return results


def _work(task: Task, out: connection.Connection) -> None:
    last = 0.0
    first = os.getppid()

    def report(done: int, total: int) -> None:
        nonlocal last
        if os.getppid() != first:
            # The first process was killed, and nobody waits for the result.
            raise SystemExit(1)
        if last + _STEP <= done / total < 1:
            last = done / total
            out.send((last, None))

    with contextlib.suppress(BrokenPipeError):
        try:
            result = task(report)
        except Exception as exc:  # noqa: BLE001 - the first process raises it
            result = exc
        out.send((1.0, result))


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let an interrupt wait while a process is forked.

    What Python calls after a fork drops exceptions. The new process is never
    interrupted: the first one ends it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _received(ready: connection.Connection) -> tuple[float, Any]:
    try:
        done, result = ready.recv()
    except EOFError:
        raise exception.Unreachable(
            'a process of the simulation was killed; the machine may have '
            'too little memory') from None
    return done, result


@contextlib.contextmanager
def _ended(running: Mapping[connection.Connection,
                            tuple[int, contexts.ForkProcess]],
           ) -> Iterator[None]:
    """Leave no process behind, whatever happens."""
    try:
        yield
    finally:
        for _, child in running.values():
            child.terminate()
        for _, child in running.values():
            child.join()

# SPDX-License-Identifier: Apache-2.0

"""Run the replays of scenarios in processes.

The results do not depend on the number of processes.
"""

import functools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent import futures
from concurrent.futures import process
from typing import Any

from hpcvirt import exception
from hpcvirt.simulate import outcome as outcomes
from hpcvirt.simulate import replay
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import strategy as strategies
from hpcvirt.simulate import totals

#: Reports the progress of a task: finished steps, all steps.
Report = Callable[[int, int], None]
#: A task, which reports its progress and returns its result.
Task = Callable[[Report], Any]

#: Seconds between two looks at the progress, and at the first process.
_PAUSE = 0.1

#: In a process of the pool: the tasks, and the fraction of each that is done.
_inherited: list[tuple[Sequence[Task], Any]] = []


def run(tasks: Sequence[Task], show: Callable[[float], None]) -> list[Any]:
    """Run tasks, and return their results in the order of the tasks.

    :param show: called now and then with the fraction that is done
    :raises Unreachable: if a process ended without a result
    :raises Exception: the exception of the first task that failed
    """
    # A forked process inherits the tasks, so that they need not be pickled.
    context = multiprocessing.get_context('fork')
    # The last number tells the processes to end.
    parts = context.RawArray('d', len(tasks) + 1)
    most = max(1, min(len(tasks), len(os.sched_getaffinity(0))))
    with futures.ProcessPoolExecutor(
            most, context, _begin, (tasks, parts, os.getpid())) as pool:
        try:
            # Python's callbacks after a fork drop exceptions, so that no
            # interrupt must come then; the new processes get none at all.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            found = [pool.submit(_work, place) for place in range(len(tasks))]
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            while futures.wait(found, _PAUSE,
                               futures.FIRST_EXCEPTION).not_done:
                show(sum(parts) / len(tasks))
                for each in found:
                    if each.done():
                        each.result()
            return [each.result() for each in found]
        except process.BrokenProcessPool:
            raise exception.Unreachable(
                'a process of the simulation was killed; the machine may not '
                'have enough memory') from None
        finally:
            parts[len(tasks)] = 1


def _begin(tasks: Sequence[Task], parts: Any, first: int) -> None:
    """Begin a process of the pool, which ends when it is no longer needed."""
    def watch() -> None:
        while os.getppid() == first and not parts[len(tasks)]:
            time.sleep(_PAUSE)
        os._exit(1)

    _inherited[:] = [(tasks, parts)]
    threading.Thread(target=watch, daemon=True).start()


def _work(place: int) -> Any:
    ((tasks, parts),) = _inherited

    def report(done: int, total: int) -> None:
        parts[place] = done / total

    result = tasks[place](report)
    parts[place] = 1
    return result


#: The choice, the strategy, and the number of the requests of a replay.
Key = tuple[str, str, int]


def list_tasks(choices: Mapping[str, scenarios.Scenario],
               compared: Sequence[strategies.Strategy]) -> dict[Key, Task]:
    """List the replays of all choices with all strategies."""
    tasks: dict[Key, Task] = {}
    for choice, scenario in choices.items():
        fleet = tuple(host.state for host in scenario.fleet.hosts)
        for strategy in compared:
            for number, requests in enumerate(scenario.requests):
                tasks[choice, strategy.name, number] = functools.partial(
                    replay.replay, strategy, fleet, requests)
    return tasks


def gather(choices: Mapping[str, scenarios.Scenario], windows: int,
           found: Mapping[Key, outcomes.ReplayOutcome],
           ) -> list[scenarios.ScenarioResult]:
    """Put the outcomes of all replays in their places."""
    replays: dict[tuple[str, str], list[totals.Replay]] = {}
    for (choice, strategy, number), outcome in found.items():
        replays.setdefault((choice, strategy), []).append(totals.Replay(
            choices[choice].requests[number], outcome))
    results = []
    for (choice, strategy), own in replays.items():
        name = ': '.join(filter(None, (choice, strategy)))
        # If there is only one strategy for all fleets, it is not named.
        if choice and len(replays) == len(choices):
            name = choice
        results.append(scenarios.ScenarioResult(
            name, choice, strategy, choices[choice], windows, tuple(own)))
    return results

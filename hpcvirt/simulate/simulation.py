# SPDX-License-Identifier: Apache-2.0

"""Run the replays of scenarios: in processes, and with more hosts.

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
from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import outcome as outcomes
from hpcvirt.simulate import replay
from hpcvirt.simulate import requests as request_model
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


#: A function that replays requests over a fleet.
Engine = Callable[
    [Sequence[supplies.Supply], request_model.Requests, Report],
    outcomes.ReplayOutcome]
#: The choice, the strategy, and the number of the requests of a replay.
Key = tuple[str, str, int]


def list_engines(compared: Sequence[strategies.Strategy],
                 ) -> dict[str, Engine]:
    """Return the engine of each strategy by its name."""
    return {each.name: functools.partial(replay.replay, each)
            for each in compared}


def list_tasks(choices: Mapping[str, scenarios.Scenario],
               engines: Mapping[str, Engine]) -> dict[Key, Task]:
    """List the replays of all choices with all strategies."""
    return {
        (choice, name, number): functools.partial(
            engine, tuple(host.state.supply for host in scenario.fleet.hosts),
            requests)
        for choice, scenario in choices.items()
        for name, engine in engines.items()
        for number, requests in enumerate(scenario.requests)}


def gather(choices: Mapping[str, scenarios.Scenario], windows: int,
           found: Mapping[Key, outcomes.ReplayOutcome],
           ) -> list[scenarios.ScenarioResult]:
    """Put the outcomes of all replays in their places."""
    replays: dict[tuple[str, str], list[totals.Replay]] = {}
    for (choice, strategy, number), outcome in found.items():
        replays.setdefault((choice, strategy), []).append(totals.Replay(
            choices[choice].requests[number], outcome))
    # The only strategy of a what-if is not named.
    alone = len(replays) == len(choices)
    return [scenarios.ScenarioResult(
        choice if choice and alone
        else ': '.join(filter(None, (choice, strategy))), choice, strategy,
        choices[choice], windows, tuple(own))
        for (choice, strategy), own in replays.items()]


#: The most hosts that are tried, in multiples of those of the fleet.
_MAX_GROWTH = 32


def search_hosts(scenario: scenarios.Scenario, engine: Engine, name: str,
                 kind: str, percent: float, windows: int,
                 on_progress: Report) -> dict[str, Any]:
    """Search how many hosts of a kind lose less than a part of the work.

    The requests stay the same. Another host changes all placements, so that
    the loss is not strictly monotonic: the number that is found is enough, and
    one less is not.

    :param name: the choice and the strategy
    :returns: ``hosts``, and ``least`` and ``most`` for the ends of the
        interval of the loss, or None; the loss with these hosts; ``summary``
    """
    _, own = scenarios.find_kind(scenario.fleet, kind)

    @functools.cache
    def lose(hosts: int) -> tuple[float, ...]:
        """Return the loss, and the ends of its interval."""
        fleet = scenarios.grow(scenario.fleet, kind, hosts - len(own))
        left = [host.state.supply for host in fleet.hosts]
        loss = totals.difference(totals.shares([
            totals.Replay(each, engine(left, each, on_progress))
            for each in scenario.requests], windows))
        return loss.percent, *(loss.ends or (loss.percent,) * 2)

    def suffices(end: int, hosts: int) -> bool:
        return lose(hosts)[end] < percent

    fewest = (len(own) if scenario.requests[0].residents
              else 0 if len(scenario.fleet.hosts) > len(own) else 1)
    limit = _MAX_GROWTH * len(scenario.fleet.hosts)
    least, hosts, most = (find_fewest(
        functools.partial(suffices, end), fewest, len(own), limit)
        for end in (1, 0, 2))
    lost = lose(limit if hosts is None else hosts)[0]
    text = (f'{hosts} ({least} to {most or "more"}) hosts of the kind {kind} '
            f'lose less than {percent:g} %' if hosts is not None
            else f'even {limit} hosts of the kind {kind} lose {lost:.1f} %')
    return {'name': name, 'kind': kind, 'hosts': hosts, 'least': least,
            'most': most, 'lost_percent': lost,
            'summary': f'{name}: {text} of the core-hours.'}


def find_fewest(suffices: Callable[[int], bool], fewest: int, now: int,
                most: int) -> int | None:
    """Find a number that suffices, where one less does not.

    :param now: the number with which the search begins
    :returns: None if the largest number does not suffice
    """
    low, high = fewest - 1, now
    while not suffices(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high

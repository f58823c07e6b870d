# SPDX-License-Identifier: Apache-2.0

"""Run the replays of scenarios in parallel processes.

The results do not depend on the number of processes.
"""

import contextlib
import dataclasses
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
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import bounds
from hpcvirt.simulate import mapping
from hpcvirt.simulate import outcome as outcomes
from hpcvirt.simulate import replay
from hpcvirt.simulate import report
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import residents
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import strategy as strategies
from hpcvirt.simulate import totals
from hpcvirt.simulate import workload as workloads

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


def make_scenario(name: str, found: Sequence[workloads.Workload],
                  fleet: state.Fleet, load: float | None, *,
                  own: bool = True, vf_share: float = 0.0,
                  others: Sequence[flavor_model.Flavor] | None = None,
                  like: scenarios.Scenario | None = None,
                  in_use: state.Fleet | None = None,
                  warm_up: float = 0.0) -> scenarios.Scenario:
    """Map workloads to the flavors of a fleet.

    :param found: the log, or the workload of each seed of a model
    :param load: requested CPUs / CPUs of the fleet; None to keep the times
    :param own: see :func:`hpcvirt.simulate.mapping.map_jobs`, as for
        ``vf_share`` and ``others``
    :param like: another choice, whose requests have the same times
    :param in_use: the fleet with the instances before the first request
    :param warm_up: the share of the requests that do not count
    :raises InvalidInput: if nothing can be requested
    """
    requested = []
    for seed, workload in enumerate(found):
        requests = mapping.map_jobs(workload, fleet.flavors, own=own,
                                    vf_share=vf_share, seed=seed,
                                    others=others)
        totals.check(requests, workload.name)
        if like is not None:
            requests = request_model.stretch(requests,
                                             like.requests[seed].stretch)
        elif load is not None:
            requests = request_model.scale_to_load(
                requests,
                scenarios.count_all_cpus(fleet, requests.flavors), load)
        requests = dataclasses.replace(
            requests, warm_up=int(warm_up * len(requests.arrivals)))
        requested.append(requests if in_use is None
                         else residents.add(requests, in_use, seed))
    with contextlib.suppress(exception.InvalidInput, ZeroDivisionError):
        load = request_model.load(requested[0], scenarios.count_all_cpus(
            fleet, requested[0].flavors))
    return scenarios.Scenario(name, found[0].notes, fleet, load,
                              tuple(requested))


def list_tasks(choices: Mapping[str, scenarios.Scenario],
               engines: Mapping[str, Engine]) -> dict[Key, Task]:
    """List the replays of all choices with all strategies, and the bounds."""
    return {
        (choice, name, number): functools.partial(
            engine, tuple(host.state.supply for host in scenario.fleet.hosts),
            requests)
        for choice, scenario in choices.items()
        for name, engine in {
            **engines, report.BOUND: bounds.replay_as_one_host}.items()
        for number, requests in enumerate(scenario.requests)}


def gather(choices: Mapping[str, scenarios.Scenario], windows: int,
           found: Mapping[Key, outcomes.ReplayOutcome],
           ) -> dict[str, scenarios.ScenarioResult]:
    """Put the outcomes of all replays in their places."""
    replays: dict[str, dict[str, tuple[totals.Replay, ...]]] = {}
    for (choice, name, number), outcome in found.items():
        own = replays.setdefault(choice, {})
        own[name] = (*own.get(name, ()), totals.Replay(
            choices[choice].requests[number], outcome))
    return {choice: scenarios.ScenarioResult(
        choices[choice], windows, own, own.pop(report.BOUND))
        for choice, own in replays.items()}


def list_engines(compared: Sequence[strategies.Strategy],
                 ) -> dict[str, Engine]:
    """Return the engine of each strategy by its name."""
    return {each.name: functools.partial(_replay, each) for each in compared}


def _replay(strategy: strategies.Strategy, fleet: Sequence[supplies.Supply],
            requests: request_model.Requests,
            on_progress: Report) -> outcomes.ReplayOutcome:
    return replay.replay(fleet, requests, strategy, on_progress)

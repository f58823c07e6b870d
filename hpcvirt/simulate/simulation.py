# SPDX-License-Identifier: Apache-2.0

"""Run the replays of a scenario in parallel, each in its own process.

The results do not depend on the number of processes.
"""

import contextlib
import functools
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
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import state
from hpcvirt.simulate import bounds
from hpcvirt.simulate import mapping
from hpcvirt.simulate import outcome as outcomes
from hpcvirt.simulate import replay
from hpcvirt.simulate import report
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import strategy as strategies
from hpcvirt.simulate import totals
from hpcvirt.simulate import workload as workloads

#: Reports the progress of a task: finished steps, all steps.
Report = Callable[[int, int], None]
#: A task, which reports its progress and returns its result.
Task = Callable[[Report], Any]
#: Shows the progress of a task: its number, and the fraction that is done.
Show = Callable[[int, float], None]

#: Smaller steps of the progress are not sent.
_STEP = 0.005


def run(tasks: Sequence[Task], show: Show) -> list[Any]:
    """Run tasks, and return their results in the order of the tasks.

    :raises Unreachable: if a process ended without a result
    :raises Exception: the exception of the first task that failed
    """
    most = len(os.sched_getaffinity(0))
    # A forked process inherits its task, so that it need not be pickled.
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
            # The first process was killed, so that no result is needed.
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
    """Defer interrupts while a process is forked.

    Python's callbacks after a fork drop exceptions. The new process keeps
    interrupts blocked, since the first process terminates it.
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
            'a process of the simulation was killed; the machine may not '
            'have enough memory') from None
    return done, result


@contextlib.contextmanager
def _ended(running: Mapping[connection.Connection,
                            tuple[int, contexts.ForkProcess]],
           ) -> Iterator[None]:
    """Terminate all processes at the end, even after an error."""
    try:
        yield
    finally:
        for _, child in running.values():
            child.terminate()
        for _, child in running.values():
            child.join()


#: A function that replays requests over a fleet.
Engine = Callable[
    [Sequence[supplies.Supply], request_model.Requests, Report],
    outcomes.ReplayOutcome]
#: Makes a display of the progress of replays with these names.
ShowBars = Callable[[Sequence[str]],
                    contextlib.AbstractContextManager[Show]]


def make_scenario(name: str, found: Sequence[workloads.Workload],
                  fleet: state.Fleet, load: float | None, *,
                  own: bool = True,
                  vf_share: float = 0.0) -> scenarios.Scenario:
    """Map workloads to the flavors of a fleet.

    :param found: the log, or the workload of each seed of a model
    :param load: requested CPUs / CPUs of the fleet; None to keep the times
    :param own: see :func:`hpcvirt.simulate.mapping.map_jobs`
    :param vf_share: see the same function
    :raises InvalidInput: if nothing can be requested
    """
    requested = []
    for seed, workload in enumerate(found):
        requests = mapping.map_jobs(workload, fleet.flavors, own=own,
                                    vf_share=vf_share, seed=seed)
        totals.check(requests, workload.name)
        if load is not None:
            requests = request_model.scale_to_load(
                requests,
                scenarios.count_all_cpus(fleet, requests.flavors), load)
        requested.append(requests)
    return scenarios.Scenario(name, found[0].notes, fleet, load,
                              tuple(requested))


def simulate(scenario: scenarios.Scenario,
             compared: Sequence[strategies.Strategy], windows: int,
             show_bars: ShowBars | None = None,
             others: Mapping[str, Engine] | None = None,
             ) -> scenarios.ScenarioResult:
    """Replay the requests with all strategies, and compute the bound.

    :param others: name to engine of strategies outside this package
    """
    engines: dict[str, Engine] = {
        **{each.name: functools.partial(_replay, each) for each in compared},
        **(others or {}), report.BOUND: bounds.replay_as_one_host}
    fleet = tuple(host.state.supply for host in scenario.fleet.hosts)
    pairs = [(name, requests) for name in engines
             for requests in scenario.requests]
    with (show_bars or _show_nothing)([name for name, _ in pairs]) as show:
        found = run([
            functools.partial(engines[name], fleet, requests)
            for name, requests in pairs], show)
    replays: dict[str, tuple[totals.Replay, ...]] = {}
    for (name, requests), outcome in zip(pairs, found, strict=True):
        replays[name] = (*replays.get(name, ()),
                         totals.Replay(requests, outcome))
    bound = replays.pop(report.BOUND)
    return scenarios.ScenarioResult(scenario, windows, replays, bound)


def _replay(strategy: strategies.Strategy, fleet: Sequence[supplies.Supply],
            requests: request_model.Requests,
            on_progress: Report) -> outcomes.ReplayOutcome:
    return replay.replay(fleet, requests, strategy, on_progress)


@contextlib.contextmanager
def _show_nothing(_names: Sequence[str]) -> Iterator[Show]:
    yield lambda _place, _part: None

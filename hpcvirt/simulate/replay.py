# SPDX-License-Identifier: Apache-2.0

"""Replay requests over a fleet: guests start, and end when their time is up.

Everything happens at the times of the requests. Guests whose time is up by
then have ended. A request is placed at once, all its guests or none, or lost.
"""

import math
import time
from collections.abc import Callable
from collections.abc import Sequence

from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import causes
from hpcvirt.simulate import host_table
from hpcvirt.simulate import moving
from hpcvirt.simulate import outcome
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import sampling
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy as strategies

Fates = tuple[outcome.Cause | None, ...]
#: Places the guests of a request that was refused after all, given the number
#: of its flavor and of its guests; returns nothing if it cannot.
Rescue = Callable[[int, int], list[host_table.Running]]


def replay(fleet: Sequence[supplies.Supply], requests: request_model.Requests,
           strategy: strategies.Strategy,
           on_progress: Callable[[int, int], None] | None = None,
           ) -> outcome.ReplayOutcome:
    """Replay all requests with one strategy.

    :param fleet: the hosts before the first request, in the order in which
        nova-scheduler looks at them
    :param on_progress: is called for each request with the number of those
        that are done, and of all
    """
    start = time.perf_counter()
    table = host_table.HostTable(fleet, causes.flavors(requests.flavors))
    scheduler = schedulers.Scheduler(table, requests.flavors, strategy)
    running = host_table.Population(requests.flavors)
    mover = (moving.Mover(scheduler, running, requests.flavors,
                          strategy.moves)
             if strategy.moves else None)
    fates, samples = run_events(requests, scheduler, running, mover,
                                on_progress)
    return outcome.ReplayOutcome(
        strategy.name, fates, samples, mover.moves if mover else 0,
        time.perf_counter() - start)


def run_events(requests: request_model.Requests,
               scheduler: schedulers.Scheduler,
               running: host_table.Population, rescue: Rescue | None = None,
               on_progress: Callable[[int, int], None] | None = None,
               ) -> tuple[Fates, tuple[outcome.FleetSample, ...]]:
    """Let a scheduler place all requests.

    :param scheduler: one whose table knows the flavors of
        :func:`causes.flavors`
    :param rescue: is asked for a refused request, unless the fleet lacks
        capacity
    """
    why = causes.Causes(scheduler, requests.flavors)
    sampler = sampling.FleetSampler(scheduler, running, requests)
    fates: list[outcome.Cause | None] = []
    for number, arrival in enumerate(requests.arrivals, 1):
        while running.next_end <= arrival.time:
            sampler.before(running.next_end)
            scheduler.remove(running.end_next())
        sampler.before(arrival.time)
        cause = None
        guests = scheduler.place(arrival.flavor, arrival.count)
        if not guests:
            cause = why.of(arrival.flavor, arrival.count)
            if rescue is not None and cause is not outcome.Cause.CAPACITY:
                guests = rescue(arrival.flavor, arrival.count)
        if guests:
            cause = None
            running.start(guests, arrival.time + arrival.duration)
        fates.append(cause)
        scheduler.known.keep_few()
        if on_progress is not None:
            on_progress(number, len(requests.arrivals))
    sampler.before(math.inf)
    return tuple(fates), tuple(sampler.samples)

# SPDX-License-Identifier: Apache-2.0

"""Replay requests over a fleet, whose guests start and end.

At the time of a request, guests whose lives are over are removed first. Then
all guests of the request are placed at once, or the request is lost.
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
#: A function that still places a refused request, given the number of its
#: flavor and of its guests; it returns an empty list if it cannot.
Rescue = Callable[[int, int], list[host_table.Running]]


def replay(fleet: Sequence[supplies.Supply], requests: request_model.Requests,
           strategy: strategies.Strategy,
           on_progress: Callable[[int, int], None] | None = None,
           ) -> outcome.ReplayOutcome:
    """Replay all requests with one strategy.

    :param fleet: the hosts before the first request, in the order of
        nova-scheduler
    :param on_progress: called after each request with the number of finished
        requests and of all requests
    """
    start = time.perf_counter()
    table = host_table.HostTable(fleet, causes.flavors(requests.flavors),
                                 requests.residents)
    scheduler = schedulers.Scheduler(table, requests.flavors, strategy)
    running = host_table.Population(requests.flavors)
    for resident in requests.residents:
        running.start([table.settle(resident)], resident.end)
    mover = (moving.Mover(scheduler, running, requests.flavors,
                          strategy.moves)
             if strategy.moves else None)
    beforehand = (moving.StandingRoom(scheduler, running, requests.flavors,
                                      strategy)
                  if strategy.standing else None)
    fates, samples = run_events(requests, scheduler, running, mover,
                                on_progress, beforehand)
    return outcome.ReplayOutcome(
        strategy.name, fates, samples, sum(
            each.moves for each in (mover, beforehand) if each is not None),
        time.perf_counter() - start)


def run_events(requests: request_model.Requests,
               scheduler: schedulers.Scheduler,
               running: host_table.Population, rescue: Rescue | None = None,
               on_progress: Callable[[int, int], None] | None = None,
               beforehand: moving.StandingRoom | None = None,
               ) -> tuple[Fates, tuple[outcome.FleetSample, ...]]:
    """Place all requests with a scheduler.

    :param scheduler: its table must have the flavors of
        :func:`causes.flavors`
    :param rescue: called for a refused request, unless the fleet lacks
        capacity
    :param beforehand: moves guests before a request is refused
    """
    why = causes.Causes(scheduler, requests.flavors)
    sampler = sampling.FleetSampler(scheduler, running, requests)
    fates: list[outcome.Cause | None] = []
    for number, arrival in enumerate(requests.arrivals, 1):
        while (due := min(running.next_end, beforehand.next_end if beforehand
                          else math.inf)) <= arrival.time:
            sampler.sample_until(due)
            if beforehand and beforehand.next_end == due:
                beforehand.end_move(due)
                continue
            ended = running.end_next()
            scheduler.remove(ended)
            if beforehand and beforehand.moved in ended:
                beforehand.end_move(due)
        sampler.sample_until(arrival.time)
        if arrival.flavor == request_model.NO_FLAVOR:
            fates.append(outcome.Cause.SIZE)
            continue
        cause = None
        guests = scheduler.place(arrival.flavor, arrival.count)
        if not guests:
            cause = why.find(arrival.flavor, arrival.count)
            if rescue is not None and cause is not outcome.Cause.CAPACITY:
                guests = rescue(arrival.flavor, arrival.count)
        if guests:
            cause = None
            running.start(guests, arrival.time + arrival.duration)
        fates.append(cause)
        if beforehand:
            beforehand.observe(arrival)
        scheduler.known.limit_states()
        if on_progress is not None:
            on_progress(number, len(requests.arrivals))
    sampler.sample_until(math.inf)
    return tuple(fates), tuple(sampler.samples)

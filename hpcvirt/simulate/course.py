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

"""The course of a replay: requests come, guests start and end."""

import math
from collections.abc import Callable

from hpcvirt.simulate import causes
from hpcvirt.simulate import host_table
from hpcvirt.simulate import outcome
from hpcvirt.simulate import population
from hpcvirt.simulate import requests as requested
from hpcvirt.simulate import sampling
from hpcvirt.simulate import scheduler as schedulers

Fates = tuple[outcome.Cause | None, ...]
#: Places the guests of a request that was refused after all, given the number
#: of its flavor and of its guests; returns nothing if it cannot.
Rescue = Callable[[int, int], list[host_table.Running]]


def run(requests: requested.Requests, scheduler: schedulers.Scheduler,
        running: population.Population, rescue: Rescue | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        ) -> tuple[Fates, tuple[outcome.Sample, ...]]:
    """Let a scheduler place all requests.

    :param scheduler: one whose table knows the flavors of
        :func:`causes.flavors`
    :param rescue: is asked for a refused request, unless the fleet lacks
        capacity
    """
    why = causes.Causes(scheduler, requests.flavors)
    sampler = sampling.Sampler(scheduler, running, requests)
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

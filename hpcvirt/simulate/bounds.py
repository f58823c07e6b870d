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

"""Bounds: what is lost even if no placement has to last.

Both bounds admit each request that they can place when it comes, as the
strategies do. What was admitted before keeps others out, so that neither is a
strict bound: a strategy that had to refuse a large guest may lose less for
it. The least that can be lost is that of :mod:`hpcvirt.simulate.exact`, which
only small cases have time for.
"""

import heapq
import time
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import causes
from hpcvirt.simulate import course
from hpcvirt.simulate import fleet_sums
from hpcvirt.simulate import host_table
from hpcvirt.simulate import outcome
from hpcvirt.simulate import population
from hpcvirt.simulate import repacking
from hpcvirt.simulate import requests as requested
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy as strategies


def pool(fleet: Sequence[supplies.Supply], requests: requested.Requests,
         on_progress: Callable[[int, int], None] | None = None,
         ) -> outcome.Outcome:
    """Replay requests over one bin that has the sums of the fleet.

    It has CPUs, memory, pages and devices, but neither hosts nor cells, so
    that nothing is ever fragmented.

    :param on_progress: is called for each request with the number of those
        that are done, and of all
    """
    start = time.perf_counter()
    sums = fleet_sums.of(fleet, requests.flavors)
    free = dict(sums.free)
    leaving: list[tuple[float, int, Mapping[Hashable, float]]] = []
    fates: list[outcome.Cause | None] = []
    for order, arrival in enumerate(requests.arrivals):
        while leaving and leaving[0][0] <= arrival.time:
            for resource, amount in heapq.heappop(leaving)[2].items():
                free[resource] += amount
        wanted = {resource: amount * arrival.count for resource, amount
                  in sums.needs[arrival.flavor].items()}
        lacking = next((resource for resource, amount in wanted.items()
                        if free[resource] < amount), None)
        if lacking is None:
            for resource, amount in wanted.items():
                free[resource] -= amount
            heapq.heappush(leaving, (arrival.time + arrival.duration, order,
                                     wanted))
        fates.append(None if lacking is None else sums.cause(lacking))
        if on_progress is not None:
            on_progress(order + 1, len(requests.arrivals))
    return outcome.Outcome('pool', tuple(fates),
                           seconds=time.perf_counter() - start)


def repacked(fleet: Sequence[supplies.Supply], requests: requested.Requests,
             on_progress: Callable[[int, int], None] | None = None,
             ) -> outcome.Outcome:
    """Replay requests where all guests may be packed anew at any time.

    A request that hpcvirt's weighers cannot place is accepted nevertheless if
    it can be placed together with all guests that are running, see
    :mod:`hpcvirt.simulate.repacking`.

    :param on_progress: as for :func:`pool`
    """
    start = time.perf_counter()
    strategy, = strategies.parse('hpcvirt+fullest', 0)
    table = host_table.HostTable(fleet, causes.flavors(requests.flavors))
    scheduler = schedulers.Scheduler(table, requests.flavors, strategy)
    running = population.Population(requests.flavors)
    repacker = repacking.Repacker(fleet, scheduler, running, requests.flavors)
    fates, samples = course.run(requests, scheduler, running, repacker,
                                on_progress)
    return outcome.Outcome('repacking', fates, samples,
                           seconds=time.perf_counter() - start)

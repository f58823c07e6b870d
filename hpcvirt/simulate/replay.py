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

"""Replay requests over a fleet: guests start, and end when their time is up.

Everything happens at the times of the requests. Guests whose time is up by
then have ended. A request is placed at once, all its guests or none, or lost.
"""

import time
from collections.abc import Callable
from collections.abc import Sequence

from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import causes
from hpcvirt.simulate import course
from hpcvirt.simulate import host_table
from hpcvirt.simulate import moving
from hpcvirt.simulate import outcome
from hpcvirt.simulate import population
from hpcvirt.simulate import requests as requested
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy as strategies


def replay(fleet: Sequence[supplies.Supply], requests: requested.Requests,
           strategy: strategies.Strategy,
           on_progress: Callable[[int, int], None] | None = None,
           ) -> outcome.Outcome:
    """Replay all requests with one strategy.

    :param fleet: the hosts before the first request, in the order in which
        nova-scheduler looks at them
    :param on_progress: is called for each request with the number of those
        that are done, and of all
    """
    start = time.perf_counter()
    table = host_table.HostTable(fleet, causes.flavors(requests.flavors))
    scheduler = schedulers.Scheduler(table, requests.flavors, strategy)
    running = population.Population(requests.flavors)
    mover = (moving.Mover(scheduler, running, requests.flavors,
                          strategy.moves)
             if strategy.moves else None)
    fates, samples = course.run(requests, scheduler, running, mover,
                                on_progress)
    return outcome.Outcome(
        strategy.name, fates, samples, mover.moves if mover else 0,
        time.perf_counter() - start)

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

"""Replay requests with the scheduler and the claims of Nova itself.

Nova decides; what its decisions leave of the fleet is kept in the same tables
as with other strategies, so that samples and causes mean the same.
"""

import random
import time
from collections.abc import Callable
from collections.abc import Sequence

import nova.conf

from hpcvirt.fit import placement as placements
from hpcvirt.fit import supply as supplies
from hpcvirt.nova.controller import settings
from hpcvirt.nova.replay import cloud
from hpcvirt.simulate import causes
from hpcvirt.simulate import course
from hpcvirt.simulate import host_table
from hpcvirt.simulate import outcome
from hpcvirt.simulate import population
from hpcvirt.simulate import requests as requested
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy as strategies

_SEED = 1


def replay(fleet: Sequence[supplies.Supply], requests: requested.Requests,
           on_progress: Callable[[int, int], None] | None = None,
           ) -> outcome.Outcome:
    """Replay all requests as nova.conf says.

    :param fleet: see :func:`hpcvirt.simulate.replay.replay`
    :param on_progress: likewise
    :raises InvalidInput: if Nova refuses a flavor, or an option of nova.conf
    """
    start = time.perf_counter()
    state = random.getstate()
    # Nova rolls dice where nova.conf says so.
    random.seed(_SEED)
    try:
        with settings.usable():
            fates, samples = course.run(
                requests, Scheduler(fleet, requests.flavors),
                population.Population(requests.flavors),
                on_progress=on_progress)
    finally:
        random.setstate(state)
    return outcome.Outcome(strategies.NOVA_CONF, fates, samples,
                           seconds=time.perf_counter() - start)


class Scheduler(schedulers.Scheduler):
    """Lets Nova choose hosts and cells."""

    def __init__(self, fleet: Sequence[supplies.Supply],
                 flavors: Sequence[requested.Flavor]) -> None:
        packing = (nova.conf.CONF.compute
                   .packing_host_numa_cells_allocation_strategy)
        super().__init__(
            host_table.HostTable(fleet, causes.flavors(flavors)), flavors,
            strategies.Strategy(strategies.NOVA_CONF, {}, packing))
        self._cloud = cloud.Cloud(fleet, flavors)
        self._servers: dict[host_table.Running, cloud.Server] = {}

    def place(self, number: int, count: int) -> list[host_table.Running]:
        """Place all guests of a request, or none."""
        placed = []
        for server in self._cloud.create(number, count):
            running = self.table.place(server.host, number, _placement(
                server))
            self._servers[running] = server
            placed.append(running)
        return placed

    def remove(self, guests: Sequence[host_table.Running]) -> None:
        """Remove guests from their hosts, the last one first."""
        self._cloud.delete([self._servers.pop(running)
                            for running in reversed(guests)
                            if running in self._servers])
        super().remove(guests)


def _placement(server: cloud.Server) -> placements.Placement:
    topology = server.claimed.topology
    if topology is None:
        return placements.Placement(())
    return placements.Placement(
        server.claimed.cells,
        tuple(cell.pagesize for cell in topology.cells))

# SPDX-License-Identifier: Apache-2.0

"""Replay requests with Nova's own scheduler and claims.

Nova decides. The resulting state of the fleet is kept in the same tables as
for other strategies, so that samples and causes have the same meaning.
"""

import random
from collections.abc import Callable
from collections.abc import Sequence

import nova.conf

from hpcvirt.controller import settings
from hpcvirt.controller.replay import cloud
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import host_table
from hpcvirt.simulate import outcome
from hpcvirt.simulate import replay as replays
from hpcvirt.simulate import requests as requested
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy as strategies

_SEED = 1


def replay(fleet: Sequence[supplies.Supply], requests: requested.Requests,
           on_progress: Callable[[int, int], None] | None = None,
           ) -> outcome.ReplayOutcome:
    """Replay all requests with the options of nova.conf.

    :param fleet: see :func:`hpcvirt.simulate.replay.replay`
    :param on_progress: see :func:`hpcvirt.simulate.replay.replay`
    :raises InvalidInput: if Nova refuses a flavor, or an option of nova.conf
    """
    state = random.getstate()
    # Options such as shuffle_best_same_weighed_hosts use random numbers.
    random.seed(_SEED)
    try:
        with settings.convert_errors():
            return replays.run_events(requests, NovaScheduler(
                fleet, requests.flavors), on_progress)
    finally:
        random.setstate(state)


class NovaScheduler(schedulers.Scheduler):
    """Lets Nova choose hosts and cells."""

    def __init__(self, fleet: Sequence[supplies.Supply],
                 flavors: Sequence[requested.RequestedFlavor]) -> None:
        packing = (nova.conf.CONF.compute
                   .packing_host_numa_cells_allocation_strategy)
        super().__init__(
            host_table.HostTable(fleet, replays.relax_flavors(flavors)),
            flavors, strategies.Strategy(strategies.NOVA_CONF, {}, packing))
        self._cloud = cloud.ReplayCloud(fleet, flavors)
        self._servers: dict[host_table.Running, cloud.ReplayServer] = {}

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


def _placement(server: cloud.ReplayServer) -> cell_assignments.CellAssignment:
    topology = server.claimed.topology
    if topology is None:
        return cell_assignments.CellAssignment(())
    return cell_assignments.CellAssignment(
        server.claimed.cells,
        tuple(cell.pagesize for cell in topology.cells))

# SPDX-License-Identifier: Apache-2.0

"""The input and the result of a simulation."""

import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt.fleet import state
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import totals


def group_hosts(fleet: state.Fleet,
                ) -> list[tuple[str, list[state.FleetHost]]]:
    """Group neighboring hosts that share their state.

    :returns: (name, hosts) of each group; NAME-1, NAME-2... become NAME
    """
    groups = [list(group) for _, group in itertools.groupby(
        fleet.hosts, lambda host: id(host.state))]
    return [(group[0].name.rpartition('-')[0] if len(group) > 1
             else group[0].name, group) for group in groups]


def count_cpus(host: state.FleetHost,
               flavors: Iterable[request_model.RequestedFlavor]) -> int:
    """Count the CPUs of a host that guests of the flavors can use."""
    used = [flavor.guest.sums for flavor in flavors]
    return sum(
        len(cell.dedicated) * any(sums.pcpus for sums in used)
        + len(cell.shared) * any(sums.vcpus for sums in used)
        for cell in host.state.supply.cells)


def count_all_cpus(fleet: state.Fleet,
                   flavors: Iterable[request_model.RequestedFlavor]) -> int:
    """Count the CPUs of all hosts that guests of the flavors can use."""
    used = tuple(flavors)
    return sum(len(group) * count_cpus(group[0], used)
               for _, group in group_hosts(fleet))


@dataclasses.dataclass(frozen=True)
class Scenario:
    """The requests to a fleet.

    :ivar workload: name of the workload
    :ivar notes: what the reader left out or assumed
    :ivar fleet: empty hosts; equal hosts share their state
    :ivar load: requested CPUs / CPUs of the fleet; None if the times of the
        log are kept
    :ivar requests: the requests of a log, or of each seed of a model
    """

    workload: str
    notes: tuple[str, ...]
    fleet: state.Fleet
    load: float | None
    requests: tuple[request_model.Requests, ...]

    @property
    def flavors(self) -> tuple[request_model.RequestedFlavor, ...]:
        return self.requests[0].flavors

    @property
    def cpus(self) -> int:
        """The CPUs of the fleet that can be requested."""
        return count_all_cpus(self.fleet, self.flavors)


@dataclasses.dataclass(frozen=True)
class ScenarioResult:
    """The result of a scenario.

    :ivar windows: number of parts of a replay, from which intervals are
        computed
    :ivar replays: strategy to its replays, one for each of the requests
    :ivar bound: the replays over a fleet that is one bin
    """

    scenario: Scenario
    windows: int
    replays: Mapping[str, tuple[totals.Replay, ...]]
    bound: tuple[totals.Replay, ...]

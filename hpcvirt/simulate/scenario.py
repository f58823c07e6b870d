# SPDX-License-Identifier: Apache-2.0

"""The input and the result of a simulation."""

import dataclasses
import re
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.fleet import state
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import totals


def group_hosts(fleet: state.Fleet,
                ) -> list[tuple[str, list[state.FleetHost]]]:
    """Group hosts that share their state.

    :returns: (name, hosts) of each group; NAME-1, NAME-2... become NAME
    """
    groups: dict[int, list[state.FleetHost]] = {}
    for host in fleet.hosts:
        groups.setdefault(id(host.state), []).append(host)
    return [(re.sub('-[0-9]+$', '', group[0].name) if len(group) > 1
             else group[0].name, group) for group in groups.values()]


def find_kind(fleet: state.Fleet, kind: str | None,
              ) -> tuple[str, list[state.FleetHost]]:
    """Find a group of hosts by its name; the only one needs none.

    :raises InvalidInput: if there is no such group, or several without a name
    """
    groups = group_hosts(fleet)
    for name, group in groups:
        if name == kind or (kind is None and len(groups) == 1):
            return name, group
    raise exception.InvalidInput(
        kind or '--grow', 'must be a kind of hosts' + words.suggest(
            kind or '', (name for name, _ in groups)))


def grow(fleet: state.Fleet, kind: str, more: int) -> state.Fleet:
    """Add hosts of a kind after all others, or remove the last of a kind.

    :param more: the number of hosts to add; negative to remove
    :raises InvalidInput: if there is no such kind
    """
    name, own = find_kind(fleet, kind)
    gone = {id(host) for host in own[min(0, more) + len(own):]}
    return dataclasses.replace(fleet, hosts=(
        *(host for host in fleet.hosts if id(host) not in gone),
        *(state.FleetHost(f'{name}-{len(own) + number}', own[0].state)
          for number in range(1, more + 1))))


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
    :ivar load: requested CPUs / CPUs of the fleet; None if all requests have
        the same time
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

    @property
    def span(self) -> float:
        """The seconds that all requests last, that of all seeds together."""
        return sum(each.span for each in self.requests)


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

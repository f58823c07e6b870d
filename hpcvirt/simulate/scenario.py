# SPDX-License-Identifier: Apache-2.0

"""The input and the result of a simulation."""

import bisect
import contextlib
import dataclasses
import itertools
import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.fit import guest as guests
from hpcvirt.flavors import device_choice
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import mapping
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import totals
from hpcvirt.simulate import workload as workloads


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


def count_cpus(host: state.FleetHost,
               flavors: Iterable[guests.Guest]) -> int:
    """Count the CPUs of a host that guests of the flavors can use."""
    used = [flavor.sums for flavor in flavors]
    return sum(
        len(cell.dedicated) * any(sums.pcpus for sums in used)
        + len(cell.shared) * any(sums.vcpus for sums in used)
        for cell in host.state.supply.cells)


def count_all_cpus(fleet: state.Fleet,
                   flavors: Iterable[guests.Guest]) -> int:
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
    :ivar requests: the requests of a log, or of each seed of the model
    """

    workload: str
    notes: tuple[str, ...]
    fleet: state.Fleet
    load: float | None
    requests: tuple[request_model.Requests, ...]

    @property
    def flavors(self) -> tuple[guests.Guest, ...]:
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
    """The result of a choice with a strategy.

    :ivar name: the name of its row in tables
    :ivar choice: the name of the choice; the only one has the name ''
    :ivar windows: number of parts of a replay, from which intervals are
        computed
    :ivar replays: one for each of the requests
    """

    name: str
    choice: str
    strategy: str
    scenario: Scenario
    windows: int
    replays: tuple[totals.Replay, ...]

    def shares(self, *, in_requests: bool = False) -> list[totals.CoreHours]:
        """Divide the replays into parts."""
        return totals.shares(self.replays, self.windows,
                             in_requests=in_requests)


def make_scenario(name: str, found: Sequence[workloads.Workload],
                  fleet: state.Fleet, load: float | None, *,
                  own: bool = True, vf_share: float = 0.0,
                  others: Sequence[flavor_model.Flavor] | None = None,
                  kinds: Mapping[str, device_choice.CountedAs] | None = None,
                  like: Scenario | None = None,
                  in_use: state.Fleet | None = None,
                  warm_up: float = 0.0) -> Scenario:
    """Map workloads to the flavors of a fleet.

    :param found: the log, or the workload of each seed of the model
    :param load: requested CPUs / CPUs of the fleet; None to keep the times
    :param own: see :func:`hpcvirt.simulate.mapping.map_jobs`, as for
        ``vf_share``, ``others`` and ``kinds``
    :param like: another choice, whose requests have the same times
    :param in_use: the fleet with the instances before the first request
    :param warm_up: the share of the requests that do not count
    :raises InvalidInput: if nothing can be requested
    """
    requested = []
    for seed, workload in enumerate(found):
        requests = mapping.map_jobs(workload, fleet.flavors, own=own,
                                    vf_share=vf_share, seed=seed,
                                    others=others, kinds=kinds or {})
        totals.check(requests, workload.name)
        if like is not None:
            requests = request_model.stretch(requests,
                                             like.requests[seed].stretch)
        elif load is not None:
            requests = request_model.scale_to_load(
                requests, count_all_cpus(fleet, requests.flavors), load)
        requests = dataclasses.replace(
            requests, warm_up=int(warm_up * len(requests.arrivals)))
        requested.append(requests if in_use is None
                         else add_residents(requests, in_use, seed))
    with contextlib.suppress(exception.InvalidInput, ZeroDivisionError):
        load = request_model.load(requested[0], count_all_cpus(
            fleet, requested[0].flavors))
    return Scenario(name, found[0].notes, fleet, load, tuple(requested))


def add_residents(requests: request_model.Requests, fleet: state.Fleet,
                  seed: int) -> request_model.Requests:
    """Add the instances of a fleet to requests, with their flavors.

    Nobody knows how long they will stay. Each gets the rest of the life of a
    request that runs at a random moment: long lives are likelier, and the
    moment is equally likely anywhere in a life. The rests depend on the seed,
    the durations of the requests and the order of the instances.
    """
    lives = [each.duration for each in requests.arrivals]
    until = [*itertools.accumulate(lives)]
    places = {repr(each.flavor): number
              for number, each in enumerate(requests.flavors)}
    flavors = [*requests.flavors]
    residents: list[request_model.Resident] = []
    for host, its in enumerate(fleet.hosts):
        for instance in its.instances:
            key, drawn = repr(instance.guest.flavor), 2 * len(residents)
            if key not in places:
                places[key] = len(flavors)
                flavors.append(instance.guest)
            life = lives[bisect.bisect(
                until, until[-1] * mapping.draw(drawn, seed))]
            residents.append(request_model.Resident(
                host, places[key], instance.holding, its.state.supply,
                life * mapping.draw(drawn + 1, seed)))
    return dataclasses.replace(requests, flavors=tuple(flavors),
                               residents=tuple(residents))

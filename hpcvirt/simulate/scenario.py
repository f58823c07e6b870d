# SPDX-License-Identifier: Apache-2.0

"""What is replayed, and what came of it."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt.fit import supply as supplies
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import totals


@dataclasses.dataclass(frozen=True)
class HostKind:
    """Hosts that are alike.

    :ivar supply: what each of them has for guests when it is empty
    """

    name: str
    count: int
    supply: supplies.Supply

    def cpus(self, flavors: Iterable[request_model.RequestedFlavor]) -> int:
        """Count the CPUs of each host that flavors use."""
        used = [flavor.guest.sums for flavor in flavors]
        return sum(
            len(cell.dedicated) * any(sums.pcpus for sums in used)
            + len(cell.shared) * any(sums.vcpus for sums in used)
            for cell in self.supply.cells)


@dataclasses.dataclass(frozen=True)
class ScenarioFleet:
    """Empty hosts, and the flavors that may be requested of them."""

    kinds: tuple[HostKind, ...]
    flavors: tuple[flavor_model.Flavor, ...]

    @property
    def hosts(self) -> tuple[supplies.Supply, ...]:
        return tuple(kind.supply for kind in self.kinds
                     for _ in range(kind.count))

    def cpus(self, flavors: Iterable[request_model.RequestedFlavor]) -> int:
        """Count the CPUs of all hosts that flavors use."""
        used = tuple(flavors)
        return sum(kind.count * kind.cpus(used) for kind in self.kinds)


@dataclasses.dataclass(frozen=True)
class Scenario:
    """The requests that a fleet gets.

    :ivar workload: its name
    :ivar notes: what the reader left out or assumed
    :ivar load: CPUs requested / CPUs of the fleet; None if the time of the
        log is kept
    :ivar requests: those of a log, or those of each seed of a model
    """

    workload: str
    notes: tuple[str, ...]
    fleet: ScenarioFleet
    load: float | None
    requests: tuple[request_model.Requests, ...]

    @property
    def flavors(self) -> tuple[request_model.RequestedFlavor, ...]:
        return self.requests[0].flavors

    @property
    def cpus(self) -> int:
        """The CPUs of the fleet that can be requested."""
        return self.fleet.cpus(self.flavors)


@dataclasses.dataclass(frozen=True)
class ScenarioResult:
    """What came of a scenario.

    :ivar windows: the parts that one replay is divided into for intervals
    :ivar replays: name of a strategy -> its replay of each of the requests
    :ivar bound: those over a fleet that is one bin
    """

    scenario: Scenario
    windows: int
    replays: Mapping[str, tuple[totals.Replay, ...]]
    bound: tuple[totals.Replay, ...]

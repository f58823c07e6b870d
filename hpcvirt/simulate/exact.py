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

"""The least that can be lost, for small cases.

A solver of integer programs decides which requests are accepted, and on which
host cells each guest is, knowing all requests to come. It need not accept
what it could. Guests take CPUs, memory, pages and devices of host cells; what
else Nova asks for, which CPUs of a core are free, in which order claims try
cells and whether cells are exclusive, is no condition. Therefore nothing that
Nova can do loses less.
"""

import enum
import itertools
import math
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np
from scipy import optimize
from scipy import sparse

from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import course
from hpcvirt.simulate import fleet_sums
from hpcvirt.simulate import outcome
from hpcvirt.simulate import requests as requested
from hpcvirt.simulate import ways

#: A case with more requests or variables, or that takes the solver more steps,
#: is large.
MOST_REQUESTS = 30
MOST_VARIABLES = 5_000
_MOST_NODES = 5_000


class Freedom(enum.Enum):
    """Where guests may be."""

    #: Each guest stays on its host cells.
    STAY = enum.auto()
    #: All guests may be elsewhere whenever a request comes.
    REPACK = enum.auto()
    #: All hosts are one bin.
    POOL = enum.auto()


def optimum(fleet: Sequence[supplies.Supply], requests: requested.Requests,
            freedom: Freedom) -> course.Fates | None:
    """Decide which requests to accept so that the fewest CPU hours are lost.

    :returns: None if the case is too large
    """
    arrivals = requests.arrivals
    if len(arrivals) > MOST_REQUESTS:
        return None
    free, known = _ways(fleet, requests, freedom)
    times = _times(arrivals)
    program = _Program()
    accepted = [program.variable(1, arrival.count * arrival.duration
                                 * requests.flavors[arrival.flavor].cpus)
                for arrival in arrivals]
    placed: dict[tuple[int, int], list[int]] = {}
    for time, active in enumerate(times):
        rows: dict[Hashable, list[tuple[int, float]]] = {}
        for number in active:
            arrival = arrivals[number]
            key = number, time if freedom is Freedom.REPACK else 0
            if key not in placed:
                placed[key] = [program.variable(arrival.count, 0.0)
                               for _ in known[arrival.flavor]]
                # All guests of an accepted request are somewhere.
                program.row([*((own, 1.0) for own in placed[key]),
                             (accepted[number], -float(arrival.count))],
                            0.0, 0.0)
            for own, way in zip(placed[key], known[arrival.flavor],
                                strict=True):
                for resource, amount in way.items():
                    rows.setdefault(resource, []).append((own, amount))
        for resource, row in rows.items():
            # In units of the smallest pages, numbers would be too large.
            unit = math.gcd(*(int(amount) for _, amount in row))
            program.row([(own, amount / unit) for own, amount in row],
                        -np.inf, free[resource] // unit)
        if program.size > MOST_VARIABLES:
            return None
    solution = program.solve()
    if solution is None:
        return None
    return tuple(None if solution[own] else outcome.Cause.CAPACITY
                 for own in accepted)


def outcome_of(fleet: Sequence[supplies.Supply],
               requests: requested.Requests) -> outcome.Outcome | None:
    """Find the outcome of the best placements without moves.

    :returns: None if the case is too large
    """
    fates = optimum(fleet, requests, Freedom.STAY)
    return None if fates is None else outcome.Outcome('optimum', fates)


def _ways(fleet: Sequence[supplies.Supply], requests: requested.Requests,
          freedom: Freedom,
          ) -> tuple[Mapping[Hashable, float], list[list[ways.Way]]]:
    """Return what there is, and for each flavor the ways to take of it."""
    if freedom is Freedom.POOL:
        sums = fleet_sums.of(fleet, requests.flavors)
        return sums.free, [[needs] for needs in sums.needs]
    return ways.resources(fleet), [
        list(itertools.islice(ways.of(flavor.guest, fleet),
                              MOST_VARIABLES + 1))
        for flavor in requests.flavors]


def _times(arrivals: Sequence[requested.Arrival]) -> list[tuple[int, ...]]:
    """List who is there when a request has come, where these are the most."""
    found: list[tuple[int, ...]] = []
    there: tuple[int, ...] = ()
    for number, arrival in enumerate(arrivals):
        stay = tuple(
            other for other in there
            if arrivals[other].time + arrivals[other].duration
            > arrival.time)
        if there != stay:
            found.append(there)
        there = (*stay, number)
    return [*found, there]


class _Program:
    """An integer program: the largest sum of values under constraints.

    :ivar size: the number of its variables
    """

    def __init__(self) -> None:
        self.size = 0
        self._most: list[float] = []
        self._values: list[float] = []
        self._entries: list[tuple[int, int, float]] = []
        self._bounds: list[tuple[float, float]] = []

    def variable(self, most: float, value: float) -> int:
        """Add a variable, a whole number from 0 on."""
        self._most.append(most)
        self._values.append(value)
        self.size += 1
        return self.size - 1

    def row(self, entries: Sequence[tuple[int, float]], low: float,
            high: float) -> None:
        """Add a constraint on a sum of variables times factors."""
        self._entries += [(len(self._bounds), own, factor)
                          for own, factor in entries]
        self._bounds.append((low, high))

    def solve(self) -> Sequence[int] | None:
        """Return the values of the variables; None if that is too much."""
        rows, columns, factors = zip(*self._entries, strict=True)
        low, high = zip(*self._bounds, strict=True)
        found = optimize.milp(
            -np.array(self._values) / max(1.0, *self._values),
            integrality=np.ones(self.size),
            bounds=optimize.Bounds(0, np.array(self._most)),
            constraints=optimize.LinearConstraint(
                sparse.csr_array((factors, (rows, columns)),
                                 shape=(len(low), self.size)), low, high),
            # With presolve, the solver may print to the standard output.
            options={'mip_rel_gap': 0, 'node_limit': _MOST_NODES,
                     'presolve': False})
        if found.status:
            return None
        solution: Sequence[int] = np.rint(found.x).astype(int).tolist()
        return solution

# SPDX-License-Identifier: Apache-2.0

"""An oracle of replays: the least that can be lost, for small cases.

A solver of integer programs decides which requests are accepted, and on which
host cells each guest is, knowing all requests to come. It need not accept
what it could. Guests take CPUs, memory, pages and devices of host cells; what
else Nova asks for, which CPUs of a core are free, in which order claims try
cells and whether cells are exclusive, is no condition. Therefore nothing that
Nova can do loses less.
"""

import collections
import enum
import itertools
import math
from collections.abc import Hashable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np
from scipy import optimize
from scipy import sparse

from hpcvirt.fit import affinity_check
from hpcvirt.fit import cell as cells
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import guest as guests
from hpcvirt.model import shape as shape_model
from hpcvirt.simulate import bounds
from hpcvirt.simulate import outcome
from hpcvirt.simulate import replay
from hpcvirt.simulate import requests as requested

#: What a guest takes of the resources of the fleet.
Way = Mapping[Hashable, float]

_SHARED = shape_model.CPUPolicy.SHARED
_DEDICATED = shape_model.CPUPolicy.DEDICATED

#: A case with more requests or variables, or that takes the solver more steps,
#: is large.
MAX_REQUESTS = 30
MAX_VARIABLES = 5_000
_MAX_NODES = 5_000


class Freedom(enum.Enum):
    """Where guests may be."""

    #: Each guest stays on its host cells.
    STAY = enum.auto()
    #: All guests may be elsewhere whenever a request comes.
    REPACK = enum.auto()
    #: All hosts are one bin.
    POOL = enum.auto()


def find_fates(fleet: Sequence[supplies.Supply],
               requests: requested.Requests, freedom: Freedom,
               ) -> replay.Fates | None:
    """Decide which requests to accept so that the fewest CPU hours are lost.

    :returns: None if the case is too large
    """
    arrivals = requests.arrivals
    if len(arrivals) > MAX_REQUESTS:
        return None
    free, known = _choices(fleet, requests, freedom)
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
        if program.size > MAX_VARIABLES:
            return None
    solution = program.solve()
    if solution is None:
        return None
    return tuple(None if solution[own] else outcome.Cause.CAPACITY
                 for own in accepted)


def _choices(fleet: Sequence[supplies.Supply], requests: requested.Requests,
             freedom: Freedom,
             ) -> tuple[Mapping[Hashable, float], list[list[Way]]]:
    """Return what there is, and for each flavor the ways to take of it."""
    if freedom is Freedom.POOL:
        sums = bounds.add_up(fleet, requests.flavors)
        return sums.free, [[needs] for needs in sums.needs]
    return resources(fleet), [
        list(itertools.islice(find_ways(flavor.guest, fleet),
                              MAX_VARIABLES + 1))
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
            options={'mip_rel_gap': 0, 'node_limit': _MAX_NODES,
                     'presolve': False})
        if found.status:
            return None
        solution: Sequence[int] = np.rint(found.x).astype(int).tolist()
        return solution


def resources(fleet: Sequence[supplies.Supply]) -> dict[Hashable, float]:
    """Return what each host, host cell and pool has."""
    found: dict[Hashable, float] = {}
    for host, supply in enumerate(fleet):
        for cell in supply.cells:
            where = host, cell.id
            found[where, 'PCPU'] = len(cell.free)
            found[where, 'VCPU'] = (
                len(cell.shared) * supply.cpu_ratio - cell.cpu_usage)
            found[where, 'own memory'] = cell.memory_free_mib
            found[where, 'memory'] = (
                cell.memory_mib * supply.ram_ratio - cell.memory_used_mib)
            for pages in cell.pages:
                found[where, pages.size_kib] = pages.free
        for kind in 'VCPU', 'memory':
            found[host, kind] = sum(found[(host, cell.id), kind]
                                    for cell in supply.cells)
        for number, pool in enumerate(supply.pools or ()):
            found[host, 'pool', number] = pool.free
    return found


def find_ways(guest: guests.Guest,
              fleet: Sequence[supplies.Supply]) -> Iterator[Way]:
    """Yield the ways in which a guest can be placed.

    :param fleet: the hosts as they are when they are empty
    """
    for host, supply in enumerate(fleet):
        sums: dict[Hashable, float] = {
            (host, 'VCPU'): guest.sums.vcpus,
            (host, 'memory'): guest.sums.memory_mib}
        for arrangement in _arrangements(guest.demand, supply):
            for pages in itertools.product(*(
                    _pages(own, cell) for own, cell in zip(
                        guest.demand.cells, arrangement, strict=True))):
                needed = _of_cells(guest.demand, host, arrangement, pages)
                for chosen in _devices(guest.demand, host, supply,
                                       arrangement):
                    way = {**sums, **needed, **chosen}
                    yield {resource: amount for resource, amount
                           in way.items() if amount}


def _arrangements(demand: demands.Demand, supply: supplies.Supply,
                  ) -> Iterator[tuple[supplies.CellSupply, ...]]:
    """Yield the host cells on which the guest cells fit, each by itself."""
    choose = (itertools.combinations if demand.uniform
              else itertools.permutations)
    affinity = affinity_check.AffinityCheck(demand, supply)
    for chosen in choose(supply.cells, len(demand.cells)):
        if (all(cells.obstacle(own, cell, supply.cpu_ratio,
                               supply.ram_ratio) is None
                for own, cell in zip(demand.cells, chosen, strict=True))
                and (not chosen or affinity.met(
                    cell.id for cell in chosen))
                and _in_scope(demand, chosen)):
            yield chosen


def _in_scope(demand: demands.Demand,
              chosen: Sequence[supplies.CellSupply]) -> bool:
    if demand.numa_scope is not shape_model.NUMAScope.SOCKET:
        return True
    sockets = {cell.socket for cell in chosen}
    return len(chosen) < 2 or (len(sockets) == 1 and None not in sockets)


def _pages(demand: demands.CellDemand,
           cell: supplies.CellSupply) -> list[int | None]:
    """List the sizes of pages that a guest cell may get."""
    if demand.page_kib is None:
        return [min((pool.size_kib for pool in cell.pages), default=None)]
    if demand.page_kib > 0:
        return [int(demand.page_kib)]
    return [pool.size_kib for pool in cell.pages
            if demand.memory_mib * 1024 % pool.size_kib == 0]


def _of_cells(demand: demands.Demand, host: int,
              chosen: Sequence[supplies.CellSupply],
              pages: Sequence[int | None]) -> dict[Hashable, float]:
    """Return what guest cells take of host cells.

    Memory that Nova lets guests overcommit is counted for those that it
    checks.
    """
    needed: dict[Hashable, float] = {}
    for own, cell, size_kib in zip(demand.cells, chosen, pages, strict=True):
        where = host, cell.id
        needed[where, 'PCPU'] = own.pcpus + own.emulator_pcpus
        needed[where, 'VCPU'] = own.vcpus
        if own.policy is not _DEDICATED:
            needed[where, 'memory'] = own.memory_mib
        if own.page_kib is None and own.policy is _SHARED:
            continue
        if size_kib is None:
            needed[where, 'own memory'] = own.memory_mib
        else:
            needed[where, size_kib] = own.memory_mib * 1024 // size_kib
    return needed


def _devices(demand: demands.Demand, host: int, supply: supplies.Supply,
             chosen: Sequence[supplies.CellSupply],
             ) -> Iterator[dict[Hashable, float]]:
    """Yield the pools that can serve the requests of a guest."""
    choices = [list(_of_pools(request, supply, chosen))
               for request in demand.requests]
    for parts in itertools.product(*choices):
        total: collections.Counter[int] = collections.Counter()
        for part in parts:
            total.update(part)
        yield {(host, 'pool', number): amount
               for number, amount in total.items()}


def _of_pools(request: devices.DeviceRequest, supply: supplies.Supply,
              chosen: Sequence[supplies.CellSupply],
              ) -> Iterator[collections.Counter[int]]:
    near = [number for number, pool in enumerate(supply.pools or ())
            if devices.serves(pool, request)
            and (not chosen or _allowed(pool.cell, request, supply, chosen))]
    for numbers in itertools.combinations_with_replacement(
            near, request.count):
        if len(set(numbers)) == 1 or not request.one_pool:
            yield collections.Counter(numbers)


def _allowed(cell: int | None, request: devices.DeviceRequest,
             supply: supplies.Supply,
             chosen: Sequence[supplies.CellSupply]) -> bool:
    """Whether the affinity of a request may allow the devices of a cell."""
    affinity = shape_model.PCIAffinity
    if cell in {each.id for each in chosen}:
        return True
    if request.affinity is affinity.SOCKET:
        return any(each.id == cell and each.socket is not None
                   and each.socket in {own.socket for own in chosen}
                   for each in supply.cells)
    return request.affinity is affinity.PREFERRED or (
        request.affinity is affinity.LEGACY and cell is None)

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

"""All ways in which a guest can be placed on an empty fleet."""

import collections
import itertools
from collections.abc import Hashable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import affinity_check
from hpcvirt.fit import cell as cells
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import guest as guests
from hpcvirt.model import shape as shape_model

#: What a guest takes of the resources of the fleet.
Way = Mapping[Hashable, float]

_SHARED = shape_model.CPUPolicy.SHARED
_DEDICATED = shape_model.CPUPolicy.DEDICATED


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


def of(guest: guests.Guest,
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
    if demand.numa_scope is not shape_model.NUMAScope.PACKAGE:
        return True
    packages = {cell.package for cell in chosen}
    return len(chosen) < 2 or (len(packages) == 1 and None not in packages)


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


def _of_pools(request: devices.Request, supply: supplies.Supply,
              chosen: Sequence[supplies.CellSupply],
              ) -> Iterator[collections.Counter[int]]:
    near = [number for number, pool in enumerate(supply.pools or ())
            if devices.serves(pool, request)
            and (not chosen or _allowed(pool.cell, request, supply, chosen))]
    for numbers in itertools.combinations_with_replacement(
            near, request.count):
        if len(set(numbers)) == 1 or not request.one_pool:
            yield collections.Counter(numbers)


def _allowed(cell: int | None, request: devices.Request,
             supply: supplies.Supply,
             chosen: Sequence[supplies.CellSupply]) -> bool:
    """Whether the affinity of a request may allow the devices of a cell."""
    affinity = shape_model.PCIAffinity
    if cell in {each.id for each in chosen}:
        return True
    if request.affinity is affinity.SOCKET:
        return any(each.id == cell and each.package is not None
                   and each.package in {own.package for own in chosen}
                   for each in supply.cells)
    return request.affinity is affinity.PREFERRED or (
        request.affinity is affinity.LEGACY and cell is None)

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

"""What the hosts of a fleet have left, in arrays.

A host that returns to a state in which it, or an equal host, was before is
known by the number of the state: all that is computed for a state is computed
once. Which CPUs are free matters to no decision, only how many each core has.
"""

import collections
import dataclasses
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Sequence

import numpy as np
from numpy import typing as npt

from hpcvirt.fit import allocation
from hpcvirt.fit import devices
from hpcvirt.fit import placement as placements
from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import requests

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A guest on a host, and what it has there.

    :ivar host: the number of its host
    :ivar flavor: the number of its flavor
    :ivar cells: for each host cell of it the index of the cell, its CPUs, and
        its number of pages of each size of the cell
    :ivar pools: what it has of each pool of its host; empty if it has no
        devices
    :ivar across_packages: whether its host cells are on several packages
    """

    host: int
    flavor: int
    placement: placements.Placement
    cells: tuple[tuple[int, frozenset[int], tuple[int, ...]], ...]
    pools: tuple[devices.Pool, ...]
    across_packages: bool

    @property
    def cpus(self) -> frozenset[int]:
        """All host CPUs that are its own."""
        return frozenset[int]().union(*(cpus for _, cpus, _ in self.cells))


class HostTable:
    """The hosts of a fleet, in its order.

    :ivar supplies: what each host has left
    :ivar states: the number of the state of each host
    :ivar cells: for each host the numbers of the states of its cells
    :ivar numbering: how often states were numbered anew
    :ivar free_ram: ``HostState.free_ram_mb``; no memory is reserved for hosts
    :ivar free_vcpus: shared CPUs with their allocation ratio, less the vCPUs
        of all guests, as CPUWeigher computes it
    :ivar free_pcpus: dedicated CPUs that are free
    :ivar shared_left: shared CPUs that Placement can still allocate
    :ivar memory_left: memory that Placement can still allocate
    :ivar memory: all memory
    :ivar shared: all shared CPUs
    :ivar free_devices: devices in the pools
    :ivar free_pages: the free pages of each size on all hosts
    """

    def __init__(self, fleet: Sequence[supplies.Supply],
                 flavors: Sequence[requests.Flavor]) -> None:
        self.supplies = _with_own_pools(fleet)
        self._flavors = flavors
        self._cores_in_order = any(
            cell.emulator_pcpus for flavor in flavors
            for cell in flavor.guest.demand.cells)
        kinds: dict[Hashable, int] = {}
        by_identity: dict[int, int] = {}
        self._kinds = [
            by_identity.setdefault(id(supply), kinds.setdefault(
                _kind(supply), len(kinds)))
            for supply in self.supplies]
        self.numbering = 0
        self._numbers: dict[Hashable, int] = {}
        self._cell_numbers: dict[Hashable, int] = {}
        cell_kinds: dict[Hashable, int] = {}
        of_kinds: dict[int, tuple[int, ...]] = {}
        for kind, supply in zip(self._kinds, self.supplies, strict=True):
            if kind not in of_kinds:
                of_kinds[kind] = tuple(
                    cell_kinds.setdefault(
                        (supply.cpu_ratio, supply.ram_ratio,
                         _cell_kind(cell)), len(cell_kinds))
                    for cell in supply.cells)
        self._cell_kinds = [of_kinds[kind] for kind in self._kinds]
        self.cells = [
            [self._cell_number(host, index)
             for index in range(len(supply.cells))]
            for host, supply in enumerate(self.supplies)]
        self.states: Integers = np.array(
            [self._state(host) for host in range(len(self.supplies))],
            dtype=np.int64)
        self.free_ram = self._array(lambda cell, _: cell.memory_free_mib)
        self.memory_left = self._array(lambda cell, supply: (
            cell.memory_mib * supply.ram_ratio - cell.memory_used_mib))
        self.shared_left = self._array(lambda cell, supply: (
            len(cell.shared) * supply.cpu_ratio - cell.cpu_usage))
        self.memory = self._array(lambda cell, _: cell.memory_mib)
        self.shared = self._array(lambda cell, _: len(cell.shared))
        self.free_pcpus = self._array(lambda cell, _: len(cell.free))
        self.free_vcpus = self._array(lambda cell, supply: (
            len(cell.shared) * supply.cpu_ratio - cell.cpu_usage
            - len(cell.dedicated) + len(cell.free)))
        self.free_devices: Floats = np.array(
            [_free_devices(supply) for supply in self.supplies],
            dtype=np.float64)

        self.free_pages: collections.Counter[int] = collections.Counter()
        for supply in self.supplies:
            for cell in supply.cells:
                for pages in cell.pages:
                    self.free_pages[pages.size_kib] += pages.free

    def __len__(self) -> int:
        return len(self.supplies)

    @property
    def number_of_states(self) -> int:
        return len(self._numbers)

    def forget_states(self) -> None:
        """Number the states anew, from those that a host is in."""
        self.numbering += 1
        self._numbers.clear()
        self._cell_numbers.clear()
        for host, supply in enumerate(self.supplies):
            self.cells[host] = [self._cell_number(host, index)
                                for index in range(len(supply.cells))]
            self.states[host] = self._state(host)

    def place(self, host: int, flavor: int,
              placement: placements.Placement) -> Running:
        """Place a guest as the claim of its host does."""
        demand = self._flavors[flavor].guest.demand
        before = self.supplies[host]
        after = allocation.allocate(demand, before, placement)
        running = Running(
            host, flavor, placement, tuple(
                (index, frozenset(old.free - new.free),
                 tuple(one.free - other.free for one, other in zip(
                     old.pages, new.pages, strict=True)))
                for index, (old, new) in enumerate(zip(
                    before.cells, after.cells, strict=True))
                if old is not new),
            _taken(before, after) if demand.requests else (), len({
                cell.package for cell in before.cells
                if cell.id in placement.cells}) > 1)
        self._set(host, dataclasses.replace(after, pools=_charged(
            before.pools, running.pools, -1)),
            [index for index, *_ in running.cells])
        self._charge(running, 1)
        return running

    def remove(self, running: Running) -> None:
        """Free what a guest has."""
        demand = self._flavors[running.flavor].guest.demand
        own = dict(zip(running.placement.cells, demand.cells, strict=True))
        supply = self.supplies[running.host]
        cells = list(supply.cells)
        for index, cpus, pages in running.cells:
            cell = cells[index]
            cells[index] = cell._replace(
                free=cell.free | cpus,
                cpu_usage=cell.cpu_usage - own[cell.id].vcpus,
                memory_used_mib=(cell.memory_used_mib
                                 - own[cell.id].memory_mib),
                pages=tuple(
                    pool._replace(used=pool.used - count,
                                  free=pool.free + count) if count else pool
                    for pool, count in zip(cell.pages, pages, strict=True)))
        self._set(running.host, dataclasses.replace(
            supply, cells=tuple(cells),
            pools=_charged(supply.pools, running.pools, 1)),
            [index for index, *_ in running.cells])
        self._charge(running, -1)

    def _set(self, host: int, supply: supplies.Supply,
             changed: Sequence[int]) -> None:
        self.supplies[host] = supply
        cells = self.cells[host]
        for index in changed:
            cells[index] = self._cell_number(host, index)
        self.states[host] = self._state(host)

    def _charge(self, running: Running, sign: int) -> None:
        host, flavor = running.host, self._flavors[running.flavor]
        sums = flavor.guest.sums
        self.free_ram[host] -= sign * flavor.flavor.ram_mib
        self.memory_left[host] -= sign * sums.memory_mib
        self.shared_left[host] -= sign * sums.vcpus
        self.free_pcpus[host] -= sign * sum(
            len(cpus) for _, cpus, _ in running.cells)
        self.free_vcpus[host] -= sign * flavor.flavor.vcpus
        for index, _, counts in running.cells:
            for pages, count in zip(self.supplies[host].cells[index].pages,
                                    counts, strict=True):
                if count:
                    self.free_pages[pages.size_kib] -= sign * count
        if running.pools:
            self.free_devices[host] = _free_devices(self.supplies[host])

    def _state(self, host: int) -> int:
        supply = self.supplies[host]
        key = (self._kinds[host], *self.cells[host],
               *(pool.free for pool in supply.pools or ()))
        return self._numbers.setdefault(key, len(self._numbers))

    def _cell_number(self, host: int, index: int) -> int:
        cell = self.supplies[host].cells[index]
        # Where all cores have one thread, the sum says everything.
        cores: Hashable = None
        if cell.threads_per_core > 1:
            counts = [(len(core), len(core & cell.free))
                      for core in cell.siblings]
            # Only where the emulator threads get a PCPU, it matters which
            # cores come first.
            cores = (tuple(counts) if self._cores_in_order
                     else frozenset(collections.Counter(counts).items()))
        key = (self._cell_kinds[host][index], len(cell.free), cores,
               cell.cpu_usage, cell.memory_used_mib,
               tuple((pool.used, pool.free) for pool in cell.pages))
        return self._cell_numbers.setdefault(key, len(self._cell_numbers))

    def _array(self, of_cell: Callable[
            [supplies.CellSupply, supplies.Supply], float]) -> Floats:
        return np.array(
            [sum(of_cell(cell, supply) for cell in supply.cells)
             for supply in self.supplies], dtype=np.float64)


def _kind(supply: supplies.Supply) -> Hashable:
    """Return all of a host that never changes."""
    return (None if supply.pools is None else tuple(
                (pool.cell, pool.provider, _tags(pool))
                for pool in supply.pools),
            supply.cpu_ratio, supply.ram_ratio, supply.spares_devices,
            tuple(map(_cell_kind, supply.cells)))


def _cell_kind(cell: supplies.CellSupply) -> Hashable:
    """Return all of a cell that never changes."""
    return cell._replace(
        dedicated=frozenset(cell.dedicated), free=frozenset(),
        shared=frozenset(cell.shared),
        siblings=tuple(map(frozenset, cell.siblings)),
        cpu_usage=0, memory_used_mib=0, pages=tuple(
            pool._replace(used=0, free=0) for pool in cell.pages),
        physnets=frozenset(cell.physnets))


def _with_own_pools(fleet: Sequence[supplies.Supply],
                    ) -> list[supplies.Supply]:
    """Tell the pools of a host apart by the identity of their tags."""
    own: dict[int, supplies.Supply] = {}
    for supply in fleet:
        if id(supply) not in own:
            own[id(supply)] = dataclasses.replace(
                supply, pools=None if supply.pools is None else tuple(
                    pool._replace(tags=dict(pool.tags))
                    for pool in _merged(supply.pools)))
    return [own[id(supply)] for supply in fleet]


def _merged(pools: Sequence[devices.Pool]) -> list[devices.Pool]:
    """Merge neighbors that are alike, which changes no decision."""
    merged: list[devices.Pool] = []
    for pool in pools:
        if (merged and pool.is_pci
                and pool == merged[-1]._replace(free=pool.free)):
            merged[-1] = pool._replace(free=pool.free + merged[-1].free)
        else:
            merged.append(pool)
    return merged


def _taken(before: supplies.Supply,
           after: supplies.Supply) -> tuple[devices.Pool, ...]:
    """Say what a guest has of each pool."""
    left = {id(pool.tags): pool.free for pool in after.pools or ()}
    return tuple(
        pool._replace(free=pool.free - left.get(id(pool.tags), 0))
        for pool in before.pools or ())


def _charged(pools: Sequence[devices.Pool] | None,
             own: Sequence[devices.Pool], sign: int,
             ) -> Sequence[devices.Pool] | None:
    """Add the devices of a guest to the pools (1), or take them (-1).

    Like nova-compute, keep a pool that is empty in its place.
    """
    if pools is None or not own:
        return pools
    return tuple(pool._replace(free=pool.free + sign * part.free)
                 for pool, part in zip(pools, own, strict=True))


def _free_devices(supply: supplies.Supply) -> int:
    return sum(pool.free for pool in supply.pools or () if pool.is_pci)


def _tags(pool: devices.Pool) -> Hashable:
    return tuple(sorted((key, str(value))
                        for key, value in pool.tags.items()))

# SPDX-License-Identifier: Apache-2.0

"""The free resources of all hosts in arrays, and the guests on the hosts.

States of hosts are numbered, and equal states of equal hosts share a number,
so that figures are computed only once for each state. A state has the number
of guests, and of free CPUs of each core, but not which ones are free, because
no decision depends on that.
"""

import collections
import dataclasses
import heapq
import itertools
import math
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Sequence

import numpy as np
from numpy import typing as npt

from hpcvirt.fit import allocation
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import requests

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A guest on a host.

    :ivar host: the number of its host
    :ivar flavor: the number of its flavor
    :ivar holding: its resources on the host
    :ivar across_sockets: whether its host cells are on several sockets
    :ivar is_local: whether all of its devices are on its host cells; None for
        a guest without devices or without cells
    """

    host: int
    flavor: int
    holding: allocation.Holding
    across_sockets: bool
    is_local: bool | None


class HostTable:
    """The hosts of a fleet, in its order.

    The arrays have a number for each host; memory is in MiB.

    :ivar supplies: what each host has left
    :ivar states: the number of the state
    :ivar cells: for each host the numbers of the states of its cells
    :ivar numbering: how many times the states were renumbered
    :ivar free_ram: ``HostState.free_ram_mb``
    :ivar free_vcpus: shared CPUs x allocation ratio, less the vCPUs of all
        guests, as CPUWeigher computes it
    :ivar free_pcpus: free dedicated CPUs
    :ivar shared_left: shared CPUs that Placement can still allocate
    :ivar memory_left: memory that Placement can still allocate
    :ivar memory: total memory
    :ivar shared: total shared CPUs
    :ivar free_devices: free devices in the pools
    :ivar guests: the number of guests
    :ivar free_pages: page size in KiB to the free pages of each host
    """

    def __init__(self, fleet: Sequence[placement.HostState],
                 flavors: Sequence[guests.Guest],
                 residents: Sequence[requests.Resident] = ()) -> None:
        self._fleet = tuple(fleet)
        self.supplies = [host.supply for host in fleet]
        if not residents:
            # Residents have devices of the pools of their hosts.
            self.supplies = _merge_pools(self.supplies)
        self._flavors = flavors
        guest_cells = itertools.chain.from_iterable(
            flavor.demand.cells for flavor in flavors)
        self._cores_in_order = any(cell.emulator_pcpus for cell in guest_cells)
        kinds: dict[Hashable, int] = {}
        by_identity: dict[int, int] = {}
        self._kinds = [
            by_identity.setdefault(id(supply), kinds.setdefault(
                _kind(supply), len(kinds)))
            for supply in self.supplies]
        self.numbering = -1
        self._numbers: dict[Hashable, int] = {}
        self._cell_numbers: dict[Hashable, int] = {}
        self.cells: list[list[int]] = [[] for _ in self.supplies]
        self.states: Integers = np.zeros(len(self.supplies), dtype=np.int64)
        self.guests: Floats = np.zeros(len(self.supplies))
        self.forget_states()
        self.free_ram = self._array(lambda cell, _: cell.memory_free_mib)
        self.free_ram -= [_count_reserved_mib(host) for host in fleet]
        free = np.array([host.free for host in fleet], dtype=np.float64)
        most = np.array([host.max_unit for host in fleet], dtype=np.float64)
        self.free_pcpus, self.shared_left, self.memory_left, _ = free.T.copy()
        _, self.shared, self.memory, _ = most.T.copy()
        self.free_vcpus = self._array(lambda cell, supply: (
            len(cell.shared) * supply.cpu_ratio - cell.cpu_usage
            - len(cell.dedicated) + len(cell.free)))
        self.free_devices: Floats = np.array(
            [_free_devices(supply) for supply in self.supplies],
            dtype=np.float64)

        self.free_pages: dict[int, Floats] = {}
        for host, supply in enumerate(self.supplies):
            for cell in supply.cells:
                for pages in cell.pages:
                    size = pages.size_kib
                    if size not in self.free_pages:
                        self.free_pages[size] = np.zeros(len(self.supplies))
                    self.free_pages[size][host] += pages.free

    def __len__(self) -> int:
        return len(self.supplies)

    def set_packing(self, packing: bool) -> None:
        """Set whether claims take the fullest host cells first."""
        self.supplies[:] = [dataclasses.replace(supply, packing=packing)
                            for supply in self.supplies]

    def describe_host(self, host: int) -> placement.HostState:
        """Return the state of a host."""
        free = guests.Resources(
            int(self.free_pcpus[host]), int(self.shared_left[host]),
            int(self.memory_left[host]), guests.UNKNOWN_DISK_GIB)
        return dataclasses.replace(self._fleet[host], free=free,
                                   supply=self.supplies[host])

    def find_open(self, guest: guests.Guest) -> Booleans:
        """Return for each host whether its traits admit a guest."""
        # Hosts of one kind share their traits, and all else that matters.
        known: dict[object, bool] = {}
        found = []
        for host in self._fleet:
            key = (host.closed, host.traits, host.kept_for, host.has_smt,
                   host.address_bits)
            if key not in known:
                known[key] = placement.explain_unfit(guest, host) is None
            found.append(known[key])
        return np.array(found, dtype=np.bool_)

    @property
    def number_of_states(self) -> int:
        return len(self._numbers)

    def forget_states(self) -> None:
        """Renumber the current states, and forget all others."""
        self.numbering += 1
        self._numbers.clear()
        self._cell_numbers.clear()
        for host, supply in enumerate(self.supplies):
            self.cells[host] = [self._cell_number(host, index)
                                for index in range(len(supply.cells))]
            self.states[host] = self._state(host)

    def place(self, host: int, flavor: int,
              placement: demands.CellAssignment) -> Running:
        """Place a guest as the claim of its host does."""
        before = self.supplies[host]
        after, holding = allocation.charge(
            self._flavors[flavor].demand, before, placement)
        running = _run(host, flavor, holding, after)
        self._set(running, after, 1)
        return running

    def settle(self, resident: requests.Resident) -> Running:
        """Put a guest on the host on which it is at the start."""
        supply = dataclasses.replace(
            resident.supply, packing=self.supplies[resident.host].packing)
        running = _run(resident.host, resident.flavor, resident.holding,
                       supply)
        self._set(running, supply, 1)
        return running

    def remove(self, running: Running) -> None:
        """Free the resources of a guest."""
        self._set(running, allocation.release(
            self._flavors[running.flavor].demand,
            self.supplies[running.host], running.holding), -1)

    def _set(self, running: Running, supply: supplies.Supply,
             sign: int) -> None:
        """Update the arrays after a guest was placed (1) or removed (-1)."""
        host, flavor = running.host, self._flavors[running.flavor]
        before, self.supplies[host] = self.supplies[host], supply
        sums = flavor.sums
        self.free_ram[host] -= sign * sums.memory_mib
        self.memory_left[host] -= sign * sums.memory_mib
        self.shared_left[host] -= sign * sums.vcpus
        self.free_vcpus[host] -= sign * flavor.cpus
        self.free_pcpus[host] -= sign * len(running.holding.cpus)
        self.guests[host] += sign
        for index, (old, new) in enumerate(zip(
                before.cells, supply.cells, strict=True)):
            if old is not new:
                self.cells[host][index] = self._cell_number(host, index)
                for pages, left in zip(old.pages, new.pages, strict=True):
                    free = self.free_pages[pages.size_kib]
                    free[host] += left.free - pages.free
        if running.holding.devices:
            self.free_devices[host] = _free_devices(supply)
        self.states[host] = self._state(host)

    def _state(self, host: int) -> int:
        supply = self.supplies[host]
        key = (self._kinds[host], int(self.guests[host]), *self.cells[host],
               *(pool.free for pool in supply.pools or ()))
        return self._numbers.setdefault(key, len(self._numbers))

    def _cell_number(self, host: int, index: int) -> int:
        cell = self.supplies[host].cells[index]
        # If all cores have one thread, the number of free CPUs is enough.
        cores: Hashable = None
        if cell.threads_per_core > 1:
            counts = [(len(core), len(core & cell.free))
                      for core in cell.siblings]
            # The order of cores matters only if emulator threads get a PCPU.
            cores = (tuple(counts) if self._cores_in_order
                     else frozenset(collections.Counter(counts).items()))
        key = (self._kinds[host], index, len(cell.free), cores,
               cell.cpu_usage, cell.memory_used_mib,
               tuple((pool.used, pool.free) for pool in cell.pages))
        return self._cell_numbers.setdefault(key, len(self._cell_numbers))

    def _array(self, of_cell: Callable[
            [supplies.CellSupply, supplies.Supply], float]) -> Floats:
        return np.array(
            [sum(of_cell(cell, supply) for cell in supply.cells)
             for supply in self.supplies], dtype=np.float64)


def _run(host: int, flavor: int, holding: allocation.Holding,
         supply: supplies.Supply) -> Running:
    own = holding.placement.cells
    sockets = {cell.socket for cell in supply.cells if cell.id in own}
    taken = [pool.cell for pool, count in zip(
        supply.pools or (), holding.devices, strict=False)
             if count and pool.is_pci]
    is_local = None
    if own and taken:
        is_local = all(cell in own for cell in taken)
    return Running(host, flavor, holding, len(sockets) > 1, is_local)


def _kind(supply: supplies.Supply) -> Hashable:
    """Return what never changes of a host."""
    return (None if supply.pools is None else tuple(
                (pool.cell, pool.provider, _tags(pool))
                for pool in supply.pools),
            supply.cpu_ratio, supply.ram_ratio, supply.spares_devices,
            tuple(map(_cell_kind, supply.cells)))


def _cell_kind(cell: supplies.CellSupply) -> Hashable:
    """Return what never changes of a host cell."""
    return cell._replace(
        dedicated=frozenset(cell.dedicated), free=frozenset(),
        shared=frozenset(cell.shared),
        siblings=tuple(map(frozenset, cell.siblings)),
        cpu_usage=0, memory_used_mib=0, pages=tuple(
            pool._replace(used=0, free=0) for pool in cell.pages),
        physnets=frozenset(cell.physnets))


def _count_reserved_mib(host: placement.HostState) -> float:
    """Count the memory that a host keeps for itself."""
    cells = host.supply.cells
    total = sum(cell.memory_mib for cell in cells)
    used = sum(cell.memory_used_mib for cell in cells)
    ratio = host.supply.ram_ratio
    if not ratio or host.closed is not None:
        return 0
    return total - (host.free.memory_mib + used) / ratio


def _merge_pools(fleet: Sequence[supplies.Supply]) -> list[supplies.Supply]:
    """Merge equal neighboring pools, which does not affect any decision."""
    merged: dict[int, supplies.Supply] = {}
    for supply in fleet:
        if id(supply) in merged:
            continue
        pools: list[devices.Pool] = []
        for pool in supply.pools or ():
            if (pools and pool.is_pci
                    and pool == pools[-1]._replace(free=pool.free)):
                pools[-1] = pool._replace(free=pool.free + pools[-1].free)
            else:
                pools.append(pool)
        merged[id(supply)] = dataclasses.replace(
            supply, pools=None if supply.pools is None else tuple(pools))
    return [merged[id(supply)] for supply in fleet]


def _free_devices(supply: supplies.Supply) -> int:
    return sum(pool.free for pool in supply.pools or () if pool.is_pci)


def _tags(pool: devices.Pool) -> Hashable:
    return tuple(sorted((key, str(value))
                        for key, value in pool.tags.items()))


class Population:
    """The running guests with their hosts and end times.

    :ivar busy_cpus: CPUs of all guests
    :ivar across_sockets: number of guests on more than one socket
    :ivar with_devices: number of guests with devices and host cells
    :ivar local: number of these that have their devices on their host cells
    """

    def __init__(self, flavors: Sequence[guests.Guest]) -> None:
        self._flavors = flavors
        self._leaving: list[tuple[float, int, list[Running]]] = []
        self._started = 0
        self._on: dict[int, dict[Running,
                                 list[Running]]] = {}
        self._guests = 0
        self.busy_cpus = 0
        self.across_sockets = 0
        self.with_devices = 0
        self.local = 0

    def __len__(self) -> int:
        return self._guests

    def start(self, guests: Sequence[Running],
              end: float) -> None:
        """Add the guests of a request, which end at the same time."""
        group = list(guests)
        heapq.heappush(self._leaving, (end, self._started, group))
        self._started += 1
        for guest in group:
            self._count(guest, 1)
            self._on.setdefault(guest.host, {})[guest] = group

    @property
    def next_end(self) -> float:
        """The time at which the next request ends."""
        return self._leaving[0][0] if self._leaving else math.inf

    def end_next(self) -> Sequence[Running]:
        """Remove the guests of the request that ends next, and return them."""
        _, _, group = heapq.heappop(self._leaving)
        for guest in group:
            self._count(guest, -1)
            del self._on[guest.host][guest]
        return group

    def list_guests(self, host: int) -> tuple[Running, ...]:
        """Return the guests on a host, in the order of their arrival."""
        return tuple(self._on.get(host, ()))

    def replace(self, old: Running,
                new: Running) -> None:
        """Replace a guest by itself on another host."""
        group = self._on[old.host].pop(old)
        group[group.index(old)] = new
        self._on.setdefault(new.host, {})[new] = group
        self._count(old, -1)
        self._count(new, 1)

    def _count(self, guest: Running, sign: int) -> None:
        self._guests += sign
        self.busy_cpus += sign * self._flavors[guest.flavor].cpus
        self.across_sockets += sign * guest.across_sockets
        if guest.is_local is not None:
            self.with_devices += sign
            self.local += sign * guest.is_local

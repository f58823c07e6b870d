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

"""Put instances on the host cells on which they already are."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import pci_pools
from hpcvirt.fleet import state
from hpcvirt.model import cpuset
from hpcvirt.model import shape as shape_model


def occupy(empty: state.State, instances: Iterable[state.Instance],
           addresses: Sequence[str],
           ) -> tuple[state.State, tuple[state.Instance, ...]]:
    """Subtract instances from what a host has.

    :param addresses: the address of the device behind each PCI pool
    :returns: what is left, and the instances with what they have of the pools
    :raises InvalidInput: naming the instance that cannot be there
    """
    residents = []
    cells = {cell.id: cell for cell in empty.supply.cells}
    pools = list(empty.supply.pools or ())
    free = empty.free
    owners: dict[int, str] = {}
    for instance in instances:
        _check_cpus(instance, cells, owners)
        for number, demand in zip(instance.cells, instance.guest.demand.cells,
                                  strict=True):
            cells[number] = _taken(instance, demand, cells[number])
        before = tuple(pools)
        for device in instance.devices:
            place = _pool(instance, device, addresses, pools)
            if place is not None:
                pools[place] = pools[place]._replace(
                    free=pools[place].free - 1)
        if instance.guest.demand.requests and not instance.devices:
            pools = _as_claimed(instance, empty.supply, pools)
        free = free.minus(instance.guest.sums)
        residents.append(dataclasses.replace(
            instance, pools=pci_pools.taken(before, pools))
            if tuple(pools) != before else instance)
    supply = dataclasses.replace(
        empty.supply,
        cells=tuple(cells[cell.id] for cell in empty.supply.cells),
        # Nova drops a pool when it becomes empty.
        pools=tuple(pool for pool in pools if pool.free))
    return state.State(supply, free), tuple(residents)


def _check_cpus(instance: state.Instance,
                cells: dict[int, supplies.CellSupply],
                owners: dict[int, str]) -> None:
    own: set[int] = set()
    for number, demand in zip(instance.cells, instance.guest.demand.cells,
                              strict=True):
        if number not in cells:
            raise exception.InvalidInput(
                instance.where, f'{instance.id} is on cell {number}, which '
                'the host does not have')
        cpus = instance.cpus & cells[number].dedicated
        if len(cpus) < demand.pcpus:
            raise exception.InvalidInput(
                instance.where, f'{instance.id} has {len(cpus)} CPUs of cell '
                f'{number}, where its guest cell has {demand.pcpus} dedicated '
                'vCPUs')
        own |= cpus
    if instance.cpus - own:
        raise exception.InvalidInput(
            instance.where, f'{instance.id} has CPU '
            f'{cpuset.render(instance.cpus - own)}, which is not a dedicated '
            'CPU of its cells')
    for cpu in sorted(own):
        if cpu in owners:
            raise exception.InvalidInput(
                instance.where, f'{instance.id} has CPU {cpu}, and so has '
                f'{owners[cpu]}')
        owners[cpu] = instance.id


def _taken(instance: state.Instance, demand: demands.CellDemand,
           cell: supplies.CellSupply) -> supplies.CellSupply:
    sizes = [pool.size_kib for pool in cell.pages]
    size_kib = instance.pages_kib or min(sizes, default=0)
    if instance.pages_kib and instance.pages_kib not in sizes:
        raise exception.InvalidInput(
            instance.where, f'{instance.id} has pages of {size_kib} KiB, of '
            f'which cell {cell.id} has none')
    count = -(-demand.memory_mib * 1024 // size_kib) if size_kib else 0
    overcommits = (demand.page_kib is None and
                   demand.policy is shape_model.CPUPolicy.SHARED)
    for pool in cell.pages:
        if (pool.size_kib == size_kib and count > pool.free
                and not overcommits):
            raise exception.InvalidInput(
                instance.where, f'{instance.id} has {count} pages of '
                f'{size_kib} KiB on cell {cell.id}, where {pool.free} of '
                f'{pool.total} are left')
    return cell._replace(
        free=cell.free - instance.cpus,
        cpu_usage=cell.cpu_usage + demand.vcpus,
        memory_used_mib=cell.memory_used_mib + demand.memory_mib,
        pages=tuple(
            pool._replace(used=pool.used + count, free=pool.free - count)
            if pool.size_kib == size_kib else pool for pool in cell.pages))


def _as_claimed(instance: state.Instance, supply: supplies.Supply,
                pools: Sequence[devices.Pool]) -> list[devices.Pool]:
    """Allocate the devices of an instance of which no address is known.

    Those of a kind that the plan gives to no guest do not matter.
    """
    requests = [request for request in instance.guest.demand.requests
                if devices.free_devices(request, pools)]
    allocator = devices.Allocator(
        requests, pools,
        {cell.id: cell.package for cell in supply.cells})
    left = (allocator.allocate(instance.cells or None)
            or allocator.allocate(None))
    if left is None:
        raise exception.InvalidInput(
            instance.where, f'{instance.id} has a flavor with '
            + ' and '.join(f'{request.count} {request.name}'
                           for request in requests)
            + ', of which the host has too few left')
    return [pool._replace(free=free)
            for pool, free in zip(pools, left, strict=True)]


def _pool(instance: state.Instance, device: str, addresses: Sequence[str],
          pools: Sequence[devices.Pool]) -> int | None:
    """Find the pool of a device by its address.

    A virtual function has the bus of its physical function. It matters only
    on which cell this is, and what it serves.

    :returns: None for a device that is none of those that the plan gives
    """
    device = device.lower()
    places = [place for place, address in enumerate(addresses)
              if address == device]
    if not places:
        bus = device.rpartition(':')[0]
        places = [place for place, address in enumerate(addresses)
                  if bus and address.rpartition(':')[0] == bus]
    if not places:
        return None
    if len({(pools[place].cell, str(pools[place].tags))
            for place in places}) != 1:
        raise exception.InvalidInput(
            instance.where, f'{instance.id} has the device {device[:40]}, '
            'which can belong to several devices')
    for place in places:
        if pools[place].free:
            return place
    raise exception.InvalidInput(
        instance.where, f'{instance.id} has the device {device[:40]}, but '
        'other instances have all functions of it')

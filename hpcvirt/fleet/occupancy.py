# SPDX-License-Identifier: Apache-2.0

"""Charge a host with the instances that are on it."""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.fit import allocation
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import new_guest
from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import state
from hpcvirt.model import cpuset
from hpcvirt.model import shape as shape_model


def charge(empty: placement.HostState, instances: Iterable[state.Instance],
           addresses: Sequence[str],
           ) -> tuple[placement.HostState, tuple[state.Instance, ...]]:
    """Subtract the resources of instances from those of an empty host.

    :param addresses: the address of the device of each PCI pool
    :returns: what is left; and the instances, each with its devices in the
        pools
    :raises InvalidInput: naming an instance that cannot be there
    """
    residents = []
    cells = {cell.id: cell for cell in empty.supply.cells}
    pools = list(empty.supply.pools or ())
    free = empty.free
    owners: dict[int, str] = {}
    device_owners: dict[str, str] = {}
    for instance in instances:
        _check_cpus(instance, cells, owners)
        for number, page_kib, demand in zip(
                instance.cells, instance.holding.placement.pages_kib,
                instance.guest.demand.cells, strict=True):
            cells[number] = _taken(instance, page_kib, demand, cells[number])
        before = tuple(pools)
        for device in instance.devices:
            index = _pool(instance, device, addresses, pools)
            if index is not None:
                # Several instances may have the card of their functions.
                if device.lower() not in addresses:
                    _check_owner(instance, device.lower(), device_owners)
                pools[index] = pools[index]._replace(
                    free=pools[index].free - 1)
        if instance.guest.demand.requests and not instance.devices:
            pools = _as_claimed(instance, empty.supply, pools)
        free = free.minus(instance.guest.sums)
        residents.append(dataclasses.replace(
            instance, holding=dataclasses.replace(
                instance.holding, devices=tuple(
                    pool.free - left.free
                    for pool, left in zip(before, pools, strict=True))))
            if tuple(pools) != before else instance)
    supply = dataclasses.replace(
        empty.supply,
        cells=tuple(cells[cell.id] for cell in empty.supply.cells),
        pools=tuple(pools))
    charged = dataclasses.replace(empty, supply=supply, free=free)
    return charged, tuple(residents)


def find_devices(instance: state.Instance,
                 pools: Sequence[devices.Pool]) -> state.Instance:
    """Find the devices of an instance in the pools that Nova reports.

    nova-compute reports a pool without free devices only until it is started
    again. Then the devices do not become free when the instance leaves; nor do
    virtual functions, whose pool has the address of their card.
    """
    addresses = [str(pool.tags.get('address')) for pool in pools]
    held = tuple(int(address in instance.devices
                     and addresses.count(address) == 1)
                 for address in addresses)
    return dataclasses.replace(instance, holding=dataclasses.replace(
        instance.holding, devices=held)) if any(held) else instance


def check_cells(instance: state.Instance,
                cells: Iterable[supplies.CellSupply]) -> None:
    """Check that a host has the cells of an instance.

    :raises InvalidInput: naming the instance and the cell
    """
    known = {cell.id for cell in cells}
    for number in instance.cells:
        if number not in known:
            raise exception.InvalidInput(
                instance.where, f'{instance.id} is on cell {number}, which '
                'the host does not have')


def _check_owner(instance: state.Instance, device: str,
                 owners: dict[str, str]) -> None:
    if device in owners:
        raise exception.InvalidInput(
            instance.where, f'{instance.id} has the device {device[:40]}, and '
            f'so has {owners[device]}')
    owners[device] = instance.id


def _check_cpus(instance: state.Instance,
                cells: dict[int, supplies.CellSupply],
                owners: dict[int, str]) -> None:
    check_cells(instance, cells.values())
    held = instance.holding.cpus
    own: set[int] = set()
    for number, demand in zip(instance.cells, instance.guest.demand.cells,
                              strict=True):
        cpus = held & cells[number].dedicated
        if len(cpus) < demand.pcpus + demand.emulator_pcpus:
            emulator = (' and isolated emulator threads'
                        if demand.emulator_pcpus else '')
            raise exception.InvalidInput(
                instance.where, f'{instance.id} has '
                f'{words.count_noun(len(cpus), "dedicated CPU")} of cell '
                f'{number}, where its guest cell has {demand.pcpus} dedicated '
                f'vCPUs{emulator}')
        own |= cpus
    if held - own:
        raise exception.InvalidInput(
            instance.where, f'{instance.id} has CPU '
            f'{cpuset.render(held - own)}, which is not a dedicated '
            'CPU of its cells')
    for cpu in sorted(own):
        if cpu in owners:
            raise exception.InvalidInput(
                instance.where, f'{instance.id} has CPU {cpu}, and so has '
                f'{owners[cpu]}')
        owners[cpu] = instance.id


def _taken(instance: state.Instance, page_kib: int | None,
           demand: demands.CellDemand,
           cell: supplies.CellSupply) -> supplies.CellSupply:
    sizes = [pool.size_kib for pool in cell.pages]
    size_kib = page_kib or min(sizes, default=0)
    if page_kib and page_kib not in sizes:
        raise exception.InvalidInput(
            instance.where, f'{instance.id} has pages of {size_kib} KiB, but '
            f'cell {cell.id} has none')
    count = demand.memory_mib * 1024 // size_kib if size_kib else 0
    overcommits = (demand.page_kib is None and
                   demand.policy is shape_model.CPUPolicy.SHARED)
    for pool in cell.pages:
        if (pool.size_kib == size_kib and count > pool.free
                and not overcommits):
            raise exception.InvalidInput(
                instance.where, f'{instance.id} has {count} pages of '
                f'{size_kib} KiB on cell {cell.id}, where {pool.free} of '
                f'{pool.total} are left')
    return allocation.charge_cell(demand, cell, page_kib,
                                  instance.holding.cpus)


def _allocate(allocators: Iterable[devices.Allocator],
              cells: Collection[int]) -> list[int] | None:
    """Allocate devices near the cells of a guest, or else anywhere.

    :returns: the number of devices left in each pool; None if there are too
        few
    """
    for near in (cells or None, None):
        for allocator in allocators:
            left = allocator.allocate(near)
            if left is not None:
                return left
    return None


def _as_claimed(instance: state.Instance, supply: supplies.Supply,
                pools: Sequence[devices.Pool]) -> list[devices.Pool]:
    """Allocate the devices of an instance whose addresses are not known.

    Devices that are in no pool are ignored.
    """
    requests = tuple(request for request in instance.guest.demand.requests
                     if devices.free_devices(request, pools))
    if not requests:
        return list(pools)
    sockets = {cell.id: cell.socket for cell in supply.cells}
    allocators = [
        devices.Allocator(requests, pools, sockets, providers)
        for providers in new_guest.list_offers(dataclasses.replace(
            instance.guest.demand, requests=requests), pools)]
    left = _allocate(allocators, instance.cells)
    if left is None:
        raise exception.InvalidInput(
            instance.where, f'{instance.id} has a flavor with '
            + ' and '.join(f'{request.count} {request.name}'
                           for request in requests)
            + ', but the host has too few left')
    return [pool._replace(free=free)
            for pool, free in zip(pools, left, strict=True)]


def _pool(instance: state.Instance, device: str, addresses: Sequence[str],
          pools: Sequence[devices.Pool]) -> int | None:
    """Find the pool of a device by its address.

    A virtual function has the bus of its physical function. Of several
    physical functions on a bus, any with equal cell and tags will do.

    :returns: the index of the pool; None for a device that is in no pool
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

# SPDX-License-Identifier: Apache-2.0

"""Count the free resources of a fleet, and those that are stranded.

Stranded resources are free, and stay free whichever one of the flavors fills
the host: the PCPUs that the flavor leaves that leaves the fewest, and likewise
the pages. A host that takes no new instances has no free resources.
"""

import collections
import dataclasses
import itertools
import re
import typing
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import capacity
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import count as counts
from hpcvirt.fleet import state

_Kind = typing.TypeVar('_Kind', int, str)


@dataclasses.dataclass(frozen=True)
class Amount:
    """An amount of PCPUs, or of pages of one size, for guests."""

    total: int
    free: int
    stranded: int


@dataclasses.dataclass(frozen=True)
class Whole:
    """The number of cells, sockets or hosts, and of those without guests."""

    total: int
    free: int


@dataclasses.dataclass(frozen=True)
class FreeResources:
    """The free resources of a host or of a fleet.

    :ivar pages: size in KiB -> the pages for guests, of the sizes that flavors
        request
    :ivar cells: cells with PCPUs; a cell is free if no instance uses CPUs,
        memory or pages of it
    :ivar sockets: sockets; a socket is free if all of its cells are
    :ivar hosts: hosts; a host is free if no instance is on it
    :ivar device_sets: kind -> the sets of PCI devices; a set is free if some
        of its devices are, and stranded if only some are
    :ivar devices: name -> the devices and virtual functions; the name is that
        of their PCI alias, physical network or resource class
    """

    pcpus: Amount
    pages: Mapping[int, Amount]
    cells: Whole
    sockets: Whole
    hosts: Whole
    device_sets: Mapping[str, Amount] = dataclasses.field(
        default_factory=dict)
    devices: Mapping[str, Whole] = dataclasses.field(default_factory=dict)


class SetCounts(typing.NamedTuple):
    """The sets of a kind.

    :ivar whole: those of which all pools have free devices
    :ivar broken: those of which only some have
    """

    total: int = 0
    whole: int = 0
    broken: int = 0


def count_sets(pools: Iterable[devices.Pool]) -> dict[str, SetCounts]:
    """Count the sets of each kind on a host.

    In a cloud, Nova does not report pools without free devices, so that a set
    without free devices is not counted.
    """
    found: dict[str, SetCounts] = {}
    for each, own in device_sets.members(pools).items():
        free = sum(pool.free > 0 for pool in own)
        whole = free >= each.pools
        old = found.get(each.kind, SetCounts())
        found[each.kind] = SetCounts(
            old.total + 1, old.whole + whole,
            old.broken + (free > 0 and not whole))
    return dict(sorted(found.items()))


def describe_hosts(fleet: state.Fleet,
                   found: Sequence[counts.InstanceCount]) -> dict[
                       str, FreeResources]:
    """Count the free resources of each host.

    :param found: the counts of all flavors that the hosts may take
    """
    wanted: set[int | None] = set()
    for item in found:
        wanted.update(cell.page_kib for cell in item.guest.demand.cells)
    described = {}
    for host in fleet.hosts:
        fillings = [(item.guest, item.per_host[host.name]) for item in found
                    if item.per_host[host.name]]
        described[host.name] = _describe(host, wanted, fillings)
    return described


def total(rooms: Iterable[FreeResources]) -> FreeResources:
    """Add up the free resources of hosts."""
    rooms = list(rooms)
    return FreeResources(
        _sum(room.pcpus for room in rooms),
        _sum_by_kind(room.pages for room in rooms),
        _sum_whole(room.cells for room in rooms),
        _sum_whole(room.sockets for room in rooms),
        _sum_whole(room.hosts for room in rooms),
        _sum_by_kind(room.device_sets for room in rooms),
        _sum_devices(room.devices for room in rooms))


def _sum_devices(amounts: Iterable[Mapping[str, Whole]]) -> dict[str, Whole]:
    every = list(amounts)
    names: dict[str, None] = {}
    for each in every:
        names.update(dict.fromkeys(each))
    return {name: _sum_whole(each[name] for each in every if name in each)
            for name in names}


def _sum_by_kind(amounts: Iterable[Mapping[_Kind, Amount]],
                 ) -> dict[_Kind, Amount]:
    every = list(amounts)
    kinds = sorted(set(itertools.chain.from_iterable(every)))
    return {kind: _sum(each[kind] for each in every if kind in each)
            for kind in kinds}


def _sum_whole(some: Iterable[Whole]) -> Whole:
    every = list(some)
    return Whole(sum(each.total for each in every),
                 sum(each.free for each in every))


def _sum(amounts: Iterable[Amount]) -> Amount:
    rows = [(item.total, item.free, item.stranded) for item in amounts]
    return Amount(*map(sum, zip(*rows, strict=True))) if rows else Amount(
        0, 0, 0)


def _describe(host: state.FleetHost, wanted: Collection[int | None],
              fillings: Sequence[tuple[guests.Guest, int]]) -> FreeResources:
    """Count the free resources of a host.

    :param wanted: the page sizes and classes that flavors request
    :param fillings: kinds of guests, and the number that fills the host
    """
    supply = host.state.supply
    is_open = host.state.closed is None
    free_pcpus = max(0, host.state.free.pcpus)
    free = _free_pages(supply) if is_open else dict.fromkeys(
        _free_pages(supply), 0)
    smallest = min(free, default=0)
    if not any(size is not None and size < 0 for size in wanted):
        free = {size: number for size, number in free.items()
                if size in wanted or (size == smallest and None in wanted)}
    pcpus, pages = free_pcpus, dict(free)
    for guest, number in fillings:
        pcpus = min(pcpus, free_pcpus - number * guest.sums.pcpus)
        left = _pages_after(guest, number, host.state, free, smallest)
        pages = {size: min(most, left.get(size, most))
                 for size, most in pages.items()}
    cells = [cell for cell in supply.cells if cell.dedicated]
    sockets: dict[int, bool] = {}
    for cell in cells:
        if cell.socket is not None:
            sockets[cell.socket] = (sockets.get(cell.socket, True)
                                    and cell.empty)
    totals: collections.Counter[int] = collections.Counter()
    for cell in supply.cells:
        for pool in cell.pages:
            totals[pool.size_kib] += pool.used + pool.free
    return FreeResources(
        Amount(sum(len(cell.dedicated) for cell in cells), free_pcpus,
               max(0, pcpus)),
        {size: Amount(totals[size], number, max(0, pages[size]))
         for size, number in free.items() if totals[size]},
        Whole(len(cells), is_open * sum(cell.empty for cell in cells)),
        Whole(len(sockets), is_open * sum(sockets.values())),
        Whole(1, int(is_open and not host.instances)),
        {kind: Amount(sets.total, is_open * (sets.whole + sets.broken),
                      is_open * sets.broken) for kind, sets
         in count_sets(supply.pools or ()).items()},
        count_devices(host))


def count_devices(host: state.FleetHost) -> dict[str, Whole]:
    """Count the devices of each name, and those that are free."""
    pools = host.state.supply.pools or ()
    free: collections.Counter[str] = collections.Counter()
    total: collections.Counter[str] = collections.Counter()
    for pool in pools:
        name = name_pool(pool)
        total[name] += pool.free
        free[name] += pool.free * (host.state.closed is None)
    for instance in host.instances:
        for request in instance.guest.demand.requests:
            serving = next((pool for pool in pools
                            if devices.serves(pool, request)), None)
            # In a cloud, Nova does not report a pool without free devices.
            name = (re.sub('-[0-9]+$', '', request.name) if serving is None
                    else name_pool(serving))
            total[name] += request.count
    return {name: Whole(total[name], free[name]) for name in sorted(total)}


def name_pool(pool: devices.Pool) -> str:
    """Name the devices of a pool by their alias, network or class.

    The places of a set have aliases with a number each: ``gpu4-2``.
    """
    prefix = devices.alias_tag('')
    names = [tag.removeprefix(prefix) for tag in pool.tags
             if tag.startswith(prefix)]
    if not names:
        return str(pool.tags.get('physical_network')
                   or pool.tags.get('resource_class') or 'other devices')
    kinds = {re.sub('-[0-9]+$', '', name) for name in names}
    # Cards near the GPUs of sets: gpu2-ib, gpu4-ib and so on.
    ends = {kind.rpartition('-')[2] for kind in kinds}
    if len(kinds) > 1 and len(ends) == 1:
        return ends.pop()
    return min(kinds, key=lambda name: (len(name), name))


def _pages_after(guest: guests.Guest, number: int,
                 host: placement.HostState,
                 free: Mapping[int, int], smallest: int) -> dict[int, int]:
    if guest.demand.pages_by_class:
        # Only the claim chooses the size.
        return _free_pages(capacity.fill(guest, host, number).supply)
    left = dict(free)
    for cell in guest.demand.cells:
        size = cell.page_kib or smallest
        if size in left:
            left[size] -= number * (cell.memory_mib * 1024 // size)
    return left


def _free_pages(supply: supplies.Supply) -> dict[int, int]:
    free: collections.Counter[int] = collections.Counter()
    for cell in supply.cells:
        for pool in cell.pages:
            free[pool.size_kib] += max(0, pool.free)
    return dict(free)

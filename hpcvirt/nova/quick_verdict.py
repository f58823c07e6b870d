# SPDX-License-Identifier: Apache-2.0

"""Tell by counting cells whether a guest fits on a host.

This is enough for most hosts and guests, and it works on the NUMACells of
Nova, without a Supply:

* A host is short if too few of its cells have the CPUs and the pages of a
  guest cell. These are some of the conditions that
  :func:`hpcvirt.fit.cell.obstacle` checks, so that the fit engine refuses
  such a host as well.
* A host has room if the first cells with room, in the order of the claim, also
  have the devices. That is the first thing that
  :func:`hpcvirt.fit.claim.predict` looks for.

All other hosts are for the fit engine to judge, also those whose record is
malformed. A record is examined when it is new: what was counted and found
complete is kept on the NUMATopology, and Nova makes another one when it reads
the host anew or charges a guest to it. The cells that a guest would take are
counted each time.
"""

import dataclasses
import itertools
import math
import operator
import typing
from collections.abc import Callable
from collections.abc import Sequence

from hpcvirt.fit import claim
from hpcvirt.fit import claim_replay
from hpcvirt.fit import demand as demands
from hpcvirt.fit import engine
from hpcvirt.fit import taken_devices
from hpcvirt.model import shape as shape_model
from hpcvirt.nova import adapter
from hpcvirt.nova import lazy_sequence

_PAGES = operator.attrgetter('_obj_size_kb', '_obj_total', '_obj_used')
_ID = operator.attrgetter('_obj_id')
_ROOT_ONLY = {''}

#: Tells of a HostState whether the guest fits, None if that is not clear. It
#: raises what reading malformed data raises.
HostTest = Callable[[typing.Any], bool | None]
CellTest = Callable[[typing.Any], bool]
#: Takes a HostState, as many of its NUMACells as the guest has, and the ids of
#: cells whose free CPUs are all on cores.
RoomTest = Callable[[typing.Any, Sequence[typing.Any], set[int]], bool]

_MAX_ARRANGEMENTS = claim_replay.MAX_ARRANGEMENTS

#: The attributes of a NUMATopology that was examined: page size -> what is
#: free in its cells, and the ids of cells whose free CPUs are all on cores.
COUNTS = 'hpcvirt_counts'
EXAMINED = 'hpcvirt_examined'


def make_test(demand: demands.Demand, packing: bool,
              only_refuse: bool = False) -> HostTest | None:
    """Make a test of HostStates for a new guest.

    :param packing: see :class:`hpcvirt.fit.supply.Supply`
    :param only_refuse: the test never says that a guest fits
    :returns: None for a guest whose cells are not equal, or that has none
    """
    if not demand.cells or not demand.uniform:
        return None
    guest, size = demand.cells[0], len(demand.cells)
    pcpus, (page_kib, needed) = _pcpus(guest), _pages(guest)
    has_rest = _make_rest_test(guest)
    has_room: RoomTest | None = None
    if not only_refuse and _is_plain(demand):
        has_room = (_make_device_test(demand, has_rest, packing)
                    if demand.requests else _make_core_test(guest))

    def fits(host_state: typing.Any) -> bool | None:
        topology = host_state.numa_topology
        cells = topology._obj_cells
        spare = len(cells) - size
        known = getattr(topology, COUNTS, None)
        if known is None:
            # A record that is never read again need not be counted.
            setattr(topology, COUNTS, {})
            able = (cell if len(cell._obj_pcpuset) - len(cell._obj_pinned_cpus)
                    >= pcpus and has_rest(cell) else None for cell in cells)
        else:
            if page_kib not in known:
                known[page_kib] = _count_free(cells, page_kib)
            able = (cell if free >= pcpus and pages >= needed
                    and has_rest(cell) else None for free, pages, cell
                    in zip(*known[page_kib], cells, strict=True))
        found: list[typing.Any] = []
        for cell in able:
            if cell is None:
                spare -= 1
                if spare < 0:
                    return False
                continue
            found.append(cell)
            if len(found) == size:
                break
        else:
            return False
        if has_room is None or math.perm(len(cells), size) > _MAX_ARRANGEMENTS:
            return None
        sound = getattr(topology, EXAMINED, None)
        if sound is None:
            adapter.check_record(host_state)
            sound = set()
            setattr(topology, EXAMINED, sound)
        return has_room(host_state, found, sound) or None

    return fits


def _is_plain(demand: demands.Demand) -> bool:
    """Whether :func:`make_test` can see that a guest fits."""
    guest = demand.cells[0]
    return (guest.policy is shape_model.CPUPolicy.DEDICATED
            and guest.threads in (None, shape_model.ThreadPolicy.PREFER)
            and guest.pcpus > 0 and (guest.page_kib or 0) > 0
            and not guest.memory_mib * 1024 % (guest.page_kib or 1)
            and claim.is_immune(demand)
            and not dataclasses.replace(demand, requests=()).selective
            and all(request.affinity is not shape_model.PCIAffinity.SOCKET
                    for request in demand.requests))


def _count_free(cells: Sequence[typing.Any], page_kib: int,
                ) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the dedicated CPUs that are not pinned, and the free pages.

    Cells that cannot be read have any number of them, so that they are read
    again where the guest might need them.
    """
    return (tuple(_or_any(_free_pcpus, cell) for cell in cells),
            tuple(_or_any(_free_pages, cell, page_kib) for cell in cells))


def _or_any(count: Callable[..., int], *arguments: typing.Any) -> float:
    try:
        return count(*arguments)
    except lazy_sequence.BROKEN:
        return math.inf


def _free_pcpus(cell: typing.Any) -> int:
    """Count the dedicated CPUs of a NUMACell that are not pinned.

    Nova pins no other CPUs than dedicated ones.
    """
    return len(cell._obj_pcpuset) - len(cell._obj_pinned_cpus)


def _free_pages(cell: typing.Any, page_kib: int) -> int:
    """Return -1 if a NUMACell has no pages of this size, 0 for no size."""
    if not page_kib:
        return 0
    for pages in cell._obj_mempages:
        if pages._obj_size_kb == page_kib:
            return int(pages._obj_total - pages._obj_used
                       - getattr(pages, '_obj_reserved', 0))
    return -1


def _pcpus(guest: demands.CellDemand) -> int:
    """Return how many dedicated CPUs a guest cell takes."""
    return (0 if guest.policy is shape_model.CPUPolicy.SHARED
            else guest.pcpus + guest.emulator_pcpus)


def _pages(guest: demands.CellDemand) -> tuple[int, int]:
    """Return the page size, 0 for any, and how many pages a cell takes."""
    page_kib = max(guest.page_kib or 0, 0)
    return page_kib, (-(-guest.memory_mib * 1024 // page_kib) if page_kib
                      else 0)


def _make_rest_test(guest: demands.CellDemand) -> CellTest:
    """Make a test of NUMACells with enough free CPUs.

    They need the pages as well, and the siblings if the guest requires them.
    """
    page_kib, needed = _pages(guest)
    on_siblings = (guest.policy is not shape_model.CPUPolicy.SHARED
                   and guest.threads is shape_model.ThreadPolicy.REQUIRE)

    def has_rest(cell: typing.Any) -> bool:
        if _free_pages(cell, page_kib) < needed:
            return False
        return not on_siblings or _has_siblings(
            cell._obj_siblings, cell._obj_pcpuset - cell._obj_pinned_cpus,
            max(guest.pcpus, 1))

    return has_rest


def _make_core_test(guest: demands.CellDemand) -> RoomTest:
    """Make a test of whether NUMACells have their free CPUs on cores.

    That they lack no field is examined each time, because they are read
    anyway.
    """
    pcpus = _pcpus(guest)

    def has_cores(_host_state: typing.Any, found: Sequence[typing.Any],
                  sound: set[int]) -> bool:
        for cell in found:
            dedicated, pinned = cell._obj_pcpuset, cell._obj_pinned_cpus
            if (not adapter.is_whole(cell)
                    or len(dedicated) - len(pinned) < pcpus):
                return False
            if cell._obj_id in sound:
                continue
            if not _has_sound_pages(cell):
                return False
            if pinned <= dedicated <= set().union(*cell._obj_siblings):
                sound.add(cell._obj_id)
                continue
            missing = pcpus
            for core in cell._obj_siblings:
                missing -= len((core & dedicated) - pinned)
                if missing <= 0:
                    break
            else:
                return False
        return True

    return has_cores


def _make_device_test(demand: demands.Demand, has_rest: CellTest,
                      packing: bool) -> RoomTest:
    """Make a test of whether the first cells with room have the devices."""
    has_cores = _make_core_test(demand.cells[0])
    pcpus, size = _pcpus(demand.cells[0]), len(demand.cells)
    sign = 1 if packing else -1

    def has_devices(host_state: typing.Any, _found: Sequence[typing.Any],
                    sound: set[int]) -> bool:
        cells = host_state.numa_topology._obj_cells
        stats = host_state.pci_stats
        if stats is None or any(
                candidate['mappings'].keys() != _ROOT_ONLY
                for candidate in host_state.allocation_candidates):
            return False
        pools = tuple(map(adapter.read_pool, stats.pools))
        free = {cell._obj_id: _free_pcpus(cell) for cell in cells}
        ordered = cells
        if len(cells) > size:
            near = engine.count_near(free, pools, wants=True)
            ordered = sorted(cells, key=lambda cell: (
                near[cell._obj_id], sign * free[cell._obj_id],
                sign * (cell._obj_memory - cell._obj_memory_usage)))
        found = list(itertools.islice(
            (cell for cell in ordered
             if free[cell._obj_id] >= pcpus and has_rest(cell)), size))
        if not (all(map(_has_sound_pages, cells))
                and has_cores(host_state, found, sound)):
            return False
        ids = {*map(_ID, found)}
        allocator = taken_devices.TakingAllocator(demand.requests, pools, {})
        return ((len(demand.requests) == 1 or allocator.refused() is None)
                and allocator.allocate(ids) is not None
                and allocator.loss(ids) is None)

    return has_devices


def _has_sound_pages(cell: typing.Any) -> bool:
    """Whether all pages of a NUMACell can be read, as the fit engine does."""
    for size_kib, _total, _used in map(_PAGES, cell._obj_mempages):
        if size_kib <= 0:
            return False
    return True


def _has_siblings(siblings: typing.Any, free: typing.Any,
                  needed: int) -> bool:
    for core in siblings:
        threads = len(core)
        if threads > 2:
            return True
        if threads == 2 and core <= free:
            needed -= 2
            if needed <= 0:
                return True
    return False

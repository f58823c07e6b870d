# SPDX-License-Identifier: Apache-2.0

"""Decide by counting host cells whether an instance fits on a host.

This decides about most hosts and instances, and reads Nova's NUMACells without
making a Supply:

* An instance does not fit if too few host cells have the CPUs and pages of a
  guest cell. :func:`hpcvirt.fit.cell.obstacle` checks the same and more, so
  that the fit engine would refuse such a host as well.
* An instance fits if the first host cells with room, in the order of the
  claim, also have the devices. :func:`hpcvirt.fit.claim.predict` looks for
  these cells first.

The fit engine judges all other hosts, including those with a malformed
record. Counts are kept on the NUMATopology, which Nova replaces when it reads
the host again or charges an instance to it. The cells that an instance would
take are counted each time.
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

#: Returns for a HostState whether the instance fits, None if undecided. It
#: raises what reading malformed data raises.
HostTest = Callable[[typing.Any], bool | None]
CellTest = Callable[[typing.Any], bool]
#: Takes a HostState, one of its NUMACells for each guest cell, and the ids of
#: cells whose free CPUs all belong to cores.
RoomTest = Callable[[typing.Any, Sequence[typing.Any], set[int]], bool]

#: The free PCPUs and pages of each cell.
_Free = tuple[tuple[float, ...], tuple[float, ...]]

_MAX_ARRANGEMENTS = claim_replay.MAX_ARRANGEMENTS

#: The most page sizes for which the cells of a host are counted.
MAX_SIZES = 16

#: The attributes of a NUMATopology that was examined: page size -> free PCPUs
#: and pages of its cells, and the ids of cells with all free CPUs on cores.
COUNTS = 'hpcvirt_counts'
EXAMINED = 'hpcvirt_examined'


def make_test(demand: demands.Demand, packing: bool,
              only_refuse: bool = False) -> HostTest | None:
    """Make a test of HostStates for a new instance.

    :param packing: see :class:`hpcvirt.fit.supply.Supply`
    :param only_refuse: make a test that never returns True
    :returns: None for an instance without guest cells or with unequal ones
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
            # Count from the second look on: there may not be one.
            setattr(topology, COUNTS, {})
            able = (cell if len(cell._obj_pcpuset) - len(cell._obj_pinned_cpus)
                    >= pcpus and has_rest(cell) else None for cell in cells)
        else:
            able = (cell if free >= pcpus and pages >= needed
                    and has_rest(cell) else None for free, pages, cell
                    in zip(*_recall_free(known, cells, page_kib), cells,
                           strict=True))
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
    """Whether counting can show that an instance fits."""
    guest = demand.cells[0]
    return (guest.policy is shape_model.CPUPolicy.DEDICATED
            and guest.threads in (None, shape_model.ThreadPolicy.PREFER)
            and guest.pcpus > 0 and (guest.page_kib or 0) > 0
            and not guest.memory_mib * 1024 % (guest.page_kib or 1)
            and claim.is_immune(demand)
            and demand.device_set is None
            and not dataclasses.replace(demand, requests=()).selective
            and all(request.affinity is not shape_model.PCIAffinity.SOCKET
                    for request in demand.requests))


def _recall_free(known: dict[int, _Free], cells: Sequence[typing.Any],
                 page_kib: int) -> _Free:
    """Count, or recall, the free PCPUs and pages of each cell."""
    if page_kib not in known:
        # Tenants choose page sizes, and a host may be kept for long.
        if len(known) >= MAX_SIZES:
            known.clear()
        known[page_kib] = _count_free(cells, page_kib)
    return known[page_kib]


def _count_free(cells: Sequence[typing.Any], page_kib: int,
                ) -> _Free:
    """Return the number of unpinned PCPUs and of free pages of each cell.

    Cells that cannot be read count as infinite, so that they are read again
    if the instance might need them.
    """
    return (tuple(_or_any(_free_pcpus, cell) for cell in cells),
            tuple(_or_any(_free_pages, cell, page_kib) for cell in cells))


def _or_any(count: Callable[..., int], *arguments: typing.Any) -> float:
    try:
        return count(*arguments)
    except lazy_sequence.BROKEN:
        return math.inf


def _free_pcpus(cell: typing.Any) -> int:
    """Count the unpinned PCPUs of a NUMACell; Nova pins no other CPUs."""
    return len(cell._obj_pcpuset) - len(cell._obj_pinned_cpus)


def _free_pages(cell: typing.Any, page_kib: int) -> int:
    """Count free pages; return -1 for no such pages, 0 for any page size."""
    if not page_kib:
        return 0
    for pages in cell._obj_mempages:
        if pages._obj_size_kb == page_kib:
            return int(pages._obj_total - pages._obj_used
                       - getattr(pages, '_obj_reserved', 0))
    return -1


def _pcpus(guest: demands.CellDemand) -> int:
    """Return how many PCPUs a guest cell takes."""
    return (0 if guest.policy is shape_model.CPUPolicy.SHARED
            else guest.pcpus + guest.emulator_pcpus)


def _pages(guest: demands.CellDemand) -> tuple[int, int]:
    """Return the page size, 0 for any, and the pages that a cell takes."""
    page_kib = max(guest.page_kib or 0, 0)
    return page_kib, (-(-guest.memory_mib * 1024 // page_kib) if page_kib
                      else 0)


def _make_rest_test(guest: demands.CellDemand) -> CellTest:
    """Make a test of the pages of NUMACells with enough free CPUs.

    The test also checks the siblings if the thread policy requires them.
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
    """Make a test whether enough free CPUs of NUMACells belong to cores.

    The test also checks that the cells have all fields.
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
    """Make a test whether the first cells with room have the devices."""
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
    """Whether all page pools of a NUMACell can be read."""
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

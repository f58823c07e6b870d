# SPDX-License-Identifier: Apache-2.0

"""See that a host has too few free CPUs or pages for a guest.

Most hosts of a full cloud are refused for this. It shows on the NUMACells of
Nova, without a Supply. The conditions are some of those that
:func:`hpcvirt.fit.cell.obstacle` checks for one guest cell, so that a host
that is short here is refused by the fit engine as well. Whether the others
are refused is for the engine to say.
"""

import typing
from collections.abc import Callable

from hpcvirt.fit import demand as demands
from hpcvirt.model import shape as shape_model


def make_test(demand: demands.Demand) -> Callable[[typing.Any], bool] | None:
    """Make a test of whether a HostState is short of CPUs or pages.

    The test raises what reading malformed data raises.

    :returns: None for a guest whose cells are not equal, or that has none
    """
    if not demand.cells or not demand.uniform:
        return None
    size = len(demand.cells)
    may_take = _make_cell_test(demand.cells[0])

    def is_short(host_state: typing.Any) -> bool:
        cells = host_state.numa_topology._obj_cells
        needed = size
        spare = len(cells) - needed
        for cell in cells:
            if may_take(cell):
                needed -= 1
                if not needed:
                    return False
            else:
                spare -= 1
                if spare < 0:
                    return True
        return False

    return is_short


def _make_cell_test(guest: demands.CellDemand,
                    ) -> Callable[[typing.Any], bool]:
    pins = guest.policy is not shape_model.CPUPolicy.SHARED
    pcpus = guest.pcpus + guest.emulator_pcpus if pins else 0
    on_siblings = pins and guest.threads is shape_model.ThreadPolicy.REQUIRE
    page_kib = max(guest.page_kib or 0, 0)
    memory_kib = guest.memory_mib * 1024

    def may_take(cell: typing.Any) -> bool:
        free = cell._obj_pcpuset - cell._obj_pinned_cpus
        if len(free) < pcpus:
            return False
        if page_kib and not _has_pages(cell):
            return False
        return not on_siblings or _has_siblings(
            cell._obj_siblings, free, max(guest.pcpus, 1))

    def _has_pages(cell: typing.Any) -> bool:
        for pages in cell._obj_mempages:
            if pages._obj_size_kb == page_kib:
                free = (pages._obj_total - pages._obj_used
                        - getattr(pages, '_obj_reserved', 0))
                return bool(memory_kib <= free * page_kib)
        return False

    return may_take


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

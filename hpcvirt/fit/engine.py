# SPDX-License-Identifier: Apache-2.0

"""Decide whether a guest fits on a host, and on which cells.

There are two entry points:

* :func:`place` takes a Demand and a Supply, compiled once for many calls;
* :func:`check` returns no placement, and stops as soon as it has an answer.

The result is a :class:`~hpcvirt.fit.demand.CellAssignment` or a
:class:`~hpcvirt.fit.reasons.Misfit`. It is exact: of all arrangements that
fit, it is the one that Nova's claim tries first.
:mod:`hpcvirt.fit.claim` also considers the defects of the claim.

Only the claim on the compute host chooses cells. It accepts the first
arrangement that fits, in lexicographic order of the sorted cells
(``nova.virt.hardware.numa_fit_instance_to_host`` in Nova 32 to 34).

Only the claim chooses cells. A placement that violates hpcvirt's own extra
specs cannot be changed, so the host is refused instead
(:func:`enforce_scope`).
"""

from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.fit import cell as cells
from hpcvirt.fit import cell_search
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


def check(demand: demands.Demand, supply: supplies.Supply,
          providers: devices.Providers = ()) -> reasons.Misfit | None:
    """Say why a guest does not fit.

    The answer is that of :func:`place`, but cheaper: if host cells need only
    be counted, no more of them than necessary are examined.

    :returns: None if the guest fits
    """
    result: object
    if demand.cells and demand.uniform and not demand.selective:
        result = first_with_room(demand, supply, supply.cells)
    else:
        result = place(demand, supply, providers)
    return result if isinstance(result, reasons.Misfit) else None


def place(demand: demands.Demand, supply: supplies.Supply,
          providers: devices.Providers = (),
          ) -> demands.CellAssignment | reasons.Misfit:
    """Place a guest on the first cells that fit, in the claim's order.

    :param providers: what Placement allocated to each PCI request
    """
    if not demand.cells:
        return demands.CellAssignment(())
    ordered = claim_order(demand, supply)
    ranks = arrange(demand, supply, ordered,
                    cell_search.AffinityCheck(demand, supply, providers))
    if isinstance(ranks, reasons.Misfit):
        return ranks
    chosen = [ordered[rank] for rank in ranks]
    return enforce_scope(demand, supply, demands.CellAssignment(
        cells=tuple(cell.id for cell in chosen),
        pages_kib=tuple(map(cells.page_size, demand.cells, chosen))))


def arrange(demand: demands.Demand, supply: supplies.Supply,
            ordered: Sequence[supplies.CellSupply],
            affinity: cell_search.AffinityCheck,
            ) -> tuple[int, ...] | reasons.Misfit:
    """Find the first arrangement of a guest on host cells in an order.

    :returns: for each guest cell the rank of its host cell
    """
    search = make_search(demand, supply, ordered, cell_search.Effort())
    return (search if isinstance(search, reasons.Misfit)
            else search.first_arrangement(affinity))


def make_search(demand: demands.Demand, supply: supplies.Supply,
                ordered: Sequence[supplies.CellSupply],
                effort: cell_search.Effort,
                ) -> cell_search.CellSearch | reasons.Misfit:
    """Prepare a search for arrangements, or say why there can be none.

    :param ordered: the host cells in the order of their ranks
    :param effort: counts the sets of cells that are tried
    """
    misfit = _too_small(demand, supply)
    if misfit is not None:
        return misfit
    matrix = cell_search.FitMatrix(demand, supply, ordered)
    return matrix.shortage() or cell_search.CellSearch(matrix, effort)


def first_with_room(demand: demands.Demand, supply: supplies.Supply,
                    ordered: Iterable[supplies.CellSupply],
                    ) -> list[supplies.CellSupply] | reasons.Misfit:
    """Find a host cell with room for each of several equal guest cells.

    :param demand: a demand whose guest cells are equal
    :returns: the first such cells in this order, or why there are too few
    """
    misfit = _too_small(demand, supply)
    if misfit is not None:
        return misfit
    found: list[supplies.CellSupply] = []
    obstacles: list[reasons.Misfit] = []
    guest_cell = demand.cells[0]
    for cell in ordered:
        misfit = cells.obstacle(guest_cell, cell, supply.cpu_ratio,
                                supply.ram_ratio)
        if misfit is not None:
            obstacles.append(misfit)
            continue
        found.append(cell)
        if len(found) == len(demand.cells):
            return found
    return reasons.refuse_host(len(found), len(demand.cells), obstacles)


def _too_small(demand: demands.Demand,
               supply: supplies.Supply) -> reasons.Misfit | None:
    if len(supply.cells) >= len(demand.cells):
        return None
    return reasons.Misfit(reasons.Code.HOST_CELLS, {
        'total': len(supply.cells), 'needed': len(demand.cells)})


def claim_order(demand: demands.Demand,
                supply: supplies.Supply) -> list[supplies.CellSupply]:
    """Sort host cells as the claim does.

    Cells are sorted by free PCI devices, then by free CPUs, then by free
    memory. Cells with devices come first for a guest that requests devices,
    and last for a guest that does not. Nova 32 and 33 ignore devices for the
    latter (:class:`hpcvirt.fit.supply.Supply`). If the guest needs every cell
    of the host, the cells are not sorted.
    """
    cells = list(supply.cells)
    if len(cells) <= len(demand.cells):
        return cells
    sign = 1 if supply.packing else -1
    # Only Placement allocates vGPUs; the claim does not know them.
    wants = any(not request.one_pool for request in demand.requests)
    near = count_near(
        [cell.id for cell in cells],
        (supply.pools or ()) if wants or supply.spares_devices else (), wants)
    if demand.cells[0].policy is shape_model.CPUPolicy.SHARED:
        return sorted(cells, key=lambda cell: (
            near[cell.id], -sign * cell.cpu_usage,
            sign * cell.memory_free_mib))
    return sorted(cells, key=lambda cell: (
        near[cell.id], sign * len(cell.free), sign * cell.memory_free_mib))


def count_near(cells: Iterable[int], pools: Iterable[devices.Pool],
               wants: bool) -> dict[int, int]:
    """Count the free devices of each cell, as a key to sort cells by.

    :param wants: whether cells with devices come first; the counts are then
        negative
    """
    near = dict.fromkeys(cells, 0)
    for pool in pools:
        if pool.cell in near and pool.is_pci:
            near[pool.cell] += -pool.free if wants else pool.free
    return near


def enforce_scope(demand: demands.Demand, supply: supplies.Supply,
                  placement: demands.CellAssignment,
                  ) -> demands.CellAssignment | reasons.Misfit:
    """Accept or refuse a placement.

    Only the claim on the compute host chooses cells. A placement that violates
    the extra specs cannot be changed, so the host is refused instead.

    :returns: the same placement, or why the host is refused
    """
    one_socket = demand.numa_scope is shape_model.NUMAScope.SOCKET
    if not one_socket and not demand.exclusive_cells:
        return placement
    used = [cell for cell in supply.cells if cell.id in placement.cells]
    misfit = _several_sockets(used) if one_socket else None
    if misfit is None and demand.exclusive_cells:
        misfit = _occupied(used)
    return misfit or placement


def _several_sockets(
        used: list[supplies.CellSupply]) -> reasons.Misfit | None:
    if len(used) == 1:
        return None
    sockets = set()
    for cell in used:
        if cell.socket is None:
            return reasons.Misfit(reasons.Code.SOCKET_UNKNOWN,
                                  {'cell': cell.id})
        sockets.add(cell.socket)
    if len(sockets) == 1:
        return None
    return reasons.Misfit(reasons.Code.SCOPE_SOCKET, {
        'cells': reasons.cells(sorted(cell.id for cell in used)),
        'sockets': ', '.join(map(str, sorted(sockets)))})


def _occupied(used: list[supplies.CellSupply]) -> reasons.Misfit | None:
    for cell in used:
        if cell.empty:
            continue
        pinned = len(cell.dedicated) - len(cell.free)
        pages = sum(pool.used * pool.size_kib for pool in cell.pages) // 1024
        amounts = (
            (pinned, 'PCPU' if pinned == 1 else 'PCPUs'),
            (cell.cpu_usage,
             'shared vCPU' if cell.cpu_usage == 1 else 'shared vCPUs'),
            (max(cell.memory_used_mib, pages), 'MiB'))
        return reasons.Misfit(reasons.Code.CELL_OCCUPIED, {
            'cell': cell.id,
            'what': ', '.join(f'{amount} {unit}'
                              for amount, unit in amounts if amount)})
    return None

# SPDX-License-Identifier: Apache-2.0

"""Check the host cells of a placement against hpcvirt's own extra specs."""

from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


def enforce(demand: demands.Demand, supply: supplies.Supply,
            placement: cell_assignments.CellAssignment,
            ) -> cell_assignments.CellAssignment | reasons.Misfit:
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

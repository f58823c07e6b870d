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

"""Check the host cells of a placement against hpcvirt's own extra specs."""

from hpcvirt.fit import demand as demands
from hpcvirt.fit import placement as placements
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


def enforce(demand: demands.Demand, supply: supplies.Supply,
            placement: placements.Placement,
            ) -> placements.Placement | reasons.Misfit:
    """Accept or refuse a placement.

    Only the claim on the compute host chooses cells. A placement outside of
    the scope therefore cannot be changed; the host is refused instead.

    :returns: the same placement, or why the host is refused
    """
    one_package = demand.numa_scope is shape_model.NUMAScope.PACKAGE
    if not one_package and not demand.exclusive_cells:
        return placement
    used = [cell for cell in supply.cells if cell.id in placement.cells]
    misfit = _several_packages(used) if one_package else None
    if misfit is None and demand.exclusive_cells:
        misfit = _occupied(used)
    return misfit or placement


def _several_packages(
        used: list[supplies.CellSupply]) -> reasons.Misfit | None:
    if len(used) == 1:
        return None
    packages = set()
    for cell in used:
        if cell.package is None:
            return reasons.Misfit(reasons.Code.PACKAGE_UNKNOWN,
                                  {'cell': cell.id})
        packages.add(cell.package)
    if len(packages) == 1:
        return None
    return reasons.Misfit(reasons.Code.SCOPE_PACKAGE, {
        'cells': reasons.cells(sorted(cell.id for cell in used)),
        'packages': ', '.join(map(str, sorted(packages)))})


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

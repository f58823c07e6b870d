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

"""What hpcvirt's own extra specs ask of the cells that Nova would use."""

from collections.abc import Iterable

from hpcvirt.fit import demand as demands
from hpcvirt.fit import placement as placements
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


def judge(demand: demands.Demand, supply: supplies.Supply,
          placed: placements.Placement,
          ) -> placements.Placement | reasons.Misfit:
    """Let a placement pass, or refuse it.

    Only the claim chooses cells, so all that can be done about a placement
    outside of the scope is not to let the guest come to this host.
    """
    packaged = demand.numa_scope is shape_model.NUMAScope.PACKAGE
    if not packaged and not demand.exclusive_cells:
        return placed
    used = [cell for cell in supply.cells if cell.id in placed.cells]
    misfit = _one_package(used) if packaged else None
    if misfit is None and demand.exclusive_cells:
        misfit = _empty(used)
    return misfit or placed


def _one_package(used: list[supplies.CellSupply]) -> reasons.Misfit | None:
    if len(used) == 1:
        return None
    for cell in used:
        if cell.package is None:
            return reasons.Misfit(reasons.Code.PACKAGE_UNKNOWN,
                                  {'cell': cell.id})
    packages = {cell.package for cell in used}
    if len(packages) == 1:
        return None
    return reasons.Misfit(reasons.Code.SCOPE_PACKAGE, {
        'cells': _listed(cell.id for cell in used),
        'packages': _listed(p for p in packages if p is not None)})


def _empty(used: list[supplies.CellSupply]) -> reasons.Misfit | None:
    for cell in used:
        if cell.empty:
            continue
        pinned = len(cell.dedicated) - len(cell.free)
        pages = sum(pool.used * pool.size_kib for pool in cell.pages) // 1024
        parts = []
        if pinned:
            parts.append(f'{pinned} PCPUs')
        if cell.cpu_usage:
            parts.append(f'{cell.cpu_usage} shared vCPUs')
        if cell.memory_used_mib or pages:
            parts.append(f'{max(cell.memory_used_mib, pages)} MiB')
        return reasons.Misfit(reasons.Code.CELL_OCCUPIED, {
            'cell': cell.id, 'what': ', '.join(parts)})
    return None


def _listed(numbers: Iterable[int]) -> str:
    return ', '.join(map(str, sorted(numbers)))

# SPDX-License-Identifier: Apache-2.0

"""Choose the CPUs to which Nova pins a guest on its host cells.

Pins do not decide whether a guest fits, but which resources the host has left.
The rules are those of ``nova.virt.hardware._pack_instance_onto_cores``.
"""

import dataclasses
import itertools
from collections.abc import Sequence

from hpcvirt.fit import demand as demands
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

_ISOLATE = shape_model.ThreadPolicy.ISOLATE


@dataclasses.dataclass(frozen=True, slots=True)
class Pins:
    """The dedicated CPUs of one guest cell.

    :ivar cpus: a host CPU for each dedicated vCPU, in vCPU order
    :ivar emulator: host CPUs of the emulator threads
    :ivar idle: SMT siblings kept idle for an isolated guest
    """

    cpus: tuple[int, ...]
    emulator: frozenset[int] = frozenset()
    idle: frozenset[int] = frozenset()

    @property
    def taken(self) -> frozenset[int]:
        """All CPUs that other instances cannot use."""
        return self.emulator | self.idle | frozenset(self.cpus)


def pin_guest(demand: demands.Demand, supply: supplies.Supply,
              numbers: Sequence[int]) -> frozenset[int]:
    """Return the dedicated CPUs of a whole guest.

    :param numbers: for each guest cell the id of its host cell
    """
    cells = {cell.id: cell for cell in supply.cells}
    return frozenset[int]().union(*(
        choose(own, cells[number]).taken
        for number, own in zip(numbers, demand.cells, strict=True)))


def choose(demand: demands.CellDemand, cell: supplies.CellSupply) -> Pins:
    """Choose pins for a guest cell on a host cell where it fits."""
    if demand.policy is shape_model.CPUPolicy.SHARED:
        return Pins(())
    isolated = demand.threads is _ISOLATE
    if not isolated and not demand.emulator_pcpus:
        cpus = _whole_cores(demand.pcpus, cell)
        if len(cpus) == demand.pcpus:
            return Pins(cpus)
    cores = [free for core in cell.siblings
             if (free := sorted(core & cell.free))]
    cpus = _spread(demand, cell, cores)
    if isolated:
        rest = [core for core in cores if not set(core) & set(cpus)]
    else:
        rest = [[cpu for cpu in core if cpu not in cpus] for core in cores]
    emulator = frozenset(itertools.islice(
        itertools.chain(*rest), demand.emulator_pcpus))
    own = emulator | frozenset(cpus)
    idle = frozenset().union(*(
        core for core in cell.siblings if isolated and core & own)) - own
    return Pins(cpus, emulator, idle)


def _whole_cores(needed: int, cell: supplies.CellSupply) -> tuple[int, ...]:
    """Take the first free cores with the most threads, as _spread does.

    Stop when there are enough: a cell may have thousands of cores.
    """
    width, free = cell.threads_per_core, cell.free
    cpus: list[int] = []
    for core in cell.siblings:
        if len(cpus) >= needed:
            break
        if len(core) == width and core <= free:
            cpus += sorted(core)
    return tuple(cpus[:needed])


def _spread(demand: demands.CellDemand, cell: supplies.CellSupply,
            cores: list[list[int]]) -> tuple[int, ...]:
    """Fill cores with vCPUs, using as many threads per core as possible."""
    needed = demand.pcpus
    if demand.threads is _ISOLATE:
        width = cell.threads_per_core
        whole = [core for core in cores if len(core) >= width]
        return tuple(core[0] for core in whole[:needed])
    widest = max(map(len, cores), default=0)
    for threads in range(widest, 0, -1):
        wide = [core[:threads] for core in cores if len(core) >= threads]
        if threads * len(wide) >= needed:
            return tuple(itertools.chain(*wide))[:needed]
    return tuple(itertools.chain(*cores))[:needed]

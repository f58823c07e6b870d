# SPDX-License-Identifier: Apache-2.0

"""The resources that a guest needs, compiled once per request.

A :class:`~hpcvirt.model.shape.Shape` (or, in the scheduler, a RequestSpec)
becomes a :class:`Demand`, which is then compared with the
:class:`~hpcvirt.fit.supply.Supply` of each host.

If the guest fits, its guest cells get host cells: a :class:`CellAssignment`.
"""

import dataclasses
import functools
from collections.abc import Hashable

from hpcvirt.fit import devices
from hpcvirt.model import shape as shape_model


@dataclasses.dataclass(frozen=True, slots=True)
class CellDemand:
    """The resources that one guest cell needs from its host cell.

    :ivar policy: CPU policy; Nova's None means shared
    :ivar threads: thread policy; None is Nova's default, which is prefer
    :ivar pcpus: dedicated vCPUs
    :ivar vcpus: shared vCPUs
    :ivar memory_mib: memory
    :ivar page_kib: page size in KiB, a class of sizes, or None
    :ivar emulator_pcpus: 1 if the emulator threads of the guest get a PCPU
        of their own in addition to this cell's vCPUs (guest cell 0 under
        ``hw:emulator_threads_policy=isolate``)
    """

    policy: shape_model.CPUPolicy
    threads: shape_model.ThreadPolicy | None
    pcpus: int
    vcpus: int
    memory_mib: int
    page_kib: int | shape_model.PageClass | None = None
    emulator_pcpus: int = 0

    @property
    def pages_by_class(self) -> bool:
        """Whether its page size is a class (small, large or any).

        Nova replaces it by a size on the first host cell that it tries.
        """
        return self.page_kib is not None and self.page_kib < 0


@dataclasses.dataclass(frozen=True)
class Demand:
    """The resources that a whole guest needs.

    :ivar cells: one per guest cell, in guest order; empty for a guest
        without NUMA topology
    :ivar requests: PCI requests, in the order in which Nova serves them
    :ivar physnets: physical networks of the guest; if one has affinity to
        host cells, the guest must use one of these cells
    :ivar tunneled: whether the guest has tunnelled networks, whose affinity
        counts like that of a physical network
    :ivar numa_scope: what the host cells must have in common
    :ivar exclusive_cells: whether the host cells must be empty
    :ivar device_set: the kind of the set that the devices of all requests
        belong to, see :mod:`hpcvirt.fit.device_sets`
    :ivar numbers: the numbers of the guest cells that an earlier claim left;
        empty for 0, 1 and so on
    """

    cells: tuple[CellDemand, ...]
    requests: tuple[devices.DeviceRequest, ...] = ()
    physnets: frozenset[str] = frozenset()
    tunneled: bool = False
    numa_scope: shape_model.NUMAScope = shape_model.NUMAScope.HOST
    exclusive_cells: bool = False
    numbers: tuple[int, ...] = ()
    device_set: str | None = None

    @functools.cached_property
    def uniform(self) -> bool:
        """Whether all guest cells are equal: host cells are only counted."""
        return all(cell == self.cells[0] for cell in self.cells)

    @functools.cached_property
    def selective(self) -> bool:
        """Whether it matters which host cells the guest uses."""
        return bool(self.requests or self.physnets or self.tunneled or
                    self.numa_scope is not shape_model.NUMAScope.HOST or
                    self.exclusive_cells)

    @functools.cached_property
    def immune(self) -> bool:
        """Whether no defect of the claim matters on any cells with room."""
        first = self.cells[0]
        return (self.uniform and not self.pages_by_class and
                (first.pcpus > 0 or
                 first.policy is shape_model.CPUPolicy.SHARED) and
                not (first.emulator_pcpus and
                     first.threads is shape_model.ThreadPolicy.ISOLATE))

    @functools.cached_property
    def key(self) -> Hashable:
        """A key of its needs: guests with equal keys fit on the same hosts."""
        return (self.cells, self.physnets, self.tunneled, self.numa_scope,
                self.exclusive_cells, self.device_set,
                tuple(map(devices.key, self.requests)))

    @functools.cached_property
    def pages_by_class(self) -> bool:
        """Whether the page size of some guest cell is a class."""
        return any(cell.pages_by_class for cell in self.cells)


def compile_shape(shape: shape_model.Shape) -> Demand:
    """Compile the demand of a Shape."""
    isolated = shape.emulator_threads is shape_model.EmulatorThreads.ISOLATE
    pinned = shape.cpu_policy is not shape_model.CPUPolicy.SHARED
    cells = tuple(
        CellDemand(
            policy=shape.cpu_policy, threads=shape.thread_policy,
            pcpus=cell.pcpus, vcpus=cell.vcpus, memory_mib=cell.memory_mib,
            page_kib=cell.page_kib or None,
            emulator_pcpus=int(isolated and pinned and index == 0))
        for index, cell in enumerate(shape.cells))
    return Demand(
        cells=cells,
        requests=tuple(devices.request(r) for r in shape.devices),
        numa_scope=shape.numa_scope, exclusive_cells=shape.exclusive_cells,
        device_set=shape.device_set)


@dataclasses.dataclass(frozen=True, slots=True)
class CellAssignment:
    """The host cells on which a guest is placed.

    :ivar cells: for each guest cell, in guest order, the id of its host cell
    :ivar pages_kib: for each guest cell the page size that it gets; None
        if the guest cell requests none
    :ivar providers: the resource providers of each PCI request's devices, if
        Placement has to allocate certain ones; empty if the claim chooses
    """

    cells: tuple[int, ...]
    pages_kib: tuple[int | None, ...] = ()
    providers: tuple[tuple[str, ...], ...] = ()

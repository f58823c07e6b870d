# SPDX-License-Identifier: Apache-2.0

"""Hosts whose resources are partly used, for the fit engine."""

from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shapes

#: More than any host has.
AMPLE = guests.Resources(2 ** 40, 2 ** 40, 2 ** 40, 2 ** 40)


def cell(machine, dedicated, shared=(), pinned=(), pages=None, **fields):
    """Make what is left of a host cell.

    :param pages: size in KiB -> (used, reserved)
    """
    dedicated, shared = frozenset(dedicated), frozenset(shared)
    used = dedicated | shared
    taken = pages or {}
    left = []
    for pool in machine.pages:
        own, reserved = taken.get(pool.size_kib, (0, 0))
        left.append(supplies.PageSupply(pool.size_kib, pool.total, own,
                                        pool.total - own - reserved))
    return supplies.CellSupply(
        machine.id, machine.socket, dedicated, dedicated - frozenset(pinned),
        shared, tuple(core & used for core in machine.siblings if core & used),
        fields.pop('cpu_usage', 0), machine.memory_mib,
        fields.pop('memory_used_mib', 0), tuple(left), **fields)


def state(supply):
    """Make a host whose totals never refuse a guest."""
    return placement.HostState(supply, AMPLE)


def guest(shape):
    """Compile a shape without a flavor."""
    return guests.compile_shape(shape, shape.cpus, shape.memory_mib)


def equal_cells(count, pcpus, mib, page_kib=2048):
    """Compile a guest of equal cells with dedicated CPUs."""
    return guest(shapes.Shape(
        (shapes.GuestCell(pcpus, 0, mib, page_kib),) * count,
        cpu_policy=shapes.CPUPolicy.DEDICATED))

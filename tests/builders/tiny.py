# SPDX-License-Identifier: Apache-2.0

"""Small hosts and guests."""

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape

HUGE_KIB = 2048
GIANT_KIB = 1 << 20

DEDICATED = shape.CPUPolicy.DEDICATED
MIXED = shape.CPUPolicy.MIXED
SHARED = shape.CPUPolicy.SHARED


def host_cell(number=0, pcpus=8, taken=0, threads=1, **fields):
    """A cell of eight PCPUs and 16 GiB, half of it in pages of 2 MiB.

    :param taken: number of its PCPUs that are pinned, the first ones
    :param fields: fields of the CellSupply that differ
    """
    first = number * 64
    cpus = range(first, first + pcpus)
    return supplies.CellSupply(**{
        'id': number, 'socket': number // 2,
        'dedicated': frozenset(cpus), 'free': frozenset(cpus[taken:]),
        'shared': frozenset(),
        'siblings': tuple(frozenset(cpus[cpu:cpu + threads])
                          for cpu in range(0, pcpus, threads)),
        'cpu_usage': 0, 'memory_mib': 16384, 'memory_used_mib': 0,
        'pages': (pages(4, 2 << 20), pages(HUGE_KIB, 4096)), **fields})


def pages(size_kib, total, used=0, reserved=0):
    return supplies.PageSupply(size_kib, total, used, total - used - reserved)


def host(*taken, pools=(), **fields):
    """A host; the arguments are the pinned PCPUs of each cell."""
    return supplies.Supply(
        tuple(host_cell(number, taken=count)
              for number, count in enumerate(taken)), pools, **fields)


def guest_cell(pcpus=4, memory_mib=1024, page_kib=HUGE_KIB, **fields):
    return demands.CellDemand(**{
        'policy': DEDICATED, 'threads': None, 'pcpus': pcpus, 'vcpus': 0,
        'memory_mib': memory_mib, 'page_kib': page_kib, **fields})


def guest(*pcpus, **fields):
    """A guest; the arguments are the dedicated CPUs of each cell."""
    return demands.Demand(tuple(guest_cell(count) for count in pcpus),
                          **fields)


def request(alias='gpu', count=1, affinity='required'):
    return devices.request(shape.GuestDevices(
        alias, count, shape.PCIAffinity(affinity)))


def gpus(*counts, alias='gpu'):
    """Pools; the arguments are the free devices of each cell."""
    return tuple(devices.pool(cell, count, alias)
                 for cell, count in enumerate(counts) if count)

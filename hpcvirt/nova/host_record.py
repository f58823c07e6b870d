# SPDX-License-Identifier: Apache-2.0

"""Compute a digest that shows whether the record of a host has changed.

nova-scheduler reads the record of each host from the database for each
request. The time of the last change has a resolution of one second and is too
coarse. The digest is computed from the attributes in which
oslo.versionedobjects stores the fields.
"""

import hashlib
import itertools
import marshal
import operator
import typing

from hpcvirt.nova import lazy_sequence

_PAGES = operator.attrgetter('_obj_size_kb', '_obj_total', '_obj_used',
                             '_obj_reserved')

#: This version of marshal writes no references, so that the bytes depend on
#: values only.
_VERSION = 2

#: The most CPU layouts that are remembered for a cell id, and about the most
#: cell ids. A layout that was forgotten gets another number.
MAX_LAYOUTS = 64
#: The most CPUs of a layout that is remembered, and of all together; then all
#: are forgotten. A CPU takes about 100 bytes.
MAX_CPUS_OF_A_LAYOUT = 1 << 12
MAX_CPUS = 1 << 18
_cpus = 0
_layouts: dict[int, tuple[tuple[typing.Any, int], ...]] = {}
_numbers = itertools.count()


def digest(host_state: typing.Any) -> bytes | None:
    """Compute a digest of the NUMA cells, PCI devices and ratios of a host.

    The bytes are equal only if all of these are equal.

    :returns: None if the record is malformed
    """
    try:
        stats = host_state.pci_stats
        record = marshal.dumps((
            [_read(cell) for cell in host_state.numa_topology._obj_cells],
            stats and stats.pools, host_state.cpu_allocation_ratio,
            host_state.ram_allocation_ratio), _VERSION)
    except lazy_sequence.BROKEN:
        return None
    return hashlib.blake2b(record, digest_size=16).digest()


def _read(cell: typing.Any) -> tuple[typing.Any, ...]:
    number, pinned = cell._obj_id, cell._obj_pinned_cpus
    pages, network = cell._obj_mempages, cell._obj_network_metadata
    if pinned.__class__ is not cell._obj_pcpuset.__class__:
        raise TypeError('not all are sets of CPUs')
    return (number, _number_layout(number, cell), cell._obj_socket,
            cell._obj_cpu_usage, cell._obj_memory, cell._obj_memory_usage,
            len(pages), len(pinned), *pinned,
            *itertools.chain.from_iterable(map(_PAGES, pages)),
            network._obj_tunneled, *network._obj_physnets)


def _number_layout(cell_id: int, cell: typing.Any) -> int:
    """Return a number for the CPUs of a cell, which many hosts share.

    Comparing sets takes less time than serializing them.
    """
    cpus = siblings, dedicated, shared = (
        cell._obj_siblings, cell._obj_pcpuset, cell._obj_cpuset)
    for layout, number in _layouts.get(cell_id, ()):
        if layout == cpus:
            return number
    number = next(_numbers)
    size = len(dedicated) + len(shared) + sum(map(len, siblings))
    if size > MAX_CPUS_OF_A_LAYOUT:
        return number
    # Copy the sets: the cell may be changed in place.
    layout = ([frozenset(core) for core in siblings], frozenset(dedicated),
              frozenset(shared))
    global _cpus  # noqa: PLW0603
    _cpus += size
    if len(_layouts) > MAX_LAYOUTS or _cpus > MAX_CPUS:
        _layouts.clear()
        _cpus = size
    known = _layouts.get(cell_id, ())[-MAX_LAYOUTS + 1:]
    _layouts[cell_id] = (*known, (layout, number))
    return number

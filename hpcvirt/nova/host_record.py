# SPDX-License-Identifier: Apache-2.0

"""Tell whether a host has reported anew.

nova-scheduler reads the record of each host from the database and decodes it
for each request. The time of its last change has a resolution of a second,
so that only the record itself tells. Its digest is made from the attributes in
which oslo.versionedobjects stores the fields.
"""

import hashlib
import itertools
import marshal
import operator
import typing

from hpcvirt.nova import lazy_sequence

_PAGES = operator.attrgetter('_obj_size_kb', '_obj_total', '_obj_used',
                             '_obj_reserved')

#: Plain and small: marshal writes no references, so that the bytes depend on
#: values only.
_VERSION = 2


def digest(host_state: typing.Any) -> bytes | None:
    """Compute a digest of the NUMA cells, PCI devices and ratios of a host.

    The bytes are equal only if all of these are equal.

    :returns: None if the record is not as Nova writes it
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
    shared, dedicated = cell._obj_cpuset, cell._obj_pcpuset
    pinned, siblings = cell._obj_pinned_cpus, cell._obj_siblings
    pages, network = cell._obj_mempages, cell._obj_network_metadata
    if not (shared.__class__ is dedicated.__class__ is pinned.__class__):
        raise TypeError('not all are sets of CPUs')
    return (cell._obj_id, cell._obj_socket, cell._obj_cpu_usage,
            cell._obj_memory, cell._obj_memory_usage, len(shared),
            len(dedicated), len(pinned), len(pages), *map(len, siblings), None,
            *shared, *dedicated, *pinned,
            *itertools.chain.from_iterable(siblings),
            *itertools.chain.from_iterable(map(_PAGES, pages)),
            network._obj_tunneled, *network._obj_physnets)

# SPDX-License-Identifier: Apache-2.0

"""The extra specs that the plug-ins of nova-scheduler read themselves.

Nova has compiled all others into the NUMA topology and the PCI requests of an
instance before the plug-ins see them. nova-scheduler therefore need not load
the table of all keys (:mod:`hpcvirt.specs.vocabulary`).
"""

from collections.abc import Mapping

from hpcvirt.model import shape
from hpcvirt.specs import extra_spec_key

MEM_PAGE_SIZE = extra_spec_key.text(
    'hw:mem_page_size',
    r'(large|small|any|\d+([kKMGT]i?)?(b|bit|B)?)',
    "The size of the pages of the guest's memory, in KiB or with a unit "
    '(2048, 2MB, 1GB), or a class of sizes (small, large, any).')
NUMA_SCOPE = extra_spec_key.choice(
    'hpcvirt:numa_scope', tuple(shape.NUMAScope),
    'Whether the host cells of the guest may belong to any sockets of the '
    'host (host, the default) or must belong to one socket (socket).')
EXCLUSIVE_CELLS = extra_spec_key.flag(
    'hpcvirt:exclusive_cells', 'Whether the guest starts only on host cells '
    'on which no other guest with a NUMA topology has CPUs or memory; the '
    'default is false.')
DEVICE_SET = extra_spec_key.text(
    'hpcvirt:device_set', shape.DEVICE_SET_KIND,
    "The kind of the set that the guest's PCI devices belong to, as named by "
    'hpcvirt_device_sets in [pci]device_spec: the guest gets the devices of '
    'one such set.')


def numa_scope(specs: Mapping[str, str]) -> shape.NUMAScope:
    """Read ``hpcvirt:numa_scope``.

    :raises InvalidInput: if it is not one of its values
    """
    row = NUMA_SCOPE
    if row.name not in specs:
        return shape.NUMAScope.HOST
    row.check(specs[row.name])
    return shape.NUMAScope(specs[row.name])


def exclusive_cells(specs: Mapping[str, str]) -> bool:
    """Read ``hpcvirt:exclusive_cells``.

    :raises InvalidInput: if it is not a boolean
    """
    row = EXCLUSIVE_CELLS
    if row.name not in specs:
        return False
    row.check(specs[row.name])
    return extra_spec_key.truth(specs[row.name]) is True


def device_set(specs: Mapping[str, str]) -> str | None:
    """Read ``hpcvirt:device_set``.

    :returns: the kind of the set of devices; None if there is none
    :raises InvalidInput: if it is malformed
    """
    row = DEVICE_SET
    if row.name not in specs:
        return None
    row.check(specs[row.name])
    return specs[row.name]

# SPDX-License-Identifier: Apache-2.0

"""Write the options of Nova that a host needs, and its traits.

nova-compute reads ``provider.yaml`` only when it starts, and leaves a trait in
Placement that was taken out of the file. What changes while a host runs (its
overhead, its quarantine) is therefore set through the Placement API, and not
here. The file has the traits that the planned flavors require.
"""

import json
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from hpcvirt.deployment import tree
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import planned as plans
from hpcvirt.specs import resources
from hpcvirt.specs import vocabulary


def compute(planned: plans.PlannedHost, plan: plans.Plan) -> Iterator[str]:
    """Write the options of nova-compute, with a comment on each."""
    settings = planned.settings
    yield '[DEFAULT]'
    yield from tree.comment(
        'For the host, without the emulators of its guests: '
        f'{format_kept(planned)}.')
    yield f'reserved_host_memory_mb = {settings.reserved_host_memory_mb}'
    if settings.reserved_huge_pages:
        yield from tree.comment('Pages for programs of the host, which no '
                                'guest gets.', 'Nova-Hugepages')
    for item in settings.reserved_huge_pages:
        yield (f'reserved_huge_pages = node:{item.node},size:{item.size},'
               f'count:{item.count}')
    yield ''
    yield '[compute]'
    yield from tree.comment('One guest CPU on each; whole cores of every '
                            'cell.', 'Nova-Cpus')
    yield f'cpu_dedicated_set = {settings.cpu_dedicated_set}'
    if settings.shared:
        yield from tree.comment('Emulator threads, and guests without '
                                'dedicated CPUs.', 'Nova-Cpus')
        yield f'cpu_shared_set = {settings.cpu_shared_set}'
    yield from _packing(plan)
    if settings.pci_device_spec or find_aliases(plan):
        yield ''
        yield '[pci]'
    if settings.pci_device_spec:
        yield from tree.comment('The devices that guests get.',
                                'Nova-Devices')
    for spec in settings.pci_device_spec:
        yield f'device_spec = {json.dumps(spec)}'
    yield from _aliases(plan)
    for mdev in settings.mdev_types if planned.offered else ():
        yield ''
        yield '[devices]'
        yield f'enabled_mdev_types = {mdev.name}'
        yield ''
        yield f'[mdev_{mdev.name}]'
        yield f'device_addresses = {",".join(mdev.device_addresses)}'
        yield f'mdev_class = {mdev.mdev_class}'


def controller(plan: plans.Plan) -> Iterator[str]:
    """Write what nova-api and nova-scheduler must have as the hosts do."""
    if plan.packing:
        yield '[compute]'
        yield from _packing(plan)
        yield ''
    if find_aliases(plan):
        yield '[pci]'
        yield from _aliases(plan)


def _packing(plan: plans.Plan) -> Iterator[str]:
    """Write in which order Nova fills cells."""
    if plan.packing:
        yield from tree.comment('Nova fills one cell before the next; the '
                                'same on hosts and nova-scheduler.',
                                'Nova-Cpus')
        yield 'packing_host_numa_cells_allocation_strategy = true'


def find_aliases(plan: plans.Plan) -> list[Mapping[str, str]]:
    """List the PCI aliases that the flavors name, of all classes."""
    found: list[Mapping[str, str]] = []
    for planned in plan.hosts:
        found += [item for item in planned.settings.pci_alias
                  if item not in found]
    return found


def _aliases(plan: plans.Plan) -> Iterator[str]:
    aliases = find_aliases(plan)
    if aliases:
        yield from tree.comment('The same on hosts, nova-api and '
                                'nova-scheduler.', 'Nova-Devices')
    for item in aliases:
        yield f'alias = {json.dumps(item)}'


def format_kept(planned: plans.PlannedHost) -> str:
    """Say how much memory of each cell the host keeps."""
    cells: dict[int, list[int]] = {}
    for cell, rest in planned.rest_mib.items():
        cells.setdefault(rest, []).append(cell)
    return '; '.join(f'{cpu_partition.format_cells(numbers)} {rest} MiB'
                     for rest, numbers in cells.items())


#: Traits that "hpcvirt host accept" sets.
_CHANGING = 'CUSTOM_HPCVIRT_'


def make_provider(planned: plans.PlannedHost,
                  plan: plans.Plan) -> dict[str, Any] | None:
    """Write the document; None for a host that needs no trait."""
    found: set[str] = set()
    for item in plan.flavors:
        if item.per_host.get(planned.name):
            found |= resources.traits(item.flavor.extra_specs,
                                      vocabulary.REQUIRED)
    traits = sorted(trait for trait in found if trait.startswith('CUSTOM_')
                    and not trait.startswith(_CHANGING))
    if not traits:
        return None
    return {
        'meta': {'schema_version': '1.0'},
        'providers': [{
            'identification': {'uuid': '$COMPUTE_NODE'},
            'traits': {'additional': traits}}],
    }

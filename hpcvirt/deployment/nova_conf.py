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

"""Write the options of Nova that a host needs."""

import json
from collections.abc import Iterator

from hpcvirt.deployment import tree
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import json_document
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset


def compute(planned: plans.PlannedHost,
            profile: profiles.Profile) -> Iterator[str]:
    """Write the options of nova-compute, with a comment on each."""
    settings = planned.settings
    yield '[DEFAULT]'
    yield from tree.comment(
        f'For the host, without the emulators of its guests: {kept(planned)}.')
    yield f'reserved_host_memory_mb = {settings.reserved_host_memory_mib}'
    if settings.reserved_pages:
        yield from tree.comment('Pages for programs of the host, which no '
                                'guest gets.', 'Nova-Hugepages')
    for item in settings.reserved_pages:
        yield (f'reserved_huge_pages = node:{item.node},size:{item.size_kib},'
               f'count:{item.count}')
    yield ''
    yield '[compute]'
    yield from tree.comment('One guest CPU on each; whole cores of every '
                            'cell.', 'Nova-Cpus')
    yield f'cpu_dedicated_set = {cpuset.render(settings.dedicated)}'
    if settings.shared:
        yield from tree.comment('Emulator threads, and guests without '
                                'dedicated CPUs.', 'Nova-Cpus')
        yield f'cpu_shared_set = {cpuset.render(settings.shared)}'
    yield from packing(profile)
    config = json_document.host_config(settings, profile)
    if config['pci_device_spec'] or 'pci_alias' in config:
        yield ''
        yield '[pci]'
    if config['pci_device_spec']:
        yield from tree.comment('The devices that guests get.',
                                'Nova-Devices')
    for spec in config['pci_device_spec']:
        yield f'device_spec = {json.dumps(spec)}'
    yield from alias(planned, profile)
    for mdev in config.get('mdev_types', ()) if settings.devices else ():
        yield ''
        yield '[devices]'
        yield f'enabled_mdev_types = {mdev["name"]}'
        yield ''
        yield f'[mdev_{mdev["name"]}]'
        yield f'device_addresses = {",".join(mdev["device_addresses"])}'
        yield f'mdev_class = {mdev["mdev_class"]}'


def controller(planned: plans.PlannedHost,
               profile: profiles.Profile) -> Iterator[str]:
    """Write what nova-api and nova-scheduler must have as the hosts do."""
    if profile.pack_cells:
        yield '[compute]'
        yield from packing(profile)
        yield ''
    if profile.devices and profile.devices.has_alias:
        yield '[pci]'
        yield from alias(planned, profile)


def packing(profile: profiles.Profile) -> Iterator[str]:
    """Write in which order Nova fills cells."""
    if profile.pack_cells:
        yield from tree.comment('Nova fills one cell before the next; the '
                                'same on hosts and nova-scheduler.',
                                'Nova-Cpus')
        yield 'packing_host_numa_cells_allocation_strategy = true'


def alias(planned: plans.PlannedHost,
          profile: profiles.Profile) -> Iterator[str]:
    """Write the PCI alias that the flavors name."""
    if profile.devices and profile.devices.has_alias:
        yield from tree.comment('The same on hosts, nova-api and '
                                'nova-scheduler.', 'Nova-Devices')
        found = json_document.alias(profile.devices,
                                    planned.settings.device_type)
        yield f'alias = {json.dumps(found)}'


def kept(planned: plans.PlannedHost) -> str:
    """Say how much memory of each cell the host keeps."""
    cells: dict[int, list[int]] = {}
    for cell, rest in planned.settings.rest_mib.items():
        cells.setdefault(rest, []).append(cell)
    return '; '.join(f'{cpu_partition.cells_in_words(numbers)} {rest} MiB'
                     for rest, numbers in cells.items())

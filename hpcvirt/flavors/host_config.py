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

"""Write the settings of hosts as lines of their configuration files.

``nova.conf``, the kernel command line or sysfs for the huge pages, and
sysfs for the virtual functions.
"""

import json
from collections.abc import Iterator

from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import json_document
from hpcvirt.flavors import memory
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset


def lines(plan: plans.Plan) -> Iterator[str]:
    """Write the settings of every host."""
    for planned in plan.hosts:
        yield f'# {planned.host.name}'
        yield '# nova.conf'
        yield from _nova(planned, plan.profile)
        yield from _rest(planned)
        yield from _pages(planned)
        if plan.profile.devices and (
                plan.profile.devices.kind is profiles.Kind.VF):
            yield from _functions(planned)
        yield ''


def _nova(planned: plans.PlannedHost,
          profile: profiles.Profile) -> Iterator[str]:
    settings = planned.settings
    yield '[DEFAULT]'
    yield f'reserved_host_memory_mb = {settings.reserved_host_memory_mib}'
    for item in settings.reserved_pages:
        yield (f'reserved_huge_pages = node:{item.node},size:{item.size_kib},'
               f'count:{item.count}')
    yield '[compute]'
    yield f'cpu_dedicated_set = {cpuset.render(settings.dedicated)}'
    if settings.shared:
        yield f'cpu_shared_set = {cpuset.render(settings.shared)}'
    if profile.pack_cells:
        yield 'packing_host_numa_cells_allocation_strategy = true'
    config = json_document.host_config(settings, profile)
    if config['pci_device_spec'] or 'pci_alias' in config:
        yield '[pci]'
    for spec in config['pci_device_spec']:
        yield f'device_spec = {json.dumps(spec)}'
    for alias in config.get('pci_alias', ()):
        yield '# also in nova.conf of nova-api and nova-scheduler'
        yield f'alias = {json.dumps(alias)}'
    for mdev in config.get('mdev_types', ()) if settings.devices else ():
        yield '[devices]'
        yield f'enabled_mdev_types = {mdev["name"]}'
        yield f'[mdev_{mdev["name"]}]'
        yield f'device_addresses = {",".join(mdev["device_addresses"])}'
        yield f'mdev_class = {mdev["mdev_class"]}'


def _pages(planned: plans.PlannedHost) -> Iterator[str]:
    small = memory.small_page_kib(planned.host)
    sizes = sorted({size for pages in planned.settings.pages.values()
                    for size in pages if size != small})
    if not sizes:
        return
    yield '# on the kernel command line (Linux 5.16 or newer)'
    usual = planned.page_kib if planned.page_kib != small else sizes[0]
    words = [f'default_hugepagesz={memory.page_name(usual).upper()}']
    for size in sizes:
        counts = [f'{cell}:{pages[size]}' for cell, pages
                  in planned.settings.pages.items() if pages.get(size)]
        if counts:
            words.append(f'hugepagesz={memory.page_name(size).upper()} '
                         f'hugepages={",".join(counts)}')
    yield ' '.join(words)
    yield '# or, soon after the host has booted'
    for size in sizes:
        for cell, pages in planned.settings.pages.items():
            before = planned.host.by_id[cell].pool(size)
            if pages.get(size) or (before and before.total):
                yield (f'echo {pages.get(size, 0)} > /sys/devices/system/node'
                       f'/node{cell}/hugepages/hugepages-{size}kB'
                       '/nr_hugepages')


def _rest(planned: plans.PlannedHost) -> Iterator[str]:
    cells: dict[int, list[int]] = {}
    for cell, rest in planned.settings.rest_mib.items():
        cells.setdefault(rest, []).append(cell)
    kept = '; '.join(f'{cpu_partition.cells_in_words(numbers)} {rest} MiB'
                     for rest, numbers in cells.items())
    yield f'# for the host, without the emulators of its guests: {kept}'


def _functions(planned: plans.PlannedHost) -> Iterator[str]:
    if not planned.settings.devices:
        return
    yield '# virtual functions'
    for item in planned.settings.devices:
        yield (f'echo {item.count} > /sys/bus/pci/devices/'
               f'{item.device.address}/sriov_numvfs')
    yield '# and at every boot, in /etc/udev/rules.d/70-hpcvirt-vfs.rules'
    for item in planned.settings.devices:
        # Only a bound driver can create virtual functions.
        yield (f'ACTION=="bind", SUBSYSTEM=="pci", '
               f'KERNEL=="{item.device.address}", '
               f'ATTR{{sriov_numvfs}}="{item.count}"')

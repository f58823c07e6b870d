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

"""Check flavors against hosts: does one fit, and what does it strand.

CPUs and memory are held against the hosts as the default plan divides them;
how many huge pages a host has set aside today does not count.
"""

import dataclasses
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt.fit import capacity
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import finding
from hpcvirt.flavors import memory
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.model import usage as usage_model
from hpcvirt.specs import codec
from hpcvirt.specs import vocabulary


def lint(flavor: catalogue.Flavor, host: host_model.Host,
         profile: profiles.Profile) -> Iterator[finding.Finding]:
    """Check one flavor against one host.

    A flavor that Nova refuses, or that has no NUMA cells, is passed over:
    the first has its finding already and the second fits by its totals.
    """
    try:
        guest = codec.decode(flavor.vcpus, flavor.ram_mib,
                             flavor.extra_specs)
    except exception.InvalidInput:
        return
    if not guest.cells:
        return
    divided = cpu_partition.divide(host, profile)
    yield from _page_sizes(flavor, guest, host)
    yield from _threads(flavor, guest, host)
    filling = capacity.fill(_without_pages(guest),
                            _supply(divided, profile))
    dedicated = len(divided.dedicated)
    if not filling.count:
        reason = filling.misfit.message if filling.misfit else ''
        yield finding.Finding(
            'does-not-fit', finding.Severity.ERROR, flavor.name, 'vcpus',
            f'{host.name} takes none: {reason}',
            'make the guest smaller, or give it more cells')
    elif (guest.cpu_policy is not shape_model.CPUPolicy.SHARED
          and filling.free_pcpus):
        yield finding.Finding(
            'strands-cpus', finding.Severity.WARNING, flavor.name, 'vcpus',
            f'{host.name} takes {filling.count}, and {filling.free_pcpus} of '
            f'its {dedicated} dedicated CPUs are left over',
            'use a size that divides the cells of the host, or fill the '
            'rest with smaller guests')


def _threads(flavor: catalogue.Flavor, guest: shape_model.Shape,
             host: host_model.Host) -> Iterator[finding.Finding]:
    if (guest.thread_policy is shape_model.ThreadPolicy.ISOLATE
            and host.threads_per_core > 1):
        yield finding.Finding(
            'isolate-on-smt', finding.Severity.ERROR, flavor.name,
            vocabulary.CPU_THREAD_POLICY.name,
            f'{host.name} has SMT, and isolate keeps the guest off it',
            'use require with whole cores')


def _page_sizes(flavor: catalogue.Flavor, guest: shape_model.Shape,
                host: host_model.Host) -> Iterator[finding.Finding]:
    page_kib = guest.cells[0].page_kib
    if page_kib is None or page_kib < 0:
        return
    sizes = {pool.size_kib for cell in host.cells for pool in cell.pages}
    if len(sizes) > 1 and page_kib not in sizes:
        yield finding.Finding(
            'no-such-pages', finding.Severity.ERROR, flavor.name,
            vocabulary.MEM_PAGE_SIZE.name,
            f'{host.name} has no pages of {memory.page_name(page_kib)}',
            'use one of ' + ', '.join(
                memory.page_name(size) for size in sorted(sizes)))


def _without_pages(guest: shape_model.Shape) -> shape_model.Shape:
    """The guest as far as CPUs and memory go, without devices."""
    return dataclasses.replace(guest, devices=(), cells=tuple(
        dataclasses.replace(cell, page_kib=None) for cell in guest.cells))


def _supply(divided: cpu_partition.Division,
            profile: profiles.Profile) -> supplies.Supply:
    host = divided.host
    cells = tuple(dataclasses.replace(
        cell, pages=(),
        memory_mib=max(0, cell.memory_mib - memory.reserve_mib(
            profile, cell))) for cell in host.cells)
    usage = usage_model.Usage(tuple(
        usage_model.CellUsage(cell.id, cell.cpus & divided.dedicated,
                              cell.cpus & divided.shared)
        for cell in host.cells))
    return supplies.of_host(dataclasses.replace(host, cells=cells), usage)

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

"""What the hosts of a fleet have in sum, and what guests need of it."""

import collections
import dataclasses
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import guest as guests
from hpcvirt.simulate import outcome
from hpcvirt.simulate import requests

_PCPUS, _VCPUS, _MEMORY = 'PCPU', 'VCPU', 'MEMORY_MB'


@dataclasses.dataclass(frozen=True)
class Sums:
    """Amounts of CPUs, memory, devices and pages.

    Devices are counted for each request that flavors make, by the pools that
    serve it, and pages in MiB for each size that flavors name.

    :ivar free: what the fleet has
    :ivar needs: what a guest of each flavor needs
    """

    free: Mapping[Hashable, float]
    needs: Sequence[Mapping[Hashable, float]]

    @staticmethod
    def cause(resource: Hashable) -> outcome.Cause:
        """Say why a request was refused that lacked a resource."""
        if isinstance(resource, frozenset):
            return outcome.Cause.DEVICES
        return (outcome.Cause.PAGES if isinstance(resource, int)
                else outcome.Cause.CAPACITY)


def of(fleet: Sequence[supplies.Supply],
       flavors: Sequence[requests.Flavor]) -> Sums:
    """Add up what a fleet has of everything that flavors need."""
    kinds: list[devices.Pool] = []
    counts: collections.Counter[int] = collections.Counter()
    for supply in fleet:
        for pool in supply.pools or ():
            kind = pool._replace(cell=None, free=0, provider=None)
            if kind not in kinds:
                kinds.append(kind)
            counts[kinds.index(kind)] += pool.free
    needs = [_needs(flavor.guest, kinds) for flavor in flavors]
    free: dict[Hashable, float] = {
        _PCPUS: sum(len(cell.free) for supply in fleet
                    for cell in supply.cells),
        _VCPUS: sum(
            len(cell.shared) * supply.cpu_ratio - cell.cpu_usage
            for supply in fleet for cell in supply.cells),
        _MEMORY: sum(
            cell.memory_mib * supply.ram_ratio - cell.memory_used_mib
            for supply in fleet for cell in supply.cells)}
    for resource in {each for need in needs for each in need}:
        if isinstance(resource, frozenset):
            free[resource] = sum(counts[place] for place in resource)
        elif isinstance(resource, int):
            free[resource] = sum(
                pool.free for supply in fleet for cell in supply.cells
                for pool in cell.pages
                if pool.size_kib == resource) * resource / 1024
    return Sums(free, needs)


def _needs(guest: guests.Guest,
           kinds: Sequence[devices.Pool]) -> dict[Hashable, float]:
    needs: collections.Counter[Hashable] = collections.Counter({
        _PCPUS: guest.sums.pcpus, _VCPUS: guest.sums.vcpus,
        _MEMORY: guest.sums.memory_mib})
    for request in guest.demand.requests:
        needs[frozenset(place for place, kind in enumerate(kinds)
                        if devices.serves(kind, request))] += request.count
    for cell in guest.demand.cells:
        if cell.page_kib is not None and cell.page_kib > 0:
            needs[int(cell.page_kib)] += cell.memory_mib
    return {resource: amount for resource, amount in needs.items() if amount}

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

"""The nouns of a plan: hosts with settings and flavors with counts."""

import dataclasses
from collections.abc import Mapping

from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import published_losses
from hpcvirt.flavors import settings as host_settings
from hpcvirt.flavors import sizes
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedHost:
    """A host of the fleet.

    :ivar partition: how its CPUs are divided
    :ivar page_kib: the size of the guests' pages
    :ivar settings: the settings that its flavors need
    :ivar supply: what it has for guests under these settings
    """

    host: host_model.Host
    partition: cpu_partition.Partition
    page_kib: int
    settings: host_settings.Settings
    supply: supplies.Supply

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def guest_memory_mib(self) -> int:
        """The pages that guests can have, without those that are reserved.

        With normal pages, the host has far more pages than guests get.
        """
        cells = {share.id for share in self.partition.cells}
        pages = sum(self.settings.pages[cell].get(self.page_kib, 0)
                    for cell in cells)
        reserved = sum(item.count for item in self.settings.reserved_pages
                       if item.node in cells
                       and item.size_kib == self.page_kib)
        return (pages - reserved) * self.page_kib // 1024

    @property
    def devices(self) -> int:
        """The devices, virtual functions or vGPUs that guests can have."""
        return sum(item.count for item in self.settings.devices)


@dataclasses.dataclass(frozen=True, slots=True)
class Stranded:
    """What a host has left when it is full of instances of one flavor.

    :ivar devices: of those that its guests get
    """

    pcpus: int
    memory_mib: int
    devices: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedFlavor:
    """A flavor of the fleet.

    :ivar shares: host -> the share of it that the guest is, for the hosts that
        the flavor was sized for
    :ivar per_host: host -> the number of instances that it takes
    :ivar stranded: host -> what these instances leave
    """

    flavor: catalogue.Flavor
    guest: shape_model.Shape
    shares: Mapping[str, sizes.Share]
    per_host: Mapping[str, int]
    stranded: Mapping[str, Stranded]

    def losses(self, host: PlannedHost) -> tuple[published_losses.Loss, ...]:
        """Find the published losses; none on hosts of another division."""
        if host.name not in self.shares or not self.per_host[host.name]:
            return ()
        return (published_losses.expected(
            self.guest.pcpus, len(host.settings.dedicated)),)


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a fleet: its hosts, its flavors and what to know of them."""

    profile: profiles.Profile
    hosts: tuple[PlannedHost, ...]
    flavors: tuple[PlannedFlavor, ...]
    warnings: tuple[warning.PlanWarning, ...]

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

"""The plan for a fleet: what every host takes, and how it must be set."""

import dataclasses
from collections.abc import Mapping

from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import notice
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import settings as host_settings
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedHost:
    """A host of the fleet.

    :ivar divided: whose its CPUs are
    :ivar page_kib: size of the guests' pages
    :ivar settings: what to set on it
    :ivar supply: what it then has for guests
    """

    host: host_model.Host
    divided: cpu_partition.Division
    page_kib: int
    settings: host_settings.Settings
    supply: supplies.Supply


@dataclasses.dataclass(frozen=True, slots=True)
class Stranded:
    """What is left of a host when it is full of one flavor."""

    pcpus: int
    memory_mib: int


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedFlavor:
    """A flavor of the fleet.

    :ivar kinds: host -> what the guest is of it, for the hosts for which it
        was made
    :ivar per_host: host -> how many it takes
    :ivar stranded: host -> what is left then
    """

    flavor: catalogue.Flavor
    guest: shape_model.Shape
    kinds: Mapping[str, str]
    per_host: Mapping[str, int]
    stranded: Mapping[str, Stranded]


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The whole plan."""

    profile: profiles.Profile
    hosts: tuple[PlannedHost, ...]
    flavors: tuple[PlannedFlavor, ...]
    notices: tuple[notice.Notice, ...]

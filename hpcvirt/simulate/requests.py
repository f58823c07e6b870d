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

"""The requests of a replay: arrivals that refer to compiled flavors."""

import dataclasses

from hpcvirt.flavors import catalogue
from hpcvirt.fleet import guest as guests


@dataclasses.dataclass(frozen=True, slots=True)
class Arrival:
    """A request for one or more guests, which are all placed or refused.

    :ivar time: in seconds from the start of the log
    :ivar duration: in seconds
    :ivar flavor: the number of its flavor in :class:`Requests`
    :ivar count: number of guests
    """

    time: float
    duration: float
    flavor: int
    count: int = 1


@dataclasses.dataclass(frozen=True)
class Flavor:
    """A flavor that a replay requests.

    :ivar flavor: as Nova stores it
    :ivar guest: what it needs of a host
    """

    flavor: catalogue.Flavor
    guest: guests.Guest

    @property
    def cpus(self) -> int:
        """The CPUs that count as its work: dedicated and shared vCPUs.

        A PCPU of emulator threads is not work.
        """
        return self.flavor.vcpus


@dataclasses.dataclass(frozen=True)
class Requests:
    """All requests of a replay, in the order of their time.

    :ivar rule: how jobs were mapped to flavors, one sentence each
    """

    flavors: tuple[Flavor, ...]
    arrivals: tuple[Arrival, ...]
    rule: tuple[str, ...] = ()

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

"""Group hosts that need the same configuration."""

import dataclasses
import re
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable

from hpcvirt.flavors import planned as plans


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Hosts that need the same.

    :ivar name: a name that Ansible takes for a group, after the first host
    """

    name: str
    hosts: tuple[plans.PlannedHost, ...]

    @property
    def first(self) -> plans.PlannedHost:
        """Return the host that stands for all."""
        return self.hosts[0]

    @property
    def words(self) -> str:
        """Name the hosts."""
        return ', '.join(host.name for host in self.hosts)


def groups(hosts: Iterable[plans.PlannedHost],
           need: Callable[[plans.PlannedHost], Hashable],
           ) -> tuple[Group, ...]:
    """Group hosts by what they need, in the order of the first ones."""
    found: dict[Hashable, list[plans.PlannedHost]] = {}
    for host in hosts:
        found.setdefault(need(host), []).append(host)
    taken: dict[str, tuple[plans.PlannedHost, ...]] = {}
    for members in found.values():
        base = 'hpcvirt_' + re.sub('[^a-z0-9]', '_', members[0].name.lower())
        name, number = base, 1
        while name in taken or name == 'hpcvirt_hosts':
            number += 1
            name = f'{base}_{number}'
        taken[name] = tuple(members)
    return tuple(Group(name, members) for name, members in taken.items())

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

"""Say what the other built-in profile would give.

An operator who sees one plan then knows what the cores that the host keeps
cost, or what keeping them would cost.
"""

import dataclasses
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.flavors import host_part
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model


@dataclasses.dataclass(frozen=True, slots=True)
class Alternative:
    """The plan of a built-in profile in short.

    :ivar cpus: the CPUs of all hosts
    :ivar dedicated: those that guests would get
    :ivar vcpus: the sizes of the flavors, smallest first
    :ivar refusal: why there is no such plan; empty if there is
    """

    profile: str
    cpus: int
    dedicated: int = 0
    vcpus: tuple[int, ...] = ()
    refusal: str = ''

    @property
    def message(self) -> str:
        start = f'With "--profile {self.profile}", '
        if self.refusal:
            return f'{start}there is no plan: {self.refusal}.'
        sizes = ', '.join(map(str, self.vcpus[:-1]))
        sizes += f' and {self.vcpus[-1]}' if sizes else str(self.vcpus[-1])
        return (f'{start}guests get {self.dedicated} of {self.cpus} CPUs, in '
                f'flavors of {sizes} vCPUs.')


def of(plan: plans.Plan,
       part: host_part.HostPart = host_part.WHOLE) -> Alternative:
    """Plan the hosts of a plan with the other built-in profile.

    This is ``dense`` for a plan that keeps cores for the hosts, and otherwise
    ``default``.
    """
    hosts = [planned.host for planned in plan.hosts]
    keeps = (plan.profile.housekeeping_cores_per_cell
             or plan.profile.shared_cores_per_cell != 0)
    name = 'dense' if keeps else 'default'
    kinds = _kinds(hosts)
    cpus = sum(len(host.cpus) for host in hosts)
    try:
        other = planner.plan([same[0] for same in kinds],
                             profiles.BUILT_IN[name], part)
    except exception.InvalidInput as exc:
        return Alternative(name, cpus, refusal=str(exc).rstrip('.'))
    return Alternative(
        name, cpus,
        sum(len(planned.settings.dedicated) * len(same)
            for planned, same in zip(other.hosts, kinds, strict=True)),
        tuple(sorted({item.flavor.vcpus for item in other.flavors})))


def _kinds(hosts: Sequence[host_model.Host]) -> list[list[host_model.Host]]:
    """Group the hosts that differ only in their names."""
    kinds: dict[host_model.Host, list[host_model.Host]] = {}
    for host in hosts:
        kinds.setdefault(dataclasses.replace(host, name=''), []).append(host)
    return list(kinds.values())

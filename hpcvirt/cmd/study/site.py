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

"""The cases of a study on the hosts of a site: flavors that its plan has."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import memory
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from hpcvirt.specs import vocabulary


@dataclasses.dataclass(frozen=True)
class Planned:
    """A case that these hosts can run.

    :ivar flavor: of every guest; it is made for the study and carries no
        mark, so that "hpcvirt flavor apply" leaves it alone
    :ivar plan: what the hosts have to be set to
    """

    scaled: scaling.Scaled
    flavor: catalogue.Flavor
    plan: plans.Plan


def plain(found: Planned | scaling.Refusal) -> dict[str, Any]:
    """A scaled case, or why there is none, as data."""
    if isinstance(found, scaling.Refusal):
        return {'case': found.case.id, 'refused': found.reason}
    scaled = found.scaled
    return {'case': scaled.case.id, 'hosts': list(scaled.hosts),
            'per_host': scaled.per_host, 'launch': scaled.case.launch,
            'networks': scaled.case.guests.networks,
            'device': scaled.case.guests.device,
            'demands': list(scaling.demands(scaled.case)),
            'flavor': {
                'name': found.flavor.name, 'vcpus': found.flavor.vcpus,
                'ram_mib': found.flavor.ram_mib,
                'disk_gib': found.flavor.disk_gib,
                'extra_specs': dict(found.flavor.extra_specs)}}


class Planner:
    """Plans cases on hosts; hosts that are set alike are planned once."""

    def __init__(self, hosts: Sequence[host_model.Host],
                 profile: profiles.Profile) -> None:
        self._hosts = tuple(hosts)
        # What the guests of a study have beside CPUs and memory is for the
        # study to say.
        self._profile = dataclasses.replace(profile, devices=None)
        self._known: dict[tuple[tuple[host_model.Host, ...], profiles.Profile],
                          plans.Plan] = {}

    def plan(self, made: study.Study,
             case: study.Case) -> Planned | scaling.Refusal:
        """Scale a case.

        :raises InvalidInput: if the hosts cannot be planned for at all
        """
        hosts = []
        for host in self._hosts:
            ready = scaling.prepared(case, host)
            if isinstance(ready, scaling.Refusal):
                return ready
            hosts.append(ready)
        page_kib = self._profile.page_size
        if case.guests.host_pages == 'small':
            page_kib = max(map(memory.small_page_kib, hosts))
        wanted = dataclasses.replace(self._profile, page_size=page_kib)
        found = self._scaled(made, case, tuple(hosts), wanted)
        if not isinstance(found, Planned) or not _is_loose(found):
            return found
        # Nova takes the cells with the most free memory, wherever they are.
        packed = self._scaled(made, case, tuple(hosts), dataclasses.replace(
            wanted, pack_cells=True))
        if isinstance(packed, Planned) and not _is_loose(packed):
            return packed
        if case.guests.partition is study.Partition.SOCKET:
            return scaling.Refusal(
                case, 'needs guests within a package, and Nova would spread '
                'their cells over several')
        return found

    def _scaled(self, made: study.Study, case: study.Case,
                hosts: tuple[host_model.Host, ...], profile: profiles.Profile,
                ) -> Planned | scaling.Refusal:
        plan = self._plan(hosts, profile)
        site = _site(plan)
        if site is None:
            return scaling.Refusal(case, 'needs hosts that are alike')
        scaled = scaling.scale(case, site)
        if isinstance(scaled, scaling.Refusal):
            return scaled
        return Planned(scaled, _flavor(made, scaled, profile), plan)

    def _plan(self, hosts: tuple[host_model.Host, ...],
              profile: profiles.Profile) -> plans.Plan:
        key = hosts, profile
        if key not in self._known:
            self._known[key] = planner.plan(hosts, profile)
        return self._known[key]


def _is_loose(planned: Planned) -> bool:
    """Whether a guest that has room in a package may be cut by its border."""
    guest = planned.scaled.guest
    if guest is None or len(guest.cells) == 1 or (
            guest.numa_scope is shape.NUMAScope.PACKAGE):
        return False
    divided = planned.plan.hosts[0].divided
    packages = {cell.package for cell in divided.cells}
    return guest.cpus * len(packages) <= len(divided.dedicated)


def _site(plan: plans.Plan) -> scaling.Site | None:
    """The hosts as the scaling sees them; None if they are not alike."""
    sizes = {(len(planned.divided.dedicated),
              len({share.package for share in planned.divided.cells}))
             for planned in plan.hosts}
    if len(sizes) > 1:
        return None
    cpus, packages = sizes.pop()
    return scaling.Site(
        tuple(planned.host.name for planned in plan.hosts), cpus, packages,
        tuple(scaling.Offer(planned.guest, min(planned.per_host.values()))
              for planned in plan.flavors))


def _flavor(made: study.Study, scaled: scaling.Scaled,
            profile: profiles.Profile) -> catalogue.Flavor:
    specs = {}
    if scaled.guest is not None:
        specs = dict(catalogue.flavor(scaled.guest, profile).extra_specs)
        del specs[vocabulary.GENERATED_BY.name]
    return catalogue.Flavor(
        f'hpcvirt-{made.id}-{scaled.case.id}'.lower(), scaled.vcpus,
        scaled.memory_mib, profile.disk_gib, specs)

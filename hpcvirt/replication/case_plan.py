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

"""Plan the cases of a study on the hosts of a site.

A plan has the flavor of the guests and the settings of the hosts.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from hpcvirt.bench.studies import preconditions
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
class CasePlan:
    """How these hosts can run a case.

    :ivar flavor: the flavor of every guest; it belongs to the study and has
        no mark of a plan, so that "hpcvirt flavor apply" leaves it alone
    :ivar plan: the settings that the hosts need
    """

    scaled: scaling.ScaledCase
    flavor: catalogue.Flavor
    plan: plans.Plan


def document(planned: CasePlan | scaling.Refusal) -> dict[str, Any]:
    """Return the plan of a case, or the reason for none, for programs."""
    if isinstance(planned, scaling.Refusal):
        return {'case': planned.case.id, 'refused': planned.reason}
    scaled = planned.scaled
    return {'case': scaled.case.id, 'hosts': list(scaled.hosts),
            'per_host': scaled.per_host, 'launch': scaled.case.launch,
            'networks': scaled.case.guests.networks,
            'device': scaled.case.guests.device,
            'instructions': list(preconditions.instructions(scaled.case)),
            'flavor': {
                'name': planned.flavor.name, 'vcpus': planned.flavor.vcpus,
                'ram_mib': planned.flavor.ram_mib,
                'disk_gib': planned.flavor.disk_gib,
                'extra_specs': dict(planned.flavor.extra_specs)}}


class CasePlanner:
    """Plans cases on hosts; equal host settings are planned only once."""

    def __init__(self, hosts: Sequence[host_model.Host],
                 profile: profiles.Profile) -> None:
        self._hosts = tuple(hosts)
        # The study decides which devices its guests have.
        self._profile = dataclasses.replace(profile, devices=None)
        self._plans: dict[tuple[tuple[host_model.Host, ...], profiles.Profile],
                          plans.Plan] = {}

    def plan(self, study_: study.Study,
             case: study.Case) -> CasePlan | scaling.Refusal:
        """Plan a case.

        :raises InvalidInput: if no plan can be made for the hosts at all
        """
        hosts = []
        for host in self._hosts:
            switched = scaling.with_smt_of(case, host)
            if isinstance(switched, scaling.Refusal):
                return switched
            hosts.append(switched)
        page_kib = self._profile.page_size
        if case.guests.host_pages == 'small':
            page_kib = max(map(memory.small_page_kib, hosts))
        profile = dataclasses.replace(self._profile, page_size=page_kib)
        planned = self._scaled(study_, case, tuple(hosts), profile)
        if not isinstance(planned, CasePlan) or not _may_be_split(planned):
            return planned
        # By default Nova takes the cells with the most free memory, of
        # whatever package.
        packed = self._scaled(study_, case, tuple(hosts), dataclasses.replace(
            profile, pack_cells=True))
        if isinstance(packed, CasePlan) and not _may_be_split(packed):
            return packed
        if case.guests.partition is study.Partition.SOCKET:
            return scaling.Refusal(
                case, 'needs guests within a package, and Nova would spread '
                'their cells over several')
        return planned

    def _scaled(self, study_: study.Study, case: study.Case,
                hosts: tuple[host_model.Host, ...], profile: profiles.Profile,
                ) -> CasePlan | scaling.Refusal:
        plan = self._plan(hosts, profile)
        site = _site(plan)
        if site is None:
            return scaling.Refusal(case, 'needs hosts that are all alike')
        scaled = scaling.scale(case, site)
        if isinstance(scaled, scaling.Refusal):
            return scaled
        return CasePlan(scaled, _flavor(study_, scaled, profile), plan)

    def _plan(self, hosts: tuple[host_model.Host, ...],
              profile: profiles.Profile) -> plans.Plan:
        key = hosts, profile
        if key not in self._plans:
            self._plans[key] = planner.plan(hosts, profile)
        return self._plans[key]


def _may_be_split(planned: CasePlan) -> bool:
    """Tell whether Nova may spread a guest that fits in one package."""
    guest = planned.scaled.guest
    if guest is None or len(guest.cells) == 1 or (
            guest.numa_scope is shape.NUMAScope.PACKAGE):
        return False
    partition = planned.plan.hosts[0].partition
    packages = {cell.package for cell in partition.cells}
    return guest.cpus * len(packages) <= len(partition.dedicated)


def _site(plan: plans.Plan) -> scaling.Site | None:
    """Describe the hosts for the scaling; None if they are not alike."""
    sizes = {(len(planned.partition.dedicated),
              len({share.package for share in planned.partition.cells}))
             for planned in plan.hosts}
    if len(sizes) > 1:
        return None
    cpus, packages = sizes.pop()
    return scaling.Site(
        tuple(planned.host.name for planned in plan.hosts), cpus, packages,
        tuple(scaling.PlannedGuest(flavor.guest,
                                   min(flavor.per_host.values()))
              for flavor in plan.flavors))


def _flavor(study_: study.Study, scaled: scaling.ScaledCase,
            profile: profiles.Profile) -> catalogue.Flavor:
    specs = {}
    if scaled.guest is not None:
        specs = dict(catalogue.flavor(scaled.guest, profile).extra_specs)
        del specs[vocabulary.GENERATED_BY.name]
    return catalogue.Flavor(
        f'hpcvirt-{study_.id}-{scaled.case.id}'.lower(), scaled.vcpus,
        scaled.memory_mib, profile.disk_gib, specs)

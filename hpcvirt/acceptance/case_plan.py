# SPDX-License-Identifier: Apache-2.0

"""Plan the flavor and the host settings for cases of a study on a site."""

import dataclasses
import functools
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from hpcvirt import text_table
from hpcvirt.bench.studies import preconditions
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study
from hpcvirt.deployment import host_files
from hpcvirt.deployment import nova_conf
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import memory
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import cpuset
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from hpcvirt.specs import vocabulary


@dataclasses.dataclass(frozen=True)
class CasePlan:
    """The plan of a case on the hosts of a site.

    :ivar flavor: the flavor of all guests. It lacks the extra spec that marks
        the flavors of a plan, so that "hpcvirt flavor apply" ignores it.
    :ivar plan: the settings of the hosts
    """

    scaled: scaling.ScaledCase
    flavor: flavor_model.Flavor
    plan: plans.Plan

    @property
    def warnings(self) -> tuple[warning.PlanWarning, ...]:
        """The warnings about the hosts, without those about flavors."""
        return tuple(item for item in self.plan.warnings if not item.subjects
                     or {*self.scaled.hosts} & {*item.subjects})


def document(planned: CasePlan | scaling.CaseRefusal) -> dict[str, Any]:
    """Return the plan of a case, or the reason for its refusal, as JSON."""
    if isinstance(planned, scaling.CaseRefusal):
        return {'case': planned.case.id, 'refused': planned.reason}
    scaled = planned.scaled
    return {'case': scaled.case.id, 'hosts': list(scaled.hosts),
            'per_host': scaled.per_host, 'launch': scaled.case.launch,
            'guest_pages': scaled.case.guests.pages,
            'benchmarks': [
                {'benchmark': each.benchmark, 'variant': each.variant,
                 'ranks': scaled.find_ranks(each)}
                for each in scaled.case.benchmarks],
            'networks': scaled.case.guests.networks,
            'device': scaled.case.guests.device,
            'instructions': list(preconditions.instructions(scaled.case)),
            'flavor': {
                'name': planned.flavor.name, 'vcpus': planned.flavor.vcpus,
                'ram_mib': planned.flavor.ram_mib,
                'disk_gib': planned.flavor.disk_gib,
                'extra_specs': dict(planned.flavor.extra_specs)}}


_LEGEND = """
Pages: the pages of the host. Inside: those of the programs in the guest.
Ranks: the MPI ranks in all guests together, if the case sets them.
"""


class CasePlanner:
    """A planner of cases, which plans equal host settings only once."""

    def __init__(self, hosts: Sequence[host_model.Host],
                 profile: profiles.Profile) -> None:
        self._hosts = tuple(hosts)
        # The study decides which devices its guests have.
        self._profile = dataclasses.replace(profile, devices=())
        self._plan = functools.cache(planner.plan)

    def plan_all(self, study_: study.Study,
                 ) -> list[CasePlan | scaling.CaseRefusal]:
        """Plan all cases, each on the first hosts, as many as it needs.

        :raises InvalidInput: as :meth:`plan`
        """
        plans_ = []
        for case in study_.cases:
            first = CasePlanner(self._hosts[:case.hosts], self._profile)
            # Equal hosts and profiles are planned once.
            first._plan = self._plan
            plans_.append(first.plan(study_, case))
        return plans_

    def plan(self, study_: study.Study,
             case: study.Case) -> CasePlan | scaling.CaseRefusal:
        """Plan a case.

        :raises InvalidInput: if the hosts cannot be planned for any case
        """
        hosts = []
        for host in self._hosts:
            switched = scaling.prepare_host(case, host)
            if isinstance(switched, scaling.CaseRefusal):
                return switched
            hosts.append(switched)
        page_kib = self._profile.page_size
        if case.guests.host_pages == 'small':
            page_kib = max(map(memory.small_page_kib, hosts))
        profile = dataclasses.replace(self._profile, page_size=page_kib)
        planned = self._scaled(study_, case, tuple(hosts), profile)
        if not isinstance(planned, CasePlan) or not _may_be_split(planned):
            return planned
        # By default Nova takes the host cells with the most free memory,
        # which may be in different sockets.
        packed = self._scaled(study_, case, tuple(hosts), dataclasses.replace(
            profile, pack_cells=True))
        if isinstance(packed, CasePlan) and not _may_be_split(packed):
            return packed
        if case.guests.partition is study.GuestSpan.SOCKET:
            return scaling.CaseRefusal(
                case, 'needs guests within a socket, but Nova would spread '
                'their guest cells over several sockets')
        return planned

    def _scaled(self, study_: study.Study, case: study.Case,
                hosts: tuple[host_model.Host, ...], profile: profiles.Profile,
                ) -> CasePlan | scaling.CaseRefusal:
        plan = self._plan(hosts, profile)
        site = _site(plan)
        if site is None:
            return scaling.CaseRefusal(case, 'needs hosts that are all alike')
        scaled = scaling.scale(case, site)
        if isinstance(scaled, scaling.CaseRefusal):
            return scaled
        return CasePlan(scaled, _flavor(study_, scaled, profile), plan)


def _may_be_split(planned: CasePlan) -> bool:
    """Whether Nova may spread a guest that fits in one socket."""
    guest = planned.scaled.guest
    if guest is None or len(guest.cells) == 1 or (
            guest.numa_scope is shape.NUMAScope.SOCKET):
        return False
    partition = planned.plan.hosts[0].partition
    sockets = {cell.socket for cell in partition.cells}
    return guest.cpus * len(sockets) <= len(partition.dedicated)


def _site(plan: plans.Plan) -> scaling.Site | None:
    """Return the hosts for the scaling; None if they are not alike."""
    sizes = {(len(planned.partition.dedicated),
              len({share.socket for share in planned.partition.cells}))
             for planned in plan.hosts}
    if len(sizes) > 1:
        return None
    cpus, sockets = sizes.pop()
    return scaling.Site(
        tuple(planned.host.name for planned in plan.hosts), cpus, sockets,
        tuple(scaling.PlannedGuest(flavor.guest,
                                   min(flavor.per_host.values()))
              for flavor in plan.flavors))


def _flavor(study_: study.Study, scaled: scaling.ScaledCase,
            profile: profiles.Profile) -> flavor_model.Flavor:
    specs = {}
    if scaled.guest is not None:
        specs = dict(catalogue.flavor(scaled.guest, profile).extra_specs)
        del specs[vocabulary.GENERATED_BY.name]
    return flavor_model.Flavor(
        f'hpcvirt-{study_.id}-{scaled.case.id}'.lower(), scaled.vcpus,
        scaled.memory_mib, profile.disk_gib, specs)


def table(cases: Sequence[CasePlan | scaling.CaseRefusal],
          width: int | None) -> str:
    """Draw a table of the planned cases, and lines for the refused ones.

    :param width: columns of the terminal, None for no limit
    """
    rows = [_table_row(each) for each in cases
            if isinstance(each, CasePlan)]
    text = text_table.draw(
        ('Case', 'Guests', 'MiB each', 'Cells', 'CPUs', 'Pages', 'Inside',
         'Ranks', 'Launch', 'Networks', 'Settings'), rows,
        {'MiB each', 'Cells', 'Ranks'}, width) if rows else ''
    if rows:
        text += _LEGEND
    refused = [f'{each.case.id} cannot be run: it {each.reason}\n'
               for each in cases if isinstance(each, scaling.CaseRefusal)]
    return text + ''.join(refused)


def _table_row(planned: CasePlan) -> tuple[str, ...]:
    scaled = planned.scaled
    case, guests = scaled.case, scaled.case.guests
    cells, pages, cpus = '-', 'any', 'floating'
    if scaled.guest is not None:
        cells, cpus = str(len(scaled.guest.cells)), 'pinned'
        pages = memory.page_name(scaled.guest.cells[0].page_kib or 0)
    settings = ' '.join(f'{name}={value}' for name, value
                        in case.host_settings.items())
    network = f'{guests.networks} {guests.device}'.strip()
    ranks = dict.fromkeys(scaled.find_ranks(each) for each in case.benchmarks)
    return (case.id, scaled.shape, str(scaled.memory_mib), cells, cpus,
            pages, guests.pages or '-', ', '.join(filter(None, ranks)) or '-',
            case.launch or '-',
            network if guests.networks else '-', settings or '-')


def list_settings(planned: CasePlan) -> Iterator[str]:
    """Yield what must be set by hand before the case is run, in lines."""
    case = planned.scaled.case
    yield from preconditions.instructions(case)
    if len(planned.scaled.hosts) > 1:
        yield ('Hosts, for the native side: ssh from the first to the others '
               'without a prompt, and the programs on each.')
    for host in planned.plan.hosts:
        yield f'# {host.host.name}'
        yield '# nova.conf'
        if planned.scaled.guest is None:
            yield from _list_floating(host)
        else:
            yield from _list_pinned(host, planned.plan)


def make_user_data(case: study.Case) -> str:
    """Return the user data of an instance; empty if it needs none."""
    thp = preconditions.THP.get(case.guests.pages)
    if thp is None:
        return ''
    return ('#cloud-config\nbootcmd:\n'
            f'  - echo {thp} > /sys/kernel/mm/transparent_hugepage/enabled\n')


def _list_pinned(planned: plans.PlannedHost,
                 plan: plans.Plan) -> Iterator[str]:
    """Yield the settings for pinned guests, without those of cases."""
    yield from nova_conf.compute(planned, plan)
    pages = ' '.join(
        str(item) for item in kernel_settings.make_state(planned).parameters
        if 'hugepages' in item.name)
    if pages:
        yield '# on the kernel command line (Linux 5.16 or newer)'
        yield pages
    rules = host_files.vf_rules(planned)
    if rules:
        yield f'# /{host_files.VFS}'
        yield from rules


def _list_floating(planned: plans.PlannedHost) -> Iterator[str]:
    """Yield the settings that let guests float over all dedicated CPUs."""
    yield '[DEFAULT]'
    yield ('reserved_host_memory_mb = '
           f'{planned.settings.reserved_host_memory_mb}')
    yield '[compute]'
    yield f'cpu_shared_set = {cpuset.render(planned.partition.dedicated)}'

# SPDX-License-Identifier: Apache-2.0

"""The document of a plan: written by ``hpcvirt flavor plan --format json``.

Commands that need the counts, the settings or the warnings of a plan read it
back as the same type. Reading is strict, but requires only the fields that
every reader needs. An alternative is the plan of the other built-in profile
in short: it shows the operator what the cores that the host keeps cost, or
what keeping them would cost.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.flavors import host_part
from hpcvirt.flavors import host_settings as settings
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model

SCHEMA_VERSION = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Alternative:
    """The plan of a built-in profile in short.

    :ivar cpus: the CPUs of all hosts
    :ivar dedicated: those that guests would get
    :ivar vcpus: the sizes of the flavors, smallest first
    :ivar refusal: why there is no such plan; empty if there is
    :ivar fleet_class: the class of the fleet; empty if the hosts have none
    """

    profile: str
    cpus: int
    dedicated: int = 0
    vcpus: tuple[int, ...] = ()
    refusal: str = ''
    fleet_class: str = ''

    @property
    def message(self) -> str:
        start = f'With "--profile {self.profile}", '
        if self.fleet_class:
            start = (f'With "profile: {self.profile}" for the class '
                     f'{self.fleet_class[:64]}, ')
        if self.refusal:
            return f'{start}there is no plan: {self.refusal}.'
        sizes = ', '.join(map(str, self.vcpus[:-1]))
        sizes += f' and {self.vcpus[-1]}' if sizes else str(self.vcpus[-1])
        return (f'{start}guests get {self.dedicated} of {self.cpus} CPUs, in '
                f'flavors of {sizes} vCPUs.')


def plan_other(plan: plans.Plan,
               part: host_part.HostPart = host_part.WHOLE,
               fleet_class: str = '') -> Alternative:
    """Plan the hosts of a plan with the other built-in profile.

    That is ``dense`` if the plan keeps cores for the hosts, and ``default``
    otherwise.

    :param part: the part of each host that guests may have
    :param fleet_class: the class of the fleet; empty if the hosts have none
    """
    hosts = [planned.host for planned in plan.hosts]
    cpus = sum(len(host.cpus) for host in hosts)
    profile = plan.hosts[0].profile
    keeps = (profile.housekeeping_cores_per_cell
             or profile.shared_cores_per_cell != 0)
    name = 'dense' if keeps else 'default'
    try:
        other = planner.plan(hosts, profiles.BUILT_IN[name], part)
    except exception.InvalidInput as exc:
        return Alternative(name, cpus, refusal=str(exc).rstrip('.'),
                           fleet_class=fleet_class)
    return Alternative(
        name, cpus,
        sum(len(planned.settings.dedicated) for planned in other.hosts),
        tuple(sorted({item.flavor.vcpus for item in other.flavors})),
        fleet_class=fleet_class)


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceSum:
    """A number of devices of one kind.

    :ivar name: their PCI alias, physical network or resource class
    """

    name: str
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class HostSummary:
    """The figures of a host.

    :ivar sockets: None if they are unknown
    :ivar fleet_class: its class of the fleet document; empty without one
    """

    name: str
    sockets: int | None
    cells: int
    cells_with_cpus: int
    cpus: int
    dedicated_pcpus: int
    memory_mib: int
    guest_memory_mib: int
    guest_page_kib: int
    guest_devices: tuple[DeviceSum, ...] = ()
    fleet_class: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class GuestCellSummary:
    """The size of a guest cell."""

    vcpus: int
    memory_mib: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlavorSummary:
    """A flavor, and the number of instances that each host takes.

    :ivar share: host -> the part of it for which the flavor was sized
    """

    name: str
    vcpus: int
    ram_mib: int
    disk_gib: int = 0
    extra_specs: Mapping[str, str]
    public: bool = True
    projects: tuple[str, ...] = ()
    per_host: Mapping[str, int]
    unused_pcpus: Mapping[str, int] = dataclasses.field(
        default_factory=dict)
    unused_memory_mib: Mapping[str, int] = dataclasses.field(
        default_factory=dict)
    devices: tuple[shape_model.GuestDevices, ...] = ()
    unused_devices: Mapping[str, tuple[DeviceSum, ...]] = (
        dataclasses.field(default_factory=dict))
    share: Mapping[str, str] = dataclasses.field(default_factory=dict)
    guest_cells: tuple[GuestCellSummary, ...] = ()
    loss: Mapping[str, tuple[plans.Loss, ...]] = dataclasses.field(
        default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class WarningSummary:
    """A warning; the message names its subjects."""

    code: str
    message: str
    subjects: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanDocument:
    """A plan: its hosts and flavors, and the settings of each host."""

    schema_version: int = SCHEMA_VERSION
    hosts: tuple[HostSummary, ...] = ()
    flavors: tuple[FlavorSummary, ...]
    host_config: Mapping[str, settings.HostSettings] = dataclasses.field(
        default_factory=dict)
    warnings: tuple[WarningSummary, ...] = ()
    alternatives: tuple[Alternative, ...] = ()

    def flavor(self, name: str) -> FlavorSummary | None:
        """Find a flavor by its name."""
        return next((item for item in self.flavors if item.name == name),
                    None)


def make_document(plan: plans.Plan,
                  others: tuple[Alternative, ...] = (),
                  ) -> PlanDocument:
    """Make the document of a plan."""
    return PlanDocument(
        hosts=tuple(_host(planned) for planned in plan.hosts),
        flavors=tuple(_flavor(planned, plan) for planned in plan.flavors),
        host_config={planned.name: planned.settings
                     for planned in plan.hosts},
        warnings=tuple(
            WarningSummary(item.code.value, item.message, item.subjects)
            for item in plan.warnings),
        alternatives=others)


def dump(plan: plans.Plan,
         others: tuple[Alternative, ...] = ()) -> dict[str, Any]:
    """Write the document of a plan as dicts, lists, numbers and strings."""
    plain: dict[str, Any] = serialization.dump(make_document(plan, others))
    return plain


def load(plain: object, where: str) -> PlanDocument:
    """Read a document; hosts with equal settings share one object.

    :param plain: the parsed JSON or YAML
    :param where: the file, for errors
    :raises InvalidInput: naming the place of the fault
    """
    serialization.require_version(plain, SCHEMA_VERSION, where)
    document = serialization.load(PlanDocument, plain, where)
    first: dict[str, settings.HostSettings] = {}
    return dataclasses.replace(document, host_config={
        name: first.setdefault(repr(own), own)
        for name, own in document.host_config.items()})


def _host(planned: plans.PlannedHost) -> HostSummary:
    host = planned.host
    return HostSummary(
        name=host.name,
        sockets=(len(host.sockets)
                 if host_model.Unknown.SOCKETS not in host.unknown else None),
        cells=len(host.cells),
        cells_with_cpus=sum(bool(cell.cpus) for cell in host.cells),
        cpus=len(host.cpus),
        dedicated_pcpus=len(planned.settings.dedicated),
        memory_mib=sum(cell.memory_mib for cell in host.cells),
        guest_memory_mib=planned.guest_memory_mib,
        guest_page_kib=planned.page_kib,
        guest_devices=_sums(planned, planned.devices),
        fleet_class=planned.fleet_class)


def _sums(planned: plans.PlannedHost,
          numbers: tuple[int, ...]) -> tuple[DeviceSum, ...]:
    return tuple(DeviceSum(wanted.request_name, number) for wanted, number
                 in zip(planned.profile.devices, numbers, strict=True))


def _flavor(planned: plans.PlannedFlavor, plan: plans.Plan) -> FlavorSummary:
    flavor = planned.flavor
    hosts = [host for host in plan.hosts if host.name in planned.per_host]
    return FlavorSummary(
        name=flavor.name,
        vcpus=flavor.vcpus,
        ram_mib=flavor.ram_mib,
        disk_gib=flavor.disk_gib,
        extra_specs=dict(flavor.extra_specs),
        public=flavor.projects is None,
        projects=tuple(flavor.projects or ()),
        per_host=dict(planned.per_host),
        unused_pcpus={host: left.pcpus
                      for host, left in planned.unused.items()},
        unused_memory_mib={host: left.memory_mib
                           for host, left in planned.unused.items()},
        devices=planned.guest.devices,
        unused_devices={
            host.name: _sums(host, planned.unused[host.name].devices)
            for host in hosts},
        share={host: share.words for host, share in planned.shares.items()},
        guest_cells=tuple(GuestCellSummary(cell.cpus, cell.memory_mib)
                          for cell in planned.guest.cells),
        loss={host.name: planned.losses(host) for host in hosts})

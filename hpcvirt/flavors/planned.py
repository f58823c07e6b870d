# SPDX-License-Identifier: Apache-2.0

"""A plan: hosts with their settings, flavors with their counts and losses.

The losses of guests against their host are published figures, for guests with
NUMA cells, pinned CPUs, 2 MB pages and nested paging. On machines other than
those of the study they are an estimate, which a benchmark must confirm. The
loss of one guest per socket in [LBNL-Partitioning] is not used, because its
hypervisor and its MPI were modified.
"""

import dataclasses
import fractions
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import bibliography
from hpcvirt.fit import capacity
from hpcvirt.fit import placement
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import host_settings
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import planned_sets
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model

#: The source of the losses.
HS06_STUDY = bibliography.get('CERN-HEPiX-2015').citation


@dataclasses.dataclass(frozen=True, slots=True)
class Loss:
    """A published loss in percent of the host's own figure.

    :ivar low_percent: the loss in the better case
    :ivar high_percent: the loss in the worse case
    :ivar configuration: the measured guests, number x vCPUs
    :ivar measured: what the figures are
    :ivar place: where the figure is in the source
    """

    low_percent: float
    high_percent: float
    configuration: str
    measured: str = ('HS06 rate lost by guests of a 32-core host with pinned '
                     'CPUs, NUMA cells and 2 MB pages')
    source: str = HS06_STUDY
    place: str = 'slide on the "Kilo-1" configuration, column "After"'


#: HS06 rate lost on a 32-core host, by the share of the host that one guest
#: takes: 4x8 is four guests of 8 cores.
BY_SHARE = (
    (fractions.Fraction(1, 4), Loss(3.3, 3.3, '4x8')),
    (fractions.Fraction(1, 2), Loss(4.6, 4.6, '2x16')),
    (fractions.Fraction(3, 4), Loss(5.0, 5.0, '1x24')),
    (fractions.Fraction(1), Loss(3.0, 6.0, '1x32')),
)


def find_loss(pcpus: int, host_pcpus: int) -> Loss:
    """Find the published loss that applies to a guest.

    A share between two measured shares gets the figure of the larger one.

    :param pcpus: the dedicated CPUs of the guest
    :param host_pcpus: the dedicated CPUs of the host
    """
    share = fractions.Fraction(pcpus, host_pcpus)
    return next((loss for limit, loss in BY_SHARE if share <= limit),
                BY_SHARE[-1][1])


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedHost:
    """A host of the fleet.

    :ivar partition: how its CPUs are divided
    :ivar page_kib: the size of the guests' pages
    :ivar settings: the settings that its flavors need
    :ivar state: what it has for guests under these settings, when empty
    :ivar rest_mib: cell -> the memory of it that the host keeps
    :ivar offered: the devices that guests get
    :ivar fleet_class: its class of the fleet document; empty without one
    :ivar aggregates: the host aggregates of its class; the first one isolates
        an isolated class
    """

    profile: profiles.Profile
    host: host_model.Host
    partition: cpu_partition.Partition
    page_kib: int
    settings: host_settings.HostSettings
    state: placement.HostState
    rest_mib: Mapping[int, int]
    offered: tuple[offered_devices.OfferedDevice, ...] = ()
    fleet_class: str = ''
    aggregates: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def guest_memory_mib(self) -> int:
        """The memory of the pages that are not reserved for the host."""
        cells = {share.id for share in self.partition.cells}
        pages = sum(self.settings.pages[cell].get(self.page_kib, 0)
                    for cell in cells)
        reserved = sum(item.count
                       for item in self.settings.reserved_huge_pages
                       if item.node in cells
                       and item.size == self.page_kib)
        return (pages - reserved) * self.page_kib // 1024

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices, VFs or vGPUs of guests, for each entry of devices."""
        return tuple(sum(item.count for item in self.offered
                         if item.wanted == wanted)
                     for wanted in self.profile.devices)


@dataclasses.dataclass(frozen=True, slots=True)
class Unused:
    """The resources that a host full of instances of one flavor has left.

    :ivar devices: the devices, of those that its guests can get, for each
        entry of devices
    """

    pcpus: int
    memory_mib: int
    devices: tuple[int, ...] = ()


def count_left(host: PlannedHost, guest: shape_model.Shape,
               instances: int) -> tuple[int, ...]:
    """Count the devices that instances leave, for each entry of devices."""
    return tuple(
        total - instances * planned_sets.count_devices(guest, number, wanted)
        for number, (total, wanted) in enumerate(zip(
            host.devices, host.profile.devices, strict=True)))


def measure_left(host: PlannedHost, guest: shape_model.Shape,
                 filling: capacity.Filling) -> Unused:
    """Measure what a host that is filled with a guest has left."""
    free_kib = 0
    for cell in filling.supply.cells:
        for pool in cell.pages:
            if (pool.size_kib == host.page_kib and pool.free > 0
                    and cell.dedicated):
                free_kib += pool.free * pool.size_kib
    return Unused(filling.free_pcpus, free_kib // 1024,
                  count_left(host, guest, filling.count))


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedFlavor:
    """A flavor of the fleet.

    :ivar shares: host -> the share of it that the guest takes, for the hosts
        for which the flavor was sized
    :ivar per_host: host -> the number of instances that it takes
    :ivar unused: host -> what these instances leave
    """

    flavor: flavor_model.Flavor
    guest: shape_model.Shape
    shares: Mapping[str, cpu_partition.HostShare]
    per_host: Mapping[str, int]
    unused: Mapping[str, Unused]

    def losses(self, host: PlannedHost) -> tuple[Loss, ...]:
        """Find the published losses; none on hosts of another size."""
        if host.name not in self.shares or not self.per_host[host.name]:
            return ()
        return (find_loss(
            self.guest.pcpus, len(host.settings.dedicated)),)


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a fleet: its hosts, its flavors and warnings about them."""

    hosts: tuple[PlannedHost, ...]
    flavors: tuple[PlannedFlavor, ...]
    warnings: tuple[warning.PlanWarning, ...]

    def list_settings(self) -> list[host_settings.HostSettings]:
        """List the settings of the hosts; hosts of one kind share theirs."""
        found = {id(host.settings): host.settings for host in self.hosts}
        return list(found.values())

    @property
    def has_sets(self) -> bool:
        """Whether Placement chooses the devices of some hosts.

        Nova then asks Placement for PCI devices in the whole cloud.
        """
        return any(settings.has_sets for settings in self.list_settings())

    @property
    def isolated(self) -> tuple[str, ...]:
        """The classes whose aggregates keep other flavors off."""
        return tuple(dict.fromkeys(host.fleet_class for host in self.hosts
                                   if host.state.kept_for))

    @property
    def packing(self) -> bool:
        """``packing_host_numa_cells_allocation_strategy`` of all services."""
        return self.hosts[0].profile.pack_cells


def extend_to_twins(hosts: Sequence[host_model.Host],
                    kinds: Mapping[str, Sequence[host_model.Host]],
                    plan: Plan) -> Plan:
    """Extend a plan for the first host of each kind to all hosts.

    :param kinds: the first host of a kind -> all hosts of the kind
    """
    first: dict[str, str] = {}
    for name, same in kinds.items():
        first |= {host.name: name for host in same}
    planned = {each.name: each for each in plan.hosts}
    extended = []
    for host in hosts:
        twin = planned[first[host.name]]
        extended.append(dataclasses.replace(
            twin, host=host,
            partition=dataclasses.replace(twin.partition, host=host)))
    flavors = tuple(
        dataclasses.replace(
            row,
            shares={host.name: row.shares[first[host.name]] for host in hosts
                    if first[host.name] in row.shares},
            per_host={host.name: row.per_host[first[host.name]]
                      for host in hosts},
            unused={host.name: row.unused[first[host.name]]
                    for host in hosts})
        for row in plan.flavors)
    return Plan(tuple(extended), flavors, plan.warnings)

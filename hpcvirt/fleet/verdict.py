# SPDX-License-Identifier: Apache-2.0

"""Decide for each host whether it takes a guest, and which step refuses it.

The steps are Nova's: Placement compares totals of the host, and the filter
compares cells. The claim on the compute host may still refuse a guest that
fits, because of a defect. A host whose record is broken is refused by the step
``record``.
"""

import dataclasses
import enum
from collections.abc import Mapping

from hpcvirt.fit import admission
from hpcvirt.fit import allocation
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.fleet import nearness
from hpcvirt.fleet import state


class Barrier(enum.StrEnum):
    """The kinds of refusal in a cloud that the fit engine does not know."""

    OTHER_RESOURCE = 'other-resource'
    GROUP = 'request-group'
    COMBINATION = 'combination'
    REQUEST = 'request'
    NOT_WANTED = 'not-wanted'
    OTHER_FILTER = 'other-filter'


#: The kind of a refusal.
AnyCode = reasons.Code | Barrier


#: What Placement compares of a whole host.
_OF_PLACEMENT = frozenset({
    reasons.Code.RESOURCES, reasons.Code.TRAIT, reasons.Code.FORBIDDEN_TRAIT,
    reasons.Code.AGGREGATE})


class SchedulingStep(enum.StrEnum):
    """The steps that can refuse a guest."""

    RECORD = 'record'
    PLACEMENT = 'placement'
    FILTER = 'filter'
    CLAIM = 'claim'


@dataclasses.dataclass(frozen=True)
class HostVerdict:
    """The verdict about one host.

    :ivar step: the step that refuses; None if the guest fits
    :ivar code: the kind of refusal
    :ivar root: the most frequent cause, by which verdicts are grouped
    :ivar cells: the host cells on which the claim will place the guest
    :ivar cpus: the dedicated CPUs that the guest will get, if they are known
    :ivar scores: weigher -> its part of the weight of the host; empty if it
        is not known, or if no other host takes the guest
    :ivar compared: what HPCTopologyWeigher compares on the host
    :ivar resource: the resource class that Placement has too little of, and
        whether it is too little ``free`` or ``in all``; empty for others
    :ivar fleet_class: the class of the host; empty without one
    :ivar lacks: how far the host is from taking the guest, see
        :mod:`hpcvirt.fleet.nearness`
    """

    name: str
    step: SchedulingStep | None
    code: AnyCode | None = None
    root: AnyCode | None = None
    reason: str | None = None
    cells: tuple[int, ...] = ()
    cpus: frozenset[int] = frozenset()
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    compared: str = ''
    resource: str = ''
    fleet_class: str = ''
    lacks: float = 0.0

    @property
    def weight(self) -> float:
        return sum(self.scores.values())

    @property
    def fits(self) -> bool:
        return self.step is None


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The verdicts about a guest, and the basis of a search for changes.

    :ivar name: the name of the flavor or of the request
    :ivar hosts: the hosts on which a change of the guest may help
    """

    name: str
    verdicts: tuple[HostVerdict, ...]
    guest: guests.Guest
    hosts: tuple[state.FleetHost, ...]


def judge(guest: guests.Guest, fleet: state.Fleet) -> tuple[HostVerdict, ...]:
    """Decide for all hosts; those with broken records come last."""
    found: dict[str, HostVerdict] = {}
    for group in state.group_alike(fleet.hosts):
        verdict = judge_host(guest, group[0])
        for host in group:
            found[host.name] = dataclasses.replace(verdict, name=host.name)
    return (*(found[host.name] for host in fleet.hosts),
            *(make_broken(name, reason)
              for name, reason in fleet.broken.items()))


def make_broken(name: str, reason: str) -> HostVerdict:
    """Make the verdict about a host whose record is broken."""
    return HostVerdict(name, SchedulingStep.RECORD,
                       reasons.Code.MALFORMED_HOST,
                       reasons.Code.MALFORMED_HOST, reason)


def judge_host(guest: guests.Guest, host: state.FleetHost) -> HostVerdict:
    """Decide for one host."""
    placed = admission.predict(guest, host.state)
    if not isinstance(placed, reasons.Misfit):
        cpus = allocation.pin_guest(guest.demand, host.state.supply,
                                    placed.cells)
        return HostVerdict(host.name, None, cells=placed.cells, cpus=cpus)
    return refuse(host.name, placed)


def refuse(name: str, misfit: reasons.Misfit,
           step: SchedulingStep | None = None) -> HostVerdict:
    """Make the verdict about a host that refuses a guest.

    :param step: the step that refuses; None to derive it from the reason
    """
    details = misfit.details
    resource = ''
    if misfit.code is reasons.Code.RESOURCES:
        resource = f'{details["resource"]} {details["which"]}'
    return HostVerdict(name, step or step_of(misfit.code), misfit.code,
                       misfit.root, misfit.message, resource=resource)


def place_hosts(found: Explanation) -> Explanation:
    """Say of each host its class, and how far it is from taking the guest."""
    hosts = {host.name: host for host in found.hosts}
    known: dict[int, float] = {}
    verdicts = []
    for item in found.verdicts:
        host = hosts.get(item.name)
        if host is None:
            # No change of the guest helps on the other hosts of a live cloud.
            lacks = 0.0 if item.fits else nearness.CLOSED
            verdicts.append(dataclasses.replace(item, lacks=lacks))
            continue
        if item.fits:
            verdicts.append(dataclasses.replace(
                item, fleet_class=host.fleet_class))
            continue
        # Hosts of one kind share their state.
        key = id(host.state)
        if key not in known:
            known[key] = nearness.measure(found.guest, host.state)
        verdicts.append(dataclasses.replace(
            item, fleet_class=host.fleet_class, lacks=known[key]))
    return dataclasses.replace(found, verdicts=tuple(verdicts))


def step_of(code: reasons.Code) -> SchedulingStep:
    """Return the step that refuses a guest for this reason."""
    if code in _OF_PLACEMENT:
        return SchedulingStep.PLACEMENT
    return SchedulingStep.CLAIM if code.startswith(
        'claim-') else SchedulingStep.FILTER

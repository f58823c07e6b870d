# SPDX-License-Identifier: Apache-2.0

"""Say of each host whether it takes a guest, and if not, which step refuses.

The steps are Nova's: Placement compares sums of the host, the filter compares
cells, and a guest that fits may still be refused by the claim on the compute
host, for one of its defects. A host whose record is broken has no verdict.
"""

import dataclasses
import enum
from collections.abc import Mapping

from hpcvirt.fit import pins
from hpcvirt.fit import reasons
from hpcvirt.fleet import admission
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state


class Barrier(enum.StrEnum):
    """The kinds of refusal beyond those of the fit engine, in a cloud."""

    TRAIT = 'trait'
    FORBIDDEN_TRAIT = 'forbidden-trait'
    AGGREGATE = 'aggregate'
    OTHER_RESOURCE = 'other-resource'
    GROUP = 'request-group'
    COMBINATION = 'combination'
    REQUEST = 'request'
    NOT_WANTED = 'not-wanted'
    OTHER_FILTER = 'other-filter'


#: The kind of a refusal.
AnyCode = reasons.Code | Barrier


class SchedulingStep(enum.StrEnum):
    """What refuses a guest."""

    RECORD = 'record'
    PLACEMENT = 'placement'
    FILTER = 'filter'
    CLAIM = 'claim'


@dataclasses.dataclass(frozen=True)
class HostVerdict:
    """The verdict of one host.

    :ivar step: which step refuses; None if the guest fits
    :ivar code: the kind of refusal
    :ivar root: the kind of most causes, to group what is alike
    :ivar cells: where the claim will place the guest
    :ivar cpus: the CPUs that will be the guest's own, where they are known
    :ivar scores: weigher -> its part of the weight of the host; empty if it
        is not known, or if no other host takes the guest
    """

    name: str
    step: SchedulingStep | None
    code: AnyCode | None = None
    root: AnyCode | None = None
    reason: str | None = None
    cells: tuple[int, ...] = ()
    cpus: frozenset[int] = frozenset()
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def weight(self) -> float:
        return sum(self.scores.values())

    @property
    def fits(self) -> bool:
        return self.step is None


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The verdicts, and from where smaller changes can be looked for.

    :ivar name: what was asked for
    :ivar hosts: those on which a change of the guest might help
    """

    name: str
    verdicts: tuple[HostVerdict, ...]
    guest: guests.Guest
    hosts: tuple[state.FleetHost, ...]


def judge(guest: guests.Guest, fleet: state.Fleet) -> tuple[HostVerdict, ...]:
    """Judge all hosts; those with broken records come last."""
    found: dict[str, HostVerdict] = {}
    for group in state.group_alike(fleet.hosts):
        verdict = _verdict(guest, group[0])
        for host in group:
            found[host.name] = dataclasses.replace(verdict, name=host.name)
    return (*(found[host.name] for host in fleet.hosts),
            *(make_broken(name, reason)
              for name, reason in fleet.broken.items()))


def make_broken(name: str, reason: str) -> HostVerdict:
    """Say of a host that its record is broken."""
    return HostVerdict(name, SchedulingStep.RECORD,
                       reasons.Code.MALFORMED_HOST,
                       reasons.Code.MALFORMED_HOST, reason)


def _verdict(guest: guests.Guest, host: state.FleetHost) -> HostVerdict:
    placed = admission.admit(guest, host.state)
    if not isinstance(placed, reasons.Misfit):
        return HostVerdict(host.name, None, cells=placed.cells,
                           cpus=pins.pin_guest(guest.demand, host.state.supply,
                                               placed.cells))
    return refuse(host.name, placed)


def refuse(name: str, misfit: reasons.Misfit,
           step: SchedulingStep | None = None) -> HostVerdict:
    """Say of a host why it refuses a guest.

    :param step: the step that refuses, if the reason does not tell it
    """
    return HostVerdict(name, step or step_of(misfit.code), misfit.code,
                       misfit.root, misfit.message)


def step_of(code: reasons.Code) -> SchedulingStep:
    """Return the step that refuses a guest for this reason."""
    if code is reasons.Code.RESOURCES:
        return SchedulingStep.PLACEMENT
    return SchedulingStep.CLAIM if code.startswith(
        'claim-') else SchedulingStep.FILTER

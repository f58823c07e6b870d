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
from hpcvirt.fleet import alike
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


class Step(enum.StrEnum):
    """What refuses a guest."""

    RECORD = 'record'
    PLACEMENT = 'placement'
    FILTER = 'filter'
    CLAIM = 'claim'


@dataclasses.dataclass(frozen=True)
class Verdict:
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
    step: Step | None
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


def judge(guest: guests.Guest, fleet: state.Fleet) -> tuple[Verdict, ...]:
    """Judge all hosts; those with broken records come last."""
    found: dict[str, Verdict] = {}
    for group in alike.groups(fleet.hosts):
        verdict = _verdict(guest, group[0])
        for host in group:
            found[host.name] = dataclasses.replace(verdict, name=host.name)
    return (*(found[host.name] for host in fleet.hosts),
            *(broken(name, reason)
              for name, reason in fleet.broken.items()))


def broken(name: str, reason: str) -> Verdict:
    """Say of a host that its record is broken."""
    return Verdict(name, Step.RECORD, reasons.Code.MALFORMED_HOST,
                   reasons.Code.MALFORMED_HOST, reason)


def _verdict(guest: guests.Guest, host: state.FleetHost) -> Verdict:
    placed = admission.admit(guest, host.state, host.packing)
    if not isinstance(placed, reasons.Misfit):
        return Verdict(host.name, None, cells=placed.cells,
                       cpus=pins.of_cells(guest.demand, host.state.supply,
                                          placed.cells))
    return Verdict(host.name, step_of(placed.code), placed.code, placed.root,
                   placed.message)


def step_of(code: reasons.Code) -> Step:
    """Return the step that refuses a guest for this reason."""
    if code is reasons.Code.RESOURCES:
        return Step.PLACEMENT
    return Step.CLAIM if code.startswith('claim-') else Step.FILTER

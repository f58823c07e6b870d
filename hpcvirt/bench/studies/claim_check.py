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

"""Check the numbers that a study claims against the figures it prints."""

import dataclasses

from hpcvirt import exception
from hpcvirt.bench.studies import study

#: Numbers that differ by less are equal but for the arithmetic.
ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class CheckedClaim:
    """A claim and the number that follows from the figures.

    :ivar agrees: the computed number rounds to the printed one, or relates to
        it as the claim says
    """

    claim: study.Claim
    computed: float
    agrees: bool


def check(study_: study.Study) -> tuple[CheckedClaim, ...]:
    """Recompute every claim of a study.

    :raises InvalidInput: for a claim about a figure that does not exist
    """
    return tuple(_check(study_, claim) for claim in study_.claims)


def compute(study_: study.Study, claim: study.Claim) -> float:
    """Compute what follows from the figures, unrounded."""
    figures = [_figure(study_, name) for name in claim.of]
    kind = claim.kind
    if kind is study.Kind.RATIO:
        return figures[0] / figures[1]
    if kind is study.Kind.GAIN:
        return (figures[0] / figures[1] - 1) * 100
    if kind is study.Kind.LOSS:
        return (1 - figures[0] / figures[1]) * 100
    if kind is study.Kind.POINTS:
        return (figures[0] / figures[1] - figures[2] / figures[3]) * 100
    if kind is study.Kind.REDUCTION:
        after = 1 - figures[0] / figures[2]
        before = 1 - figures[1] / figures[2]
        return (1 - after / before) * 100
    if kind is study.Kind.SHARE:
        return figures[0] / figures[1] * 100
    return figures[0] * claim.factor


def _check(study_: study.Study, claim: study.Claim) -> CheckedClaim:
    computed = compute(study_, claim)
    return CheckedClaim(claim, computed, _agrees(claim, computed))


def _agrees(claim: study.Claim, computed: float) -> bool:
    excess = computed - float(claim.printed)
    if claim.relation is study.Relation.BELOW:
        return excess < -ROUNDING
    if claim.relation is study.Relation.AT_MOST:
        return excess <= ROUNDING
    if claim.relation is study.Relation.ABOVE:
        return excess > ROUNDING
    if claim.relation is study.Relation.AT_LEAST:
        return excess >= -ROUNDING
    decimals = len(claim.printed.partition('.')[2])
    # Half a unit of the last printed digit; a tie may round either way.
    return abs(excess) <= 0.5 * 10.0 ** -decimals + ROUNDING


def _figure(study_: study.Study, name: str) -> float:
    row_id, dot, field = name.rpartition('.')
    for row in study_.rows:
        if dot and row.id == row_id and field in ('native', 'guest', 'each'):
            value = getattr(row, field)
            if value is not None:
                return float(value)
    try:
        return float(name)
    except ValueError as exc:
        raise exception.InvalidInput(
            study_.id, f'a claim uses {name!r}, and no row has that figure'
        ) from exc

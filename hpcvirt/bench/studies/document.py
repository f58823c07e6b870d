# SPDX-License-Identifier: Apache-2.0

"""Studies and comparisons as documents, with each claim checked."""

import dataclasses
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.studies import comparison
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
    if kind is study.ClaimKind.RATIO:
        return figures[0] / figures[1]
    if kind is study.ClaimKind.GAIN:
        return (figures[0] / figures[1] - 1) * 100
    if kind is study.ClaimKind.LOSS:
        return (1 - figures[0] / figures[1]) * 100
    if kind is study.ClaimKind.POINTS:
        return (figures[0] / figures[1] - figures[2] / figures[3]) * 100
    if kind is study.ClaimKind.REDUCTION:
        after = 1 - figures[0] / figures[2]
        before = 1 - figures[1] / figures[2]
        return (1 - after / before) * 100
    if kind is study.ClaimKind.SHARE:
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


def describe_study(study_: study.Study) -> dict[str, Any]:
    """Return a study with what follows from its figures."""
    return {
        **serialization.dump(study_),
        # Nobody but the contributors has the file.
        'document': {name: value for name, value in serialization.dump(
            study_.document).items() if name != 'file'},
        'rows': [_row(row) for row in study_.rows],
        'claims': [{
            **serialization.dump(checked.claim),
            'computed': checked.computed, 'agrees': checked.agrees,
        } for checked in check(study_)],
    }


def describe_comparison(compared: comparison.SiteComparison) -> dict[str, Any]:
    """Return a published figure and the results of the site."""
    return {**serialization.dump(compared),
            'row': None if compared.row is None else _row(compared.row)}


def _row(row: study.PublishedComparison) -> dict[str, Any]:
    return {**serialization.dump(row), 'ratio': row.ratio}

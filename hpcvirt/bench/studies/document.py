# SPDX-License-Identifier: Apache-2.0

"""Studies and comparisons as documents, with each claim checked."""

import dataclasses
from collections.abc import Callable
from collections.abc import Mapping
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


#: What follows from the figures a, b, c, d of a claim.
_FORMULAS: Mapping[study.ClaimKind, Callable[..., float]] = {
    study.ClaimKind.RATIO: lambda a, b: a / b,
    study.ClaimKind.GAIN: lambda a, b: (a / b - 1) * 100,
    study.ClaimKind.LOSS: lambda a, b: (1 - a / b) * 100,
    study.ClaimKind.POINTS: lambda a, b, c, d: (a / b - c / d) * 100,
    study.ClaimKind.REDUCTION: lambda a, b, c: (
        1 - (1 - a / c) / (1 - b / c)) * 100,
    study.ClaimKind.SHARE: lambda a, b: a / b * 100,
    study.ClaimKind.TOTAL: lambda a: a,
}
#: Relation to the comparison of a computed number with the printed one.
_RELATIONS: Mapping[study.Relation | None, Callable[[float], bool]] = {
    study.Relation.BELOW: lambda excess: excess < -ROUNDING,
    study.Relation.AT_MOST: lambda excess: excess <= ROUNDING,
    study.Relation.ABOVE: lambda excess: excess > ROUNDING,
    study.Relation.AT_LEAST: lambda excess: excess >= -ROUNDING,
}


def check(study_: study.Study) -> tuple[CheckedClaim, ...]:
    """Recompute every claim of a study.

    :raises InvalidInput: for a claim about a figure that does not exist
    """
    return tuple(CheckedClaim(claim, computed := compute(study_, claim),
                              _agrees(claim, computed))
                 for claim in study_.claims)


def compute(study_: study.Study, claim: study.Claim) -> float:
    """Compute what follows from the figures, unrounded."""
    return claim.factor * _FORMULAS[claim.kind](
        *(_figure(study_, name) for name in claim.of))


def _agrees(claim: study.Claim, computed: float) -> bool:
    excess = computed - float(claim.printed)
    if claim.relation in _RELATIONS:
        return _RELATIONS[claim.relation](excess)
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

# SPDX-License-Identifier: Apache-2.0

"""Compare the winner with today's profile in pairs of fresh boots.

The best of many configurations looks better than it is. Therefore only these
pairs decide whether there is a gain, by the rules of verdicts
(:mod:`hpcvirt.bench.analysis.losses`).
"""

import math
from collections.abc import Sequence

from hpcvirt.bench.analysis import losses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import unit_losses
from hpcvirt.bench.model import outcome
from hpcvirt.tune import effects
from hpcvirt.tune import findings
from hpcvirt.tune import guard as guards
from hpcvirt.tune import replicates
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial


def confirm(space: spaces.Space, levels: trial.Levels,
            trials: Sequence[trial.Trial],
            guard: guards.Guard) -> findings.Confirmation:
    """Judge the pairs of boots so far.

    :param levels: the configuration that is compared with today's
    """
    pairs = _find_pairs(space.today, levels, trials)
    found = _estimate(pairs, replicates.measure_objective(space))
    refused = guard.judge_winner(levels).reason
    return findings.Confirmation(
        levels, len(pairs), None if found is None else _describe(found),
        found is not None and not found.resemblance and refused is None
        and found.p_beyond(0.0) <= stats.ALPHA, refused)


def _find_pairs(today: trial.Levels, levels: trial.Levels,
                trials: Sequence[trial.Trial],
                ) -> list[tuple[trial.Trial, trial.Trial]]:
    made: dict[int, dict[trial.Levels, trial.Trial]] = {}
    for each in trials:
        if each.step.stage is trial.Stage.CONFIRM:
            made.setdefault(each.step.block, {})[each.step.levels] = each
    return [(pair[today], pair[levels]) for _, pair in sorted(made.items())
            if today in pair and levels in pair]


def _estimate(pairs: Sequence[tuple[trial.Trial, trial.Trial]],
              figure: replicates.Figure) -> losses.Losses | None:
    """Estimate the loss of the winner, None with too few pairs."""
    values = [(math.exp(-today), math.exp(-winner))
              for today, winner in ((figure(one), figure(other))
                                    for one, other in pairs)
              if today is not None and winner is not None]
    if len(values) < sample_pairs.MIN_PAIRS:
        return None
    native, guest = zip(*values, strict=True)
    return unit_losses.estimate(
        sample_pairs.MetricValues(native, guest, tuple(range(len(values)))),
        outcome.Direction.DOWN, (), losses.Caution(limit=0.0))


def _describe(found: losses.Losses) -> findings.Effect:
    low, high = found.ends(effects.LEVEL)
    return findings.Effect(-found.loss, -high, -low)

# SPDX-License-Identifier: Apache-2.0

"""Judge growing evidence: stop as soon as it decides, without more errors.

A run that is judged after every pair, and ends when the verdict is welcome,
is wrong four times as often as promised. So the numbers of pairs at which a
run may stop are fixed in advance, and the chance of an error is divided among
them. Whatever the noise, the chances add up to that of a single verdict.

Where the measured pairs leave a figure open, this module also estimates how
many pairs would decide.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import losses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record

#: Pairs before the first look, and their growth until the next one. With
#: fewer than 8 of 40 pairs, no loss is large enough for a decision.
MIN_PAIRS = 8
_GROWTH = 1.5


@dataclasses.dataclass(frozen=True, slots=True)
class Sequential:
    """The evidence of several looks; each look includes those before it.

    :ivar estimates: of each look so far
    :ivar shares: of the chance of an error, for each of them
    """

    estimates: tuple[stats.Estimate, ...]
    shares: tuple[float, ...]

    @property
    def loss(self) -> float:
        """That of the last look."""
        return self.estimates[-1].loss

    def ends(self, level: float = stats.LEVEL) -> tuple[float, float]:
        """Return the ends of what no look rejects."""
        found = [estimate.ends(1 - (1 - level) * share) for estimate, share
                 in zip(self.estimates, self.shares, strict=True)]
        return max(low for low, _ in found), min(high for _, high in found)

    def p_beyond(self, limit: float) -> float:
        """Return the p-value of a loss of at least the limit."""
        return min(1.0, *(
            estimate.p_beyond(limit) / share for estimate, share
            in zip(self.estimates, self.shares, strict=True)))

    def p_within(self, limit: float) -> float:
        """Return the p-value of a loss of at most the limit."""
        return min(1.0, *(
            estimate.p_within(limit) / share for estimate, share
            in zip(self.estimates, self.shares, strict=True)))


def plan(most: int, first: int = MIN_PAIRS) -> tuple[int, ...]:
    """Return the numbers of pairs at which a run may stop.

    :param most: number of pairs at which it stops in any case, at least
        :data:`hpcvirt.bench.analysis.sample_pairs.MIN_PAIRS`
    :param first: number of pairs before the first look
    """
    found = []
    pairs = float(first)
    while round(pairs) < most:
        found.append(round(pairs))
        pairs *= _GROWTH
    return (*found, most)


def shares(looks: Sequence[int], units: Sequence[int],
           share: float = 1.0) -> tuple[float, ...]:
    """Divide the chance of an error by the pairs that each look adds.

    A look with too few units for a decision spends nothing, and leaves its
    part to the next one.

    :param units: how many losses each look has that was reached
    :param share: of the chance of an error that there is to divide
    :returns: the share of each look that was reached, 0 if it spends nothing
    """
    found = []
    spent = 0
    for pairs, count in zip(looks, units, strict=False):
        part = share * (pairs - spent) / looks[-1]
        if signed_rank.find_least(part) > count:
            part = 0.0
        else:
            spent = pairs
        found.append(part)
    return tuple(found)


def find_reached(looks: Sequence[int], pairs: int) -> tuple[int, ...]:
    """Return the looks for which this number of pairs is enough."""
    return tuple(look for look in looks if look <= pairs)


def first(values: sample_pairs.MetricValues,
          pairs: int) -> sample_pairs.MetricValues:
    """Return the first pairs of both sides."""
    return sample_pairs.MetricValues(*(
        tuple(getattr(values, field.name)[:pairs])
        for field in dataclasses.fields(values)))


#: How likely the pairs are to decide, if the ratio is as estimated.
POWER = 0.8
#: The number of pairs that show stragglers with a probability of 95 %, if 5 %
#: of all runs are stragglers.
STRAGGLERS = 60
#: Beyond this number it is wiser to reduce the noise.
MAX_PAIRS = 200


def estimate_pairs(judged: judgement.Judgement, run: record.Run,
                   figures: int) -> int | None:
    """Estimate how many pairs of a further run decide, with 80 % probability.

    The interval shrinks with the square root of the number of pairs. If the
    ratio is as estimated, it excludes the bound when it is shorter than the
    distance to the bound, by as much as makes that likely. A further run on a
    known subject adds its pairs to the evidence, for a smaller part of the
    errors; any other run is judged by itself.

    :param judged: a figure with an interval and a limit
    :param run: that it was measured in
    :param figures: number of figures that are judged together (Holm)
    :returns: a multiple of 5, more than were measured; None if it is more
        than :data:`MAX_PAIRS`, as for a guest that is exactly at its bound
    """
    if judged.interval is None or judged.limit is None:
        return None
    least = judged.pairs + 1
    if (judged.tail
            and judged.tail.result is judgement.VerdictResult.INCONCLUSIVE):
        least = max(least, STRAGGLERS)
    ratio, limit = math.log(judged.interval.ratio), math.log(judged.limit)
    end = judged.interval.low if ratio > limit else judged.interval.high
    distance = abs(ratio - limit)
    if distance <= stats.EQUAL:
        return None
    least = max(least, losses.find_least(distance, limit))
    further = attempts.share(len(judged.earlier) + 2) if run.subject else 1.0
    further /= max(1, figures)
    least = max(least, signed_rank.find_least(further))
    wanted = (_quantile(further)
              + statistics.NormalDist().inv_cdf(POWER)) / _quantile(
                  _share(judged, run))
    pairs = max(least, judged.pairs * (
        wanted * abs(math.log(end) - ratio) / distance) ** 2)
    if run.subject:
        pairs = max(pairs - judged.pairs, sample_pairs.MIN_PAIRS)
    return None if pairs > MAX_PAIRS else 5 * math.ceil(pairs / 5)


def _share(judged: judgement.Judgement, run: record.Run) -> float:
    """Return the part of the errors that an interval took."""
    evidence = attempts.gather(run)
    done = find_reached(evidence.run.interim_analyses,
                        judged.pairs)
    units = [look * (judged.launches or judged.pairs) // judged.pairs
             for look in done]
    spent = shares(evidence.run.interim_analyses, units, evidence.share)
    return next(filter(None, reversed(spent)), evidence.share)


def _quantile(share: float) -> float:
    return statistics.NormalDist().inv_cdf(1 - share * stats.ALPHA)

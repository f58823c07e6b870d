# SPDX-License-Identifier: Apache-2.0

"""Judge a run at several numbers of pairs without increasing its errors.

If a run is judged after every pair and ends when the verdict is welcome, it is
wrong four times as often as promised. Therefore the numbers of pairs at which
a run may stop, its *looks*, are fixed in advance. The chance of an error is
spent on them gradually, as a power of the fraction of planned pairs
[Kim-DeMets-1987]. Successive looks mostly agree, because each one includes the
pairs of the one before. Hence a look spends only the chance of an error that
the last look did not make, which is exact for signed ranks
(:func:`hpcvirt.bench.analysis.signed_rank.find_both`). Errors that only looks
before the last one made count twice, so that less is spent than promised.
"""

import bisect
import dataclasses
import functools
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

#: The approximate growth of the number of pairs from one look to the next.
_GROWTH = 1.5
#: The spent part is the fraction of the pairs to this power. With 2, one more
#: run in 100 decides nothing; with 3, a good guest takes one more pair in 15.
_SPENDING = 2.5
#: The smallest p-value is that of Holm's method, halved this many times.
_HALVES = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Sequential:
    """The evidence of several looks; each look includes those before it.

    :ivar estimates: the estimate of each look so far
    :ivar counts: the number of losses of each look
    :ivar parts: the fraction of the planned pairs of each look
    :ivar share: the share of a single run's chance of an error
    :ivar figures: number of figures that are judged together (Holm)
    """

    estimates: tuple[losses.Losses, ...]
    counts: tuple[int, ...]
    parts: tuple[float, ...]
    share: float = 1.0
    figures: int = 1

    @property
    def loss(self) -> float:
        return self.estimates[-1].loss

    @property
    def decides(self) -> bool:
        """Whether any loss would be large enough to be decided so far."""
        return any(self._levels(1 - stats.LEVEL))

    def ends(self, level: float = stats.LEVEL) -> tuple[float, float]:
        """Return the ends of the interval that no look rejects."""
        found = [estimate.ends(1 - each) for estimate, each
                 in zip(self.estimates, self._levels(1 - level), strict=True)]
        return max(low for low, _ in found), min(high for _, high in found)

    def p_beyond(self, limit: float) -> float:
        return self._p([each.p_beyond(limit) for each in self.estimates])

    def p_within(self, limit: float) -> float:
        return self._p([each.p_within(limit) for each in self.estimates])

    def _levels(self, level: float) -> tuple[float, ...]:
        return find_levels(self.counts, self.parts, self.share * level)

    def _p(self, p_values: Sequence[float]) -> float:
        """Return the smallest of several levels that rejects, 1 if none does.

        The levels are those of Holm's method and, for the best of several
        figures, smaller ones. All larger levels must reject too, because an
        earlier look may spend what a later look lacks.
        """
        found = 1.0
        for figures in (*range(1, self.figures + 1), *(
                self.figures << power for power in range(1, _HALVES + 1))):
            level = stats.ALPHA / figures
            if all(p > each + stats.EQUAL for p, each in zip(
                    p_values, self._levels(level), strict=True)):
                break
            found = level - stats.EQUAL
        return found


@functools.lru_cache(maxsize=4096)
def find_levels(counts: tuple[int, ...], parts: tuple[float, ...],
                level: float) -> tuple[float, ...]:
    """Return the level of each look, so that all keep to the overall level.

    A look with too few losses for a decision spends nothing, and leaves its
    part to the next one.

    :param counts: the number of losses of each look
    :param parts: the fraction of the planned pairs of each look
    :returns: the chance of an error at each look, 0 if it decides nothing
    """
    found = []
    spent = 0.0
    last: tuple[int, int] | None = None
    for count, part in zip(counts, parts, strict=True):
        def new(rank_sum: int, count: int = count,
                last: tuple[int, int] | None = last) -> float:
            """Return the chance of errors that the last look did not make."""
            chance = signed_rank.find_chance(count, rank_sum)
            return chance if last is None or last[0] >= count else (
                chance - signed_rank.find_both(*last, count, rank_sum))
        most = signed_rank.find_critical(count, level)
        rank_sum = bisect.bisect_right(
            range(most + 1), level * part ** _SPENDING - spent, key=new) - 1
        if rank_sum < 0:
            found.append(0.0)
            continue
        spent += new(rank_sum)
        last = count, rank_sum
        found.append(signed_rank.find_chance(*last))
    return tuple(found)


def plan(most: int,
         first: int = sample_pairs.MIN_PAIRS) -> tuple[int, ...]:
    """Return the numbers of pairs at which a run may stop.

    :param most: number of pairs at which it stops in any case, at least
        :data:`hpcvirt.bench.analysis.sample_pairs.MIN_PAIRS`
    :param first: the smallest number of pairs at the first look
    """
    while first < most and not any(find_levels(
            (first,), (first / most,), stats.ALPHA)):
        first += 1
    growths = max(0, round(math.log(most / first) / math.log(_GROWTH)))
    return (*(round(first * (most / first) ** (number / growths))
              for number in range(growths)), most)


def first(values: sample_pairs.MetricValues,
          pairs: int) -> sample_pairs.MetricValues:
    """Return the first pairs of both sides."""
    return sample_pairs.MetricValues(*(
        tuple(getattr(values, field.name)[:pairs])
        for field in dataclasses.fields(values)))


#: The probability that the pairs decide, if the ratio is as estimated.
POWER = 0.8
#: If 5 % of all runs are stragglers, this number of pairs has some with a
#: probability of 95 %.
STRAGGLERS = 60
#: The most pairs to suggest; beyond this number, the noise must be reduced.
MAX_PAIRS = 200


def estimate_pairs(judged: judgement.Judgement, run: record.Run,
                   figures: int) -> int | None:
    """Estimate how many pairs of a further run decide, with 80 % probability.

    The interval shrinks with the square root of the number of pairs. If the
    ratio is as estimated, the interval excludes the bound once it is shorter
    than the distance to the bound, with a margin for this probability. A
    further run on a known subject adds its pairs to the evidence, for a
    smaller share of the errors; any other run is judged by itself.

    :param run: the run in which the figure was measured
    :param figures: number of figures that are judged together (Holm)
    :returns: a multiple of 5, more than were measured; None if it exceeds
        :data:`MAX_PAIRS`, as for a guest that is exactly at its bound
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
    own = 0.0 if judged.launches else math.sqrt(max(
        0.0, (judged.guest_cv or 0.0) ** 2 - (judged.native_cv or 0.0) ** 2))
    least = max(least, losses.find_least(distance, limit, own))
    further = attempts.share(len(judged.earlier) + 2) if run.subject else 1.0
    further /= max(1, figures)
    least = max(least, signed_rank.find_least(further))
    wanted = (stats.quantile(further * stats.ALPHA)
              + statistics.NormalDist().inv_cdf(POWER)) / stats.quantile(
                  _level(judged, run))
    pairs = max(least, judged.pairs * (
        wanted * abs(math.log(end) - ratio) / distance) ** 2)
    if run.subject:
        pairs = max(pairs - judged.pairs, sample_pairs.MIN_PAIRS)
    return None if pairs > MAX_PAIRS else 5 * math.ceil(pairs / 5)


def _level(judged: judgement.Judgement, run: record.Run) -> float:
    """Return the chance of an error of the interval of a figure."""
    evidence = attempts.gather(run)
    looks = evidence.run.interim_analyses
    done = [look for look in looks if look <= judged.pairs]
    level = evidence.share * stats.ALPHA
    levels = find_levels(
        tuple(look * (judged.launches or judged.pairs) // judged.pairs
              for look in done), tuple(look / looks[-1] for look in done),
        level)
    return next(filter(None, reversed(levels)), level)

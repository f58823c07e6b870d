# SPDX-License-Identifier: Apache-2.0

"""Choose how many pairs are measured in each boot of a guest, from a pilot.

A guest varies from boot to boot, and its runs vary within a boot. Another boot
is better evidence than another pair in the same boot, but it costs a relaunch
and a warm-up. The number of pairs per boot that gives the narrowest interval
for the time spent is [Kalibera-Jones-2013]

    ceil(sqrt(cost of a boot / cost of a pair x variance of pairs within a
    boot / variance between boots)).

These four figures are estimated from the pilot: the first boots of the run,
whose pairs count like all others.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import unit_losses
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

PILOT_BOOTS = 3
PILOT_PAIRS = 2
#: A run has at least this number of boots; a run of at least :data:`LONG`
#: pairs has at least LONG_BOOTS.
MIN_BOOTS = sample_pairs.MIN_PAIRS
LONG = 16
LONG_BOOTS = 8
#: Runs of fewer pairs have no pilot: each pair has a boot of its own.
MIN_PAIRS_WITH_PILOT = PILOT_BOOTS * PILOT_PAIRS + MIN_BOOTS - PILOT_BOOTS

#: The fact of a sample with the duration of the relaunch before it.
RELAUNCH_S = 'relaunch_s'


def sizes(run: record.Run) -> tuple[int, ...]:
    """Return the number of pairs in each boot.

    Before the end of the pilot, one pair is planned for each later boot.
    """
    if run.planned_pairs < MIN_PAIRS_WITH_PILOT:
        return (1,) * run.planned_pairs
    rest = run.planned_pairs - PILOT_BOOTS * PILOT_PAIRS
    wanted, figures = _from_pilot(run)
    boots = count_least(run.planned_pairs, max(
        figures, run.planned_figures)) - PILOT_BOOTS
    boots = max(boots, math.ceil(rest / wanted))
    # Distribute the pairs as evenly as possible.
    return (*(PILOT_PAIRS,) * PILOT_BOOTS, *(
        rest * (boot + 1) // boots - rest * boot // boots
        for boot in range(boots)))


def count_least(pairs: int, figures: int) -> int:
    """Return the least number of boots that a number of pairs is measured in.

    :param figures: number of figures that are judged together
    """
    if pairs < MIN_PAIRS_WITH_PILOT:
        return pairs
    rest = pairs - PILOT_BOOTS * PILOT_PAIRS
    least = max(MIN_BOOTS if pairs < LONG else LONG_BOOTS,
                signed_rank.find_least(1 / figures))
    most = max(1, rest // (least - PILOT_BOOTS))
    return PILOT_BOOTS + math.ceil(rest / most)


def pairs_per_boot(boots: Sequence[Sequence[float]],
                   cost_ratio: float) -> float:
    """Return the number of pairs in each boot that the pilot suggests.

    :param boots: the losses in each boot, the same number in all
    :param cost_ratio: time for a boot / time for a pair
    :returns: infinity if boots differ no more than the pairs within them
    """
    within = statistics.fmean(map(statistics.variance, boots))
    between = (statistics.variance(map(statistics.fmean, boots))
               - within / len(boots[0]))
    if between <= stats.EQUAL ** 2:
        return math.inf
    return max(1, math.ceil(math.sqrt(cost_ratio * within / between)))


def _from_pilot(run: record.Run) -> tuple[float, int]:
    """Return the pairs per boot for the figure that varies most between boots.

    :returns: the number of pairs, 1 before the end of the pilot and infinite
        for an unpaired run; and the number of figures that are judged
    """
    if run.purpose is record.Purpose.UNPAIRED:
        return math.inf, 1
    count = PILOT_BOOTS * PILOT_PAIRS
    of_pilot = [sample.position for sample in run.samples
                if sample.pair < count and not sample.warm_up
                and not sample.control]
    if len(of_pilot) < 2 * count:
        return 1, 1
    # Later samples must not change the result of the pilot.
    pilot = dataclasses.replace(run, samples=tuple(
        sample for sample in run.samples
        if sample.position <= max(of_pilot)))
    cost_ratio = _cost_ratio(pilot)
    if cost_ratio is None or sample_pairs.explain_invalid(pilot) is not None:
        return 1, 1
    judged = {**bounds.find_bounds(pilot), **run.bounds}
    metrics = [metric for metric in sample_pairs.metrics(pilot)
               if metric in judged]
    losses = [unit_losses.find_losses(sample_pairs.values(pilot, metric),
                                      outcome.Direction.DOWN)
              for metric in metrics]
    return min((pairs_per_boot([each[first:first + PILOT_PAIRS]
                                for first in range(0, count, PILOT_PAIRS)],
                               cost_ratio) for each in losses),
               default=1), max(1, len(metrics))


def list_relaunches(run: record.Run) -> list[float]:
    """List the durations of the relaunches of the guest, in seconds."""
    durations: list[float] = []
    for sample in run.samples:
        durations += sample.numbers(RELAUNCH_S)
    return durations


def _cost_ratio(pilot: record.Run) -> float | None:
    """Return time for a boot / time for a pair, None if unknown."""
    relaunches = list_relaunches(pilot)
    pairs, warm_ups = ([sample.elapsed_s or 0.0 for sample in pilot.samples
                        if sample.warm_up is warm_up
                        and (sample.side is record.Side.GUEST or not warm_up)]
                       for warm_up in (False, True))
    if not relaunches or not sum(pairs):
        return None
    boot = statistics.fmean(relaunches) + sum(warm_ups) / len(relaunches)
    return boot / (2 * statistics.fmean(pairs))

# SPDX-License-Identifier: Apache-2.0

"""Order the samples of a run, and estimate the time that they take.

The warm-ups of both sides come first, then the pairs. Chance decides which
side of a pair goes first, so that a slow drift of the host (temperature, page
cache, neighbours) and the after-effects of a sample affect both sides alike. A
guest that is relaunched during the run is warmed up again after each boot.

The first pairs may have a *control*, a second native sample next to the native
one and away from the guest. The first of the two native samples follows a
guest sample, and the second one does not, so that they show what a guest
leaves behind. Therefore a pair with a control begins with native only if the
sample before it is the guest's.
"""

import dataclasses
import datetime
import itertools
import random
import statistics
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.bench.analysis import boots
from hpcvirt.bench.model import record

SIDES = (record.Side.NATIVE, record.Side.GUEST)


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedSample:
    """A sample to take.

    :ivar position: number in the order of execution, from 0
    :ivar pair: number of the pair, or of the warm-up; both from 0
    :ivar relaunch: the guest is relaunched before this sample
    :ivar control: a second native sample of its pair
    """

    position: int
    side: record.Side
    pair: int
    warm_up: bool
    relaunch: bool = False
    control: bool = False


def order(pairs: int, warm_ups: int,
          purpose: record.Purpose = record.Purpose.COMPARE,
          launch: record.Launch | None = None,
          seed: str = '',
          of_boots: Sequence[int] = (),
          controls: int = 0) -> tuple[PlannedSample, ...]:
    """Order the samples of a run.

    :param pairs: number of pairs, at least 1, without warm-ups
    :param warm_ups: number of warm-ups of each side
    :param purpose: an unpaired run has samples of the guest only
    :param launch: a cold guest, which is rebooted before each sample, has no
        warm-ups
    :param seed: of the random order
    :param of_boots: the number of pairs in each boot of a guest that is
        relaunched during the run; empty if it is not
    :param controls: number of pairs with a control
    """
    rng = random.Random(seed)  # noqa: S311 - no secret
    is_unpaired = purpose is record.Purpose.UNPAIRED
    is_cold = launch is record.Launch.COLD
    steps: list[tuple[int, record.Side, int, str]] = []
    first = 0
    for boot, size in enumerate(of_boots or (pairs,)):
        # A relaunch of the guest leaves the host warm.
        to_warm = SIDES if boot == 0 else (record.Side.GUEST,)
        numbers = range(boot * warm_ups, (boot + 1) * warm_ups)
        steps += [(boot, side, number, 'warm-up')
                  for number, side in itertools.product(numbers, to_warm)]
        for pair in range(first, first + size):
            both = [(boot, side, pair, '') for side in SIDES]
            if pair < controls:
                both.insert(0, (boot, record.Side.NATIVE, pair, 'control'))
            is_native_first = rng.random() < 0.5
            if pair < controls and steps and steps[-1][1] is not (
                    record.Side.GUEST):
                is_native_first = False
            steps += both if is_native_first else both[::-1]
        first += size
    found: list[PlannedSample] = []
    launched = -1 if of_boots else 0
    for boot, side, pair, kind in steps:
        is_guest, warm_up = side is record.Side.GUEST, kind == 'warm-up'
        if (is_cold and is_guest and warm_up) or (
                is_unpaired and not is_guest):
            continue
        found.append(PlannedSample(
            len(found), side, pair, warm_up,
            is_guest and (is_cold or boot > launched), kind == 'control'))
        if is_guest and of_boots:
            launched = boot
    return tuple(found)


def list_missing(run: record.Run) -> tuple[PlannedSample, ...]:
    """List the samples that a run still lacks, in their order.

    If the guest is relaunched, the samples after the pilot may change when
    the pilot ends.
    """
    taken = {sample.position for sample in run.samples}
    return tuple(
        planned for planned in order(
            run.planned_pairs, run.planned_warm_ups, run.purpose, run.launch,
            run.id, boots.sizes(run) if run.relaunched else (),
            run.planned_controls)
        if planned.position not in taken)


def estimate_seconds(run: record.Run) -> float | None:
    """Estimate the time of the samples that a run still lacks, in seconds.

    The time between the starts of two samples includes the overhead. The
    median of a side is robust against interruptions. Reboots of the guest
    are included as soon as one was measured.

    :returns: None if the run has no sample yet
    """
    taken = sorted(run.samples, key=lambda sample: sample.position)
    durations: dict[record.Side, list[float]] = {}
    for sample, after in itertools.pairwise((*taken, None)):
        if sample is not None:
            durations.setdefault(sample.side, []).append(
                _duration(sample, after))
    if not durations:
        return None
    typical = {side: statistics.median(found)
               for side, found in durations.items()}
    longest = max(typical.values())
    missing = list_missing(run)
    return (sum(typical.get(due.side, longest) for due in missing)
            + sum(due.relaunch for due in missing)
            * statistics.median(boots.list_relaunches(run) or [0.0]))


def format_remaining(run: record.Run) -> str:
    """Describe the remaining time of a run; empty if it is unknown."""
    left = estimate_seconds(run)
    if not left:
        return ''
    reboots = sum(due.relaunch for due in list_missing(run))
    further = ''
    if reboots and not boots.list_relaunches(run):
        further = f' besides {words.count_noun(reboots, "reboot")}'
    return f'about {format_seconds(left)} left{further}'


def format_seconds(seconds: float) -> str:
    """Format a duration: ``2 h 5 min``, ``12 min``, ``40 s``."""
    minutes = round(seconds / 60)
    if minutes >= 120:
        return f'{minutes // 60} h {minutes % 60} min'
    return f'{minutes} min' if minutes >= 2 else f'{seconds:.0f} s'


def _duration(sample: record.Sample, after: record.Sample | None) -> float:
    elapsed_s = sample.elapsed_s or 0.0
    if after and any(after.numbers(boots.RELAUNCH_S)):
        # The reboot between the two samples is counted separately.
        return elapsed_s
    if after is None or not sample.started_at or not after.started_at:
        return elapsed_s
    begin, end = (datetime.datetime.fromisoformat(each.started_at)
                  for each in (sample, after))
    return max(elapsed_s, (end - begin).total_seconds())

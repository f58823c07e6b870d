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

"""Estimate every figure of a run, ready for a verdict.

A figure without a bound, without enough pairs, or of an invalid run has its
judgement already; the others also carry the estimate that decides.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure with its judgement, or with what is needed to judge it.

    :ivar judgement: final if there is no estimate
    :ivar estimate: the loss of the guest, None if it cannot be judged
    :ivar limit: the largest acceptable loss
    :ivar machine: the loss of native against native, None if not measured
    """

    judgement: judgement.Judgement
    estimate: stats.Estimate | None = None
    limit: float = 0.0
    machine: stats.Estimate | None = None


def of_run(run: record.Run,
           machines: Iterable[record.Run]) -> list[Figure]:
    """Estimate all figures of a run that have a bound.

    :param machines: A/A runs
    :raises InvalidInput: if a pair has two samples in the same arm
    """
    why = sample_pairs.invalid(run)
    if why is not None:
        return [Figure(_blank(run, metric, judgement.Word.INVALID, why))
                for metric in run.bounds or ('all figures',)]
    measured = sample_pairs.metrics(run)
    return [of_metric(run, metric, bound, machines) if metric in measured
            else Figure(_blank(run, metric, judgement.Word.INCONCLUSIVE,
                               'not measured in every sample'))
            for metric, bound in run.bounds.items()]


def of_metric(run: record.Run, metric: str, bound: judgement.Bound | None,
              machines: Iterable[record.Run]) -> Figure:
    """Estimate one figure of a valid run.

    :raises InvalidInput: if a pair has two samples in the same arm
    """
    values = sample_pairs.values(run, metric)
    word = None if bound is None else judgement.Word.INCONCLUSIVE
    blank = _blank(run, metric, word, None)
    too_few = sample_pairs.too_few(run, values)
    if too_few is not None:
        return Figure(dataclasses.replace(
            blank, reason=too_few, pairs=len(values.pairs),
            native=_mean(values.native), guest=_mean(values.guest)))
    direction = blank.direction
    dropped: tuple[int, ...] = ()
    kept = values
    if values.pairs:
        disturbed = stats.disturbed(_losses(values, direction))
        dropped = tuple(values.pairs[index] for index in disturbed)
        kept = _without(values, disturbed)
        estimate = stats.paired(_losses(kept, direction))
    else:
        estimate = stats.unpaired(values.native, values.guest, direction)
    limit = None if bound is None else bound.limit(direction)
    estimated = dataclasses.replace(
        blank, limit=limit, pairs=len(kept.pairs), dropped=dropped,
        interval=interval(estimate, direction),
        native=_mean(kept.native), guest=_mean(kept.guest),
        native_cv=_variation(kept.native), guest_cv=_variation(kept.guest),
        remarks=tuple(_remarks(kept, dropped, estimate)))
    if limit is None:
        return Figure(estimated)
    return Figure(estimated, estimate, stats.loss_of_ratio(limit, direction),
                  _machine(run, metric, machines, direction))


def interval(estimate: stats.Estimate,
             direction: outcome.Direction) -> judgement.Interval:
    """Express an estimate as the ratio guest / native."""
    low, high = sorted(stats.ratio_of_loss(end, direction)
                       for end in stats.ends(estimate))
    return judgement.Interval(stats.ratio_of_loss(estimate.mean, direction),
                              low, high, stats.LEVEL)


def _machine(run: record.Run, metric: str, machines: Iterable[record.Run],
             direction: outcome.Direction) -> stats.Estimate | None:
    """Estimate native against native from a matching A/A run."""
    for machine in machines:
        if (machine.benchmark, machine.variant, machine.host) != (
                run.benchmark, run.variant, run.host):
            continue
        if (sample_pairs.invalid(machine)
                or metric not in sample_pairs.metrics(machine)):
            continue
        values = sample_pairs.values(machine, metric)
        if sample_pairs.too_few(machine, values) is None:
            return stats.paired(_losses(values, direction))
    return None


def _blank(run: record.Run, metric: str, word: judgement.Word | None,
           reason: str | None) -> judgement.Judgement:
    figure = next((sample.outcome.metrics[metric] for sample in run.samples
                   if metric in sample.outcome.metrics), None)
    return judgement.Judgement(
        label=run.label, metric=metric,
        unit=figure.unit if figure else '',
        direction=figure.direction if figure else outcome.Direction.UP,
        word=word, reason=reason, limit=None, interval=None, pairs=0,
        paired=run.purpose is not record.Purpose.UNPAIRED)


def _remarks(kept: sample_pairs.Values, dropped: tuple[int, ...],
             estimate: stats.Estimate) -> Iterator[str]:
    if dropped:
        yield (f'{len(dropped)} of {len(kept.pairs) + len(dropped)} pairs '
               'set aside: native was disturbed')
    for name, arm in (('native', kept.native), ('guest', kept.guest)):
        if len(set(arm)) == 1:
            yield (f'all {name} values are equal: a coarse clock, or copies '
                   'of one output')
    if estimate.error == 0:
        yield 'no variation at all: the interval is a point'


def _losses(values: sample_pairs.Values,
            direction: outcome.Direction) -> list[float]:
    return [stats.loss(native, guest, direction) for native, guest
            in zip(values.native, values.guest, strict=True)]


def _without(values: sample_pairs.Values,
             excluded: Sequence[int]) -> sample_pairs.Values:
    kept = [index for index in range(len(values.pairs))
            if index not in excluded]
    return sample_pairs.Values(tuple(values.native[index] for index in kept),
                               tuple(values.guest[index] for index in kept),
                               tuple(values.pairs[index] for index in kept))


def _mean(arm: Sequence[float]) -> float | None:
    return statistics.geometric_mean(arm) if arm else None


def _variation(arm: Sequence[float]) -> float:
    """Return the coefficient of variation, from logarithms."""
    return statistics.stdev(math.log(value) for value in arm)

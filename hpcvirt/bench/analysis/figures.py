# SPDX-License-Identifier: Apache-2.0

"""Estimate every figure of a run, as input of a verdict."""

import dataclasses
import math
import statistics
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import evidence
from hpcvirt.bench.analysis import interim_analyses
from hpcvirt.bench.analysis import losses
from hpcvirt.bench.analysis import power
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import stragglers
from hpcvirt.bench.analysis import unit_losses
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

#: Why a figure is not judged.
NOT_MEASURED = 'not measured in every sample'


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure with its judgement, or with what is needed to judge it.

    :ivar judgement: the judgement, final if there is no estimate
    :ivar estimate: the loss of the guest, None if it cannot be judged
    :ivar limit: the largest acceptable loss
    :ivar step: the resolution of losses
    :ivar machine: the loss of native against native, None if not measured
    :ivar control: the same from the controls of the run itself
    :ivar slow: the stragglers, None if the figure has no bound
    :ivar share: the share of a single run's chance of an error
    :ivar together: number of figures that are judged together
    :ivar has_own_noise: whether noise of the guest alone determines how near
        to the bound a loss is not decided
    """

    judgement: judgement.Judgement
    estimate: stats.Estimate | None = None
    limit: float = 0.0
    step: float = 0.0
    machine: stats.Estimate | None = None
    control: stats.Estimate | None = None
    slow: stragglers.Stragglers | None = None
    share: float = 1.0
    together: int = 1
    has_own_noise: bool = False


def count(runs: Iterable[record.Run]) -> int:
    """Count the figures of runs that have a bound; return at least 1."""
    return max(1, sum(metric in run.bounds for run in runs
                      for metric in sample_pairs.metrics(run)))


def estimate_run(run: record.Run, machines: Iterable[record.Run],
                 together: int = 0) -> list[Figure]:
    """Estimate all figures of a run that have a bound.

    :param run: the run with its earlier attempts, whose pairs count as well
    :param machines: A/A runs
    :param together: number of figures that are judged together, 0 for those
        of the run
    :raises InvalidInput: if a pair has two samples on one side
    """
    found = attempts.gather(run)
    together = together or count([run])
    # A message about a failed sample names its number in its own attempt.
    checked = run if sample_pairs.explain_invalid(run) else found.run
    return [_after_failures(figure, found) for figure in estimate_each(
        checked, run.bounds, lambda metric, bound: estimate_metric(
            found, metric, bound, machines, together))]


def _after_failures(figure: Figure, found: attempts.Evidence) -> Figure:
    """Judge failed runs if an attempt is invalid because of them."""
    native, guest = (
        [sample.outcome.valid for sample in found.run.samples
         if sample.side is side and not sample.control
         and not (sample.warm_up and sample.outcome.valid)]
        for side in (record.Side.NATIVE, record.Side.GUEST))
    if (figure.judgement.result is not judgement.VerdictResult.INVALID
            or all(guest)):
        return figure
    failed = (found.failed[0] + native.count(False),
              found.failed[1] + guest.count(False))
    runs = (found.failed[0] + len(native), found.failed[1] + len(guest))
    remark = (f'{failed[1]} of {runs[1]} guest runs and {failed[0]} of '
              f'{runs[0]} native runs of all attempts failed')
    judged = dataclasses.replace(figure.judgement, remarks=(remark,))
    # If all guest runs failed, the guest was set up incorrectly.
    if failed[1] < runs[1] and stragglers.find_chance(
            *failed, *runs) <= found.share * stragglers.ALPHA / 2:
        judged = dataclasses.replace(
            judged, result=judgement.VerdictResult.FAIL, remedy=None,
            reason='runs of the guest fail, and those of native do not')
    return dataclasses.replace(figure, judgement=judged)


def estimate_each(run: record.Run, wanted: Mapping[str, judgement.Bound],
                  estimate: Callable[[str, judgement.Bound], Figure],
                  too_few: str | None = None) -> list[Figure]:
    """Estimate the figures of a run that have a bound, where possible.

    :param wanted: the bound of each figure
    :param estimate: a function that estimates a figure that all samples have
    :param too_few: why a valid run decides nothing, None if it may
    """
    why = sample_pairs.explain_invalid(run)
    word = judgement.VerdictResult.INVALID
    if why is None:
        why, word = too_few, judgement.VerdictResult.INCONCLUSIVE
    measured = sample_pairs.metrics(run) if why is None else ()
    return [estimate(metric, wanted[metric]) if metric in measured
            else Figure(dataclasses.replace(
                make_blank(run, metric, word, why or NOT_MEASURED),
                remedy=judgement.Remedy.MEASURE_AGAIN))
            for metric in wanted or (['all figures'] if why else [])]


def estimate_metric(found: attempts.Evidence, metric: str,
                    bound: judgement.Bound | None,
                    machines: Iterable[record.Run],
                    together: int = 1) -> Figure:
    """Estimate one figure of a valid run.

    :param together: number of figures that are judged together
    :raises InvalidInput: if a pair has two samples on one side
    """
    run = found.run
    values = sample_pairs.values(run, metric)
    done = [look for look in run.interim_analyses if look <= len(values.pairs)]
    if done:
        values = interim_analyses.first(values, done[-1])
    word = None if bound is None else judgement.VerdictResult.INCONCLUSIVE
    blank = dataclasses.replace(
        make_blank(run, metric, word, None), pairs=len(values.pairs),
        native=_mean(values.native), guest=_mean(values.guest))
    too_few = sample_pairs.explain_too_few(run, values)
    if too_few is not None:
        return Figure(dataclasses.replace(
            blank, reason=too_few,
            remedy=judgement.Remedy.PAIRS if word else None))
    direction = blank.direction
    blank = dataclasses.replace(blank, native_cv=_variation(values.native),
                                guest_cv=_variation(values.guest))
    copied = evidence.copies(run, metric, values)
    if copied is not None:
        return Figure(dataclasses.replace(
            blank, result=word and judgement.VerdictResult.INVALID,
            reason=copied,
            remedy=judgement.Remedy.MEASURE_AGAIN if word else None))
    units = unit_losses.find_units(values, of_launch=run.of_launch)
    limit = None if bound is None else bound.limit(direction)
    worst = None if limit is None else stats.loss_of_ratio(limit, direction)
    caution = losses.Caution(
        worst, together, max(1, len(run.interim_analyses)) if units else 1)
    sequential = _look(found, values, done, units, caution, direction)
    last = (sequential.estimates[-1] if sequential.estimates
            else unit_losses.estimate(values, direction, units, caution,
                                      found.before))
    estimate: stats.Estimate = sequential if sequential.decides else last
    slow = stragglers.find(*unit_losses.find_times(values, direction),
                           found.failed)
    estimated = dataclasses.replace(
        blank, limit=limit, launches=len(set(units)),
        boots=len(set(values.launches or values.boots)),
        interim_analyses=len(done),
        interval=interval(estimate.loss, estimate.ends(), direction),
        mean=None if last.mean is None else interval(
            last.mean.loss, last.mean_ends(), direction),
        remarks=tuple(_remarks(values, last, slow, found.failed)))
    if limit is None or worst is None:
        return Figure(estimated)
    if bound and bound.is_measured:
        estimated = _with_study(estimated, limit, caution.find_room(
            len(set(units)) or len(values.pairs) or 1))
    base = Figure(estimated, limit=worst, slow=slow,
                  has_own_noise=last.has_own_noise,
                  share=found.share / max(1, len(run.interim_analyses)))
    reason, remedy = _find_obstacle(run, values, last)
    if reason is None and done and not sequential.decides:
        reason = (f'{len(set(units)) or done[-1]} '
                  f'{"boots" if units else "pairs"} cannot decide with the '
                  'part of the error rates that is left for them')
        remedy = judgement.Remedy.PAIRS
    if reason is not None:
        return dataclasses.replace(base, judgement=dataclasses.replace(
            estimated, reason=reason, remedy=remedy))
    return dataclasses.replace(
        base, estimate=estimate,
        step=evidence.step(values.native, values.guest),
        machine=_machine(run, metric, machines, direction),
        control=_control(run, metric, direction))


def _look(found: attempts.Evidence, values: sample_pairs.MetricValues,
          done: Sequence[int], units: Sequence[str],
          caution: losses.Caution,
          direction: outcome.Direction) -> interim_analyses.Sequential:
    """Estimate the losses at each number of pairs that was judged."""
    counts = {look: len(set(units[:look])) if units else look for look in done}
    looks = [look for look in done if counts[look] >= sample_pairs.MIN_PAIRS]
    parts = tuple(look / found.run.interim_analyses[-1] for look in looks)
    numbers = tuple(counts[look] for look in looks)
    return interim_analyses.Sequential(
        tuple(unit_losses.estimate(
            interim_analyses.first(values, look), direction,
            units[:look], caution, found.before) for look in looks),
        numbers, parts, found.share, caution.figures)


def _with_study(figure: judgement.Judgement,
                limit: float, room: float) -> judgement.Judgement:
    """Remark which ratios are decided near a bound that a study measured."""
    found = figure.interval
    if found is None or found.low <= 0 or not (
            found.low <= limit <= found.high
            or abs(math.log(found.ratio / limit)) < room):
        return figure
    ratios = power.find_decided(found, limit, room)
    worse, better = (ratios if figure.direction is outcome.Direction.UP
                     else ratios[::-1])
    return dataclasses.replace(figure, remarks=(*figure.remarks, (
        f'a study measured {limit:.4g}, and a guest exactly as measured '
        'remains INCONCLUSIVE in 9 of 10 runs, however long they are; with '
        f'this noise, {figure.pairs} pairs pass one at {better:.4g} and fail '
        f'one at {worse:.4g} in 4 of 5 cases')))


def _find_obstacle(run: record.Run, values: sample_pairs.MetricValues,
                   estimate: losses.Losses,
                   ) -> tuple[str | None, judgement.Remedy | None]:
    """Return why the samples decide nothing, and what would; None if not."""
    if estimate.resemblance:
        return estimate.resemblance, (
            judgement.Remedy.LAUNCHES if run.of_launch
            else judgement.Remedy.QUIETER_MACHINE)
    count = len(set(values.launches))
    if run.of_launch or not count or count >= sample_pairs.MIN_PAIRS:
        return None, None
    return ('all samples are of one launch of the guest, and the next '
            'launch may differ' if count == 1 else
            f'the samples are of {count} launches of the guest, at least '
            f'{sample_pairs.MIN_PAIRS} are needed', judgement.Remedy.LAUNCHES)


def interval(loss: float, ends: Iterable[float],
             direction: outcome.Direction) -> judgement.Interval:
    """Express a loss and its interval as the ratio guest / native."""
    low, high = sorted(stats.ratio_of_loss(end, direction) for end in ends)
    return judgement.Interval(stats.ratio_of_loss(loss, direction),
                              low, high, stats.LEVEL)


def _machine(run: record.Run, metric: str, machines: Iterable[record.Run],
             direction: outcome.Direction) -> stats.Estimate | None:
    """Estimate native against native from a matching A/A run."""
    for machine in machines:
        if (machine.benchmark, machine.variant, machine.host) == (
                run.benchmark, run.variant, run.host) and (
                    not sample_pairs.explain_invalid(machine)
                    and metric in sample_pairs.metrics(machine)):
            values = sample_pairs.values(machine, metric)
            if sample_pairs.explain_too_few(machine, values) is None:
                return signed_rank.estimate(
                    unit_losses.find_losses(values, direction))
    return None


def _control(run: record.Run, metric: str,
             direction: outcome.Direction) -> stats.Estimate | None:
    """Estimate native against native from the controls of a run."""
    values = sample_pairs.controls(run, metric)
    if len(values.pairs) < sample_pairs.MIN_PAIRS:
        return None
    return signed_rank.estimate(unit_losses.find_losses(values, direction))


def make_blank(run: record.Run, metric: str,
               word: judgement.VerdictResult | None,
               reason: str | None) -> judgement.Judgement:
    """Make the judgement of a figure without an estimate."""
    figure = next((sample.outcome.metrics[metric] for sample in run.samples
                   if metric in sample.outcome.metrics), None)
    return judgement.Judgement(
        label=run.label, metric=metric,
        unit=figure.unit if figure else '',
        direction=figure.direction if figure else outcome.Direction.UP,
        result=word, reason=reason, limit=None, interval=None, pairs=0,
        paired=run.purpose is not record.Purpose.UNPAIRED)


def _remarks(values: sample_pairs.MetricValues, estimate: losses.Losses,
             found: stragglers.Stragglers,
             failed: tuple[int, int]) -> Iterator[str]:
    for name, side in (('native', values.native), ('guest', values.guest)):
        if len(set(side)) == 1:
            yield f'all {name} values are equal: a coarse clock'
    if found.native or found.guest:
        yield (f'{found.guest} of {found.runs[1]} guest runs and '
               f'{found.native} of {found.runs[0]} native '
               'runs are much slower than the others')
    if any(failed):
        yield (f'of these, {failed[1]} of the guest and {failed[0]} of native '
               'failed in earlier attempts')
    ended = [loss for loss in found.in_guest if loss < math.inf]
    if ended:
        yield ('the longest run of the guest took '
               f'{math.exp(max(ended)):.3g} times as long as a typical one')
    if estimate.widening > 1:
        yield ('the losses resemble those before them, so that the interval '
               f'is {estimate.widening:.1f} times as wide')


def _mean(side: Sequence[float]) -> float | None:
    return statistics.geometric_mean(side) if side else None


def _variation(side: Sequence[float]) -> float:
    """Return the coefficient of variation, computed from logarithms."""
    return statistics.stdev(math.log(value) for value in side)

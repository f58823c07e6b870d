# SPDX-License-Identifier: Apache-2.0

"""Estimate every figure of a run, as input of a verdict."""

import dataclasses
import math
import operator
import statistics
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import evidence
from hpcvirt.bench.analysis import losses
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
    :ivar few_boots: number of boots of the guest if they are too few for a
        question about its boots in general, else 0
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
    few_boots: int = 0


def count(runs: Iterable[record.Run]) -> int:
    """Count the figures of runs that have a bound; return at least 1."""
    bounded = 0
    for run in runs:
        bounded += sum(metric in run.bounds
                       for metric in sample_pairs.metrics(run))
    return max(1, bounded)


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
                make_without_estimate(run, metric, word, why or NOT_MEASURED),
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
    word = None if bound is None else judgement.VerdictResult.INCONCLUSIVE
    blank = dataclasses.replace(
        make_without_estimate(run, metric, word, None),
        pairs=len(values.pairs), native=_mean(values.native),
        guest=_mean(values.guest))
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
    context = losses.JudgingContext(worst, together)
    count = len(set(units)) or len(values.pairs)
    too_small = bool(values.pairs) and count < signed_rank.find_least(
        found.share)
    # The interval is shown even if the share leaves no decision.
    estimate = unit_losses.estimate(values, direction, units, context,
                                    found.before,
                                    1.0 if too_small else found.share)
    slow = stragglers.find(*unit_losses.find_times(values, direction),
                           found.failed)
    estimated = dataclasses.replace(
        blank, limit=limit, launches=len(set(units)),
        boots=len(set(values.launches or values.boots)),
        interval=interval(estimate.loss, estimate.ends(), direction),
        mean=None if estimate.mean is None else interval(
            estimate.mean.loss, estimate.mean_ends(), direction),
        remarks=tuple(_remarks(values, estimate, slow, found.failed)))
    if bound is None or limit is None or worst is None:
        return Figure(estimated)
    if bound.is_of_study:
        estimated = _with_study(estimated, bound)
    base = Figure(estimated, limit=worst, slow=slow, share=found.share,
                  few_boots=_count_few_boots(run, values))
    reason, remedy = _find_obstacle(run, values, estimate)
    if estimate.correlation_obstacle and not units:
        usual = _list_usual(values, direction)
        estimated = dataclasses.replace(
            estimated, transient=losses.find_transient(usual, context))
        if estimated.transient:
            remedy = judgement.Remedy.WARM_UPS
            reason = (f'the first {estimated.transient} of {len(usual)} '
                      'losses differ from all later ones, as if there were '
                      'too few warm-ups')
    if reason is None and too_small:
        reason = (f'{count} {"boots" if units else "pairs"} cannot decide '
                  'with the part of the error rates that is left for them')
        remedy = judgement.Remedy.PAIRS
    if reason is None and values.pairs and not units:
        native, guest = _replace_stragglers(values, direction)
        reason = losses.explain_spread(native, guest, estimate.loss - worst)
        remedy = judgement.Remedy.PAIRS if reason else None
    if reason is not None:
        return dataclasses.replace(base, judgement=dataclasses.replace(
            estimated, reason=reason, remedy=remedy))
    return dataclasses.replace(
        base, estimate=estimate,
        step=evidence.step(values.native, values.guest),
        machine=_machine(run, metric, machines, direction),
        control=_control(run, metric, direction))


def _with_study(figure: judgement.Judgement,
                bound: judgement.Bound) -> judgement.Judgement:
    """Remark whether the interval includes the ratio that a study measured."""
    found = figure.interval
    if found is None:
        return figure
    is_rate = figure.direction is outcome.Direction.UP
    if found.low <= bound.ratio <= found.high:
        where = 'lies in the interval'
    elif (found.high < bound.ratio) is is_rate:
        where = 'is better than the whole interval'
    else:
        where = 'is worse than the whole interval'
    remark = f'the ratio of the study, {bound.ratio:.3f}, {where}'
    return dataclasses.replace(figure, remarks=(*figure.remarks, remark))


def _replace_stragglers(values: sample_pairs.MetricValues,
                        direction: outcome.Direction,
                        ) -> tuple[list[float], list[float]]:
    return stragglers.replace(*unit_losses.find_times(values, direction))


def _list_usual(values: sample_pairs.MetricValues,
                direction: outcome.Direction) -> list[float]:
    """Return the losses with stragglers replaced."""
    native, guest = _replace_stragglers(values, direction)
    return [*map(operator.sub, guest, native)]


def _count_few_boots(run: record.Run,
                     values: sample_pairs.MetricValues) -> int:
    boots = set(values.boots)
    if run.of_launch or len(boots) >= sample_pairs.MIN_PAIRS:
        return 0
    # What shares the kernel of native has no boots of its own.
    of_native = {sample_pairs.boot(sample.environment)
                 for sample in run.samples
                 if sample.side is record.Side.NATIVE}
    return len(boots) if boots.isdisjoint(of_native) else 0


def _find_obstacle(run: record.Run, values: sample_pairs.MetricValues,
                   estimate: losses.Losses,
                   ) -> tuple[str | None, judgement.Remedy | None]:
    """Return why the samples decide nothing, and what would; None if not."""
    if estimate.correlation_obstacle:
        return estimate.correlation_obstacle, (
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


def make_without_estimate(run: record.Run, metric: str,
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

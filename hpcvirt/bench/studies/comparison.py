# SPDX-License-Identifier: Apache-2.0

"""Compare the figures of a site with those of a published study.

The newest run of each benchmark on each host counts. A figure that the study
averages is averaged in the same way: by the arithmetic mean of the slowdowns
(guest / native of a time, or native / guest of a rate). A free benchmark that
replaces that of the study keeps its own figures; its ratio is inverted if its
direction differs from that of the published figure.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.bench.analysis import link_rates
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.studies import preconditions
from hpcvirt.bench.studies import study

#: Factors from the unit of a program to the unit of a study.
FACTORS = {('Tflop/s', 'Gflop/s'): 1000.0}


@dataclasses.dataclass(frozen=True)
class Component:
    """A figure of a kernel or a message size, which an average consists of.

    :ivar size_bytes: the message size, None for a kernel
    :ivar interval: in the component's own direction, None if there is none
    """

    name: str
    unit: str
    direction: outcome.Direction
    native: float | None
    guest: float | None
    interval: judgement.Interval | None
    size_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class SiteResult:
    """The result of one host of the site.

    :ivar benchmark: with its variant, and ``cold`` if the guest was cold
    :ivar stand_in: the benchmark is not that of the study
    :ivar native: None if the result consists of components
    :ivar interval: in the direction of the published figure
    :ivar pairs: the fewest pairs of any component
    :ivar components: the averaged figures; empty for a single figure
    :ivar link_share: the highest bandwidth of the guest as a fraction of what
        its fastest link could transfer, None without
    :ivar reason: why there is no ratio, or a reservation about it
    :ivar unmet: settings that were not as the case requires, a clause each
    """

    host: str
    shape: str
    benchmark: str
    stand_in: bool
    started_at: str
    unit: str
    pairs: int = 0
    native: float | None = None
    guest: float | None = None
    interval: judgement.Interval | None = None
    components: tuple[Component, ...] = ()
    link_share: float | None = None
    reason: str = ''
    unmet: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class SiteComparison:
    """A published figure and the results of the site.

    :ivar row: None for a case without a published figure
    :ivar results: empty if the site has not run the case
    """

    case: study.Case
    row: study.PublishedComparison | None
    results: tuple[SiteResult, ...]


def compare(study_: study.Study,
            runs: Iterable[record.Run]) -> tuple[SiteComparison, ...]:
    """Compare the runs of a study with its figures.

    :param runs: any runs; those of other studies are ignored
    :returns: the rows in their order, then the cases that have none
    """
    cases = {case.id: case for case in study_.cases}
    by_case: dict[str, list[record.Run]] = {name: [] for name in cases}
    for run in _newest(run for run in runs if run.study == study_.id
                       and run.purpose is not record.Purpose.AA):
        # Cold and warm guests are not comparable.
        if run.case in cases and (
                cases[run.case].launch in ('', run.launch)):
            by_case[run.case].append(run)
    comparisons = [
        SiteComparison(cases[row.case], row, tuple(
            _compare_row(cases[row.case], row, by_case[row.case])))
        for row in study_.rows]
    with_rows = {row.case for row in study_.rows}
    comparisons += [
        SiteComparison(case, None, tuple(_without_row(by_case[case.id])))
        for case in study_.cases if case.id not in with_rows]
    return tuple(comparisons)


def _newest(runs: Iterable[record.Run]) -> Iterator[record.Run]:
    """Yield one run of each kind: the newest one, with a ratio if any has."""
    newest: dict[tuple[str | None, ...], record.Run] = {}
    for run in sorted(runs, key=lambda run: (
            any(judged.interval for judged in verdict.describe(run)),
            run.started_at)):
        newest[run.case, run.launch, run.host, run.shape, run.benchmark,
               run.variant] = run
    yield from sorted(newest.values(), key=lambda run: (
        run.host, run.shape, run.benchmark, run.variant, _cold(run)))


def _compare_row(case: study.Case, row: study.PublishedComparison,
                 runs: Sequence[record.Run]) -> Iterator[SiteResult]:
    fitting = [run for run in runs if _stands_for(case, row, run)]
    if row.benchmark not in catalogue.FAMILIES:
        for run in fitting:
            yield _single(row, run)
        return
    hosts: dict[tuple[str, str, bool], list[record.Run]] = {}
    for run in fitting:
        hosts.setdefault((run.host, run.shape, _cold(run)), []).append(run)
    for averaged in hosts.values():
        yield _average(case, row, averaged)


def _stands_for(case: study.Case, row: study.PublishedComparison,
                run: record.Run) -> bool:
    if row.benchmark in (run.benchmark,
                         catalogue.get(run.benchmark).parser):
        return True
    return any(benchmark.benchmark == row.benchmark
               and run.benchmark in benchmark.stand_ins
               for benchmark in case.benchmarks)


def _single(row: study.PublishedComparison, run: record.Run) -> SiteResult:
    """Return a figure of one run, or the mean over its message sizes."""
    judgements = [judged for judged in verdict.describe(run)
                  if metric_definition.split(judged.metric)[0] == row.metric]
    if not judgements:
        judgements = list(_primary(run))
    blank = _blank(run, run.benchmark != row.benchmark)
    if not judgements:
        return _without_figure(blank, run)
    if metric_definition.split(judgements[0].metric)[1] is None:
        return _figure(blank, judgements[0], row)
    judgements = [judged for judged in judgements if _in_range(
        row, metric_definition.split(judged.metric)[1] or 0)]
    components = tuple(_component(judged.metric, judged)
                       for judged in judgements)
    blank = dataclasses.replace(
        blank, link_share=_find_link_share(components, run))
    intervals = [_in_direction(each.interval, each.direction, row.direction)
                 for each in components if each.interval]
    if not intervals or len(intervals) < len(components):
        return dataclasses.replace(
            blank, components=components, pairs=min(
                (judged.pairs for judged in judgements), default=0),
            reason=next((judged.reason for judged in judgements
                         if judged.reason), None) or 'no such message size')
    # One run measures all sizes, so that their errors may be correlated.
    return dataclasses.replace(
        blank, components=components, unit=components[0].unit,
        pairs=min(judged.pairs for judged in judgements),
        interval=judgement.Interval(
            statistics.fmean(each.ratio for each in intervals),
            statistics.fmean(each.low for each in intervals),
            statistics.fmean(each.high for each in intervals)))


def _find_link_share(components: Iterable[Component],
                     run: record.Run) -> float | None:
    """Return which part of its link a guest reaches, in bandwidth."""
    most = max((each.guest for each in components
                if each.guest is not None and each.unit == 'MB/s'),
               default=None)
    rate = link_rates.find_fastest(run.samples)
    return None if most is None or rate is None else most / rate


def _average(case: study.Case, row: study.PublishedComparison,
             runs: Sequence[record.Run]) -> SiteResult:
    """Return the mean slowdown of several benchmarks on one host.

    The benchmarks are independent, so that their intervals are combined as
    those of a sum [Zou-Donner-2008].
    """
    components, intervals, pairs = [], [], []
    for run in runs:
        judged = next(_primary(run), None)
        if judged is None or judged.interval is None:
            continue
        components.append(_component(f'{run.benchmark} {run.variant}',
                                     judged))
        intervals.append(_in_direction(judged.interval, judged.direction,
                                       row.direction))
        pairs.append(judged.pairs)
    blank = dataclasses.replace(
        _blank(runs[0], False), benchmark=_label(row.benchmark, runs[0]),
        unmet=preconditions.find_unmet(*runs))
    if not components:
        return _without_figure(blank, runs[0])
    mean = statistics.fmean(each.ratio for each in intervals)
    below = math.hypot(*(each.ratio - each.low for each in intervals))
    above = math.hypot(*(each.high - each.ratio for each in intervals))
    count, wanted = len(components), len(case.benchmarks)
    return dataclasses.replace(
        blank, components=tuple(components), pairs=min(pairs),
        reason=(f'{count} of {wanted} benchmarks' if count < wanted
                else blank.reason),
        interval=judgement.Interval(mean, mean - below / count,
                                    mean + above / count))


def _without_row(runs: Iterable[record.Run]) -> Iterator[SiteResult]:
    """Yield the results of a case without published figures."""
    for run in runs:
        blank = _blank(run, False)
        figures: dict[str, list[judgement.Judgement]] = {}
        for judged in _primary(run):
            figures.setdefault(
                metric_definition.split(judged.metric)[0], []).append(judged)
        if not figures:
            yield _without_figure(blank, run)
        for judgements in figures.values():
            if metric_definition.split(judgements[0].metric)[1] is None:
                yield _figure(blank, judgements[0], None)
            else:
                yield dataclasses.replace(
                    blank, unit=judgements[0].unit,
                    pairs=min(judged.pairs for judged in judgements),
                    components=tuple(_component(judged.metric, judged)
                                     for judged in judgements))


def _primary(run: record.Run) -> Iterator[judgement.Judgement]:
    """Yield the judgements on the primary metrics of the benchmark."""
    primary = {figure.name for figure in catalogue.get(run.benchmark).metrics
               if figure.primary}
    for judged in verdict.describe(run):
        if metric_definition.split(judged.metric)[0] in primary:
            yield judged


def _in_range(row: study.PublishedComparison, size: int) -> bool:
    if row.below_bytes is not None and size >= row.below_bytes:
        return False
    return row.above_bytes is None or size > row.above_bytes


def _blank(run: record.Run, stand_in: bool) -> SiteResult:
    unpaired = run.purpose is record.Purpose.UNPAIRED
    return SiteResult(run.host, run.shape,
                      _label(f'{run.benchmark} {run.variant}', run),
                      stand_in, run.started_at, '',
                      reason='unpaired' if unpaired else '',
                      unmet=preconditions.find_unmet(run))


def _label(name: str, run: record.Run) -> str:
    return f'{name} cold' if _cold(run) else name


def _cold(run: record.Run) -> bool:
    return run.launch is record.Launch.COLD


def _without_figure(blank: SiteResult, run: record.Run) -> SiteResult:
    return dataclasses.replace(
        blank,
        reason=sample_pairs.explain_invalid(run) or 'has no such figure')


def _figure(blank: SiteResult, judged: judgement.Judgement,
            row: study.PublishedComparison | None) -> SiteResult:
    factor = FACTORS.get((judged.unit, row.unit)) if row else None
    interval = judged.interval
    if interval and row:
        interval = _in_direction(interval, judged.direction, row.direction)
    return dataclasses.replace(
        blank, unit=row.unit if row and factor else judged.unit,
        pairs=judged.pairs, native=_times(judged.native, factor),
        guest=_times(judged.guest, factor), interval=interval,
        reason=blank.reason if interval else judged.reason or '')


def _component(name: str, judged: judgement.Judgement) -> Component:
    return Component(name, judged.unit, judged.direction, judged.native,
                     judged.guest, judged.interval,
                     metric_definition.split(judged.metric)[1])


def _times(value: float | None, factor: float | None) -> float | None:
    return value if value is None or factor is None else value * factor


def _in_direction(interval: judgement.Interval, given: outcome.Direction,
                  wanted: outcome.Direction) -> judgement.Interval:
    """Return the interval of the inverse ratio if the directions differ."""
    if given is wanted:
        return interval
    return dataclasses.replace(
        interval, ratio=1 / interval.ratio, low=1 / interval.high,
        high=1 / interval.low)

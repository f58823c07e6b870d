# SPDX-License-Identifier: Apache-2.0

"""Results as text: a table and footnotes."""

import itertools
import textwrap
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import printable
from hpcvirt import text_table
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.report import next_step
from hpcvirt.bench.studies import preconditions

#: The default bounds of figures, by the label of the run and the metric.
DefaultBounds = dict[tuple[str, str], judgement.Bound]


def find_default_bounds(result: record.Result) -> DefaultBounds:
    """Find the default bounds of the figures, whatever bounds they have."""
    return {(run.label, metric): bound for run in result.runs
            for metric, bound in bounds.find_bounds(run).items()}


def find_published_ratio(bound: judgement.Bound | None) -> float | None:
    """Return the published ratio, None if the bound is no published one."""
    if bound is None or bound.kind is not judgement.BoundKind.MEASURED:
        return None
    return bound.ratio


def write_published(bound: judgement.Bound | None) -> str:
    """Write the published ratio, or what the bound is instead."""
    if bound is None or bound.kind is None:
        return '-'
    found = find_published_ratio(bound)
    return bound.kind.value if found is None else f'{found:.3f}'


def bound_source(bound: judgement.Bound) -> str:
    """Say where a bound is from, empty for one that the user gave."""
    if not bound.source:
        return ''
    parts = (f'{bound.ratio:.3f}', bound.kind, bound.source)
    text = ', '.join(part for part in parts if part)
    return f'{text}; {bound.conditions}' if bound.conditions else text


#: Which figures are better, in a word for the column of a table.
BETTER = {outcome.Direction.UP: 'higher', outcome.Direction.DOWN: 'lower'}

#: A footnote on more figures names only the first and the last.
MAX_NAMED = 4


def table(result: record.Result, width: int = 100) -> str:
    """Draw a judged result.

    :param width: most characters of a line; longer lines are wrapped
    """
    judgements = select_judgements(result)
    blocks = [draw_figures(judgements, find_default_bounds(result),
                           width=width)] if judgements else []
    blocks += [_unpaired(run, width) for run in result.runs
               if run.purpose is record.Purpose.UNPAIRED]
    notes = [_wrapped(line, width)
             for line in footnotes(result, judgements)]
    return '\n'.join((*blocks, *notes)) + '\n'


def select_judgements(result: record.Result) -> tuple[judgement.Judgement,
                                                      ...]:
    """Return the judgements, then the other figures that have pairs.

    What was measured without native is not compared, and not judged.
    """
    alone = {run.label for run in result.runs
             if run.purpose is record.Purpose.UNPAIRED
             and not any(sample.side is record.Side.NATIVE
                         for sample in run.samples)}
    judged = [each for each in result.verdict.judgements
              if each.label not in alone] if result.verdict else []
    names = {(each.label, each.metric) for each in judged}
    rest = [each for run in select_runs(result)
            if run.purpose is not record.Purpose.UNPAIRED
            for each in verdict.describe(run)
            if each.interval and (each.label, each.metric) not in names]
    return (*judged, *rest)


def select_runs(result: record.Result) -> list[record.Run]:
    """Leave out runs that only show how noisy the machine of others is."""
    runs = [run for run in result.runs
            if run.purpose is not record.Purpose.AA]
    return runs or list(result.runs)


def footnotes(result: record.Result,
              judgements: tuple[judgement.Judgement, ...]) -> list[str]:
    """Explain the table: reasons, sides, sources of bounds, the verdict."""
    pairs = max((each.pairs for each in judgements), default=0)
    lines = []
    if pairs:
        lines.append(f'{pairs} pairs; guest / native with its interval; at '
                     'most 5 % false PASS and 5 % false FAIL')
    lines += [f'{figures}: {text}' for figures, text in notes(judgements)]
    for step, figures in next_step.find_steps(result).items():
        names = [f'{each.label} {each.metric}' for each in figures]
        lines.append(f'Next, for {abridge(names)}: {step}')
    lines.extend(sides(result))
    if result.verdict is not None:
        lines += [f'differs between the sides: {clause}'
                  for clause in result.verdict.differences]
    lines += [f'{names}: bound {text}' for names, text in sources(
        (f'{run.benchmark} {metric}', bound)
        for run in result.runs for metric, bound in run.bounds.items())]
    if result.verdict is not None:
        reason = f': {result.verdict.reason}' if result.verdict.reason else ''
        if any(run.purpose is not record.Purpose.UNPAIRED
               for run in result.runs):
            lines.append(f'{result.verdict.result}{reason}')
            if result.verdict.scope:
                lines.append(f'the verdict: {result.verdict.scope}')
        else:
            lines.append('unpaired: no verdict without native samples')
    return lines


def notes(judgements: Iterable[judgement.Judgement],
          ) -> list[tuple[str, str]]:
    """Return reasons and remarks, each after the figures it is about."""
    metrics: dict[tuple[str, str], list[str]] = {}
    for each in judgements:
        machine = None
        if each.machine and (
                each.remedy is judgement.Remedy.QUIETER_MACHINE):
            machine = f'native against native {interval(each.machine)}'
        mean = each.mean and f'the mean time is {interval(each.mean)}'
        for text in (each.reason, mean, machine, *each.remarks):
            if text and each.result is not None:
                metrics.setdefault((each.label, text), []).append(each.metric)
    return [(f'{label} {abridge(names)}', text)
            for (label, text), names in metrics.items()]


def sources(bounds: Iterable[tuple[str, judgement.Bound]],
            ) -> list[tuple[str, str]]:
    """Return the sources of bounds, each with all figures that it applies to.

    :param bounds: names of figures with their bounds
    :returns: names of figures, each with the bound, its kind, its source and
        its conditions
    """
    figures: dict[str, list[str]] = {}
    for name, bound in bounds:
        text = bound_source(bound)
        if text:
            figures.setdefault(text, []).append(name)
    return [(abridge(list(dict.fromkeys(names))), text)
            for text, names in figures.items()]


def abridge(figures: Sequence[str]) -> str:
    """List a few figures; of many, name the first and the last."""
    if len(figures) <= MAX_NAMED:
        return ', '.join(figures)
    return f'{figures[0]} to {figures[-1]} ({len(figures)} figures)'


def sides(result: record.Result) -> list[str]:
    """Name the runs whose sides are not a warm guest and its host.

    Also those that were not set as their study requires.
    """
    alike = [f'{run.label}: native against native, which shows how much the '
             'machine itself varies' for run in result.runs
             if run.purpose is record.Purpose.AA]
    cold = [f'{run.label}: the guest was relaunched before each of its '
            'samples' for run in result.runs
            if run.launch is record.Launch.COLD]
    return [*alike, *cold, *_controls(result),
            *preconditions.describe_unmet(result)]


def _controls(result: record.Result) -> list[str]:
    """Say how much native differed from itself within the runs.

    Of each run with controls the figure that differed most is named.
    """
    worst: dict[str, judgement.Judgement] = {}
    lengths = {run.label: run.planned_controls for run in result.runs}
    for each in result.verdict.judgements if result.verdict else ():
        before = worst.setdefault(each.label, each)
        if _from_itself(each) > _from_itself(before):
            worst[each.label] = each
    return [f'{label}: native against native in the same run, '
            f'{lengths[label]} pairs: {interval(each.machine)} '
            f'({each.metric})' for label, each in worst.items()
            if each.machine is not None and lengths.get(label)]


def _from_itself(judged: judgement.Judgement) -> float:
    """Return how far the interval of native against native extends."""
    if judged.machine is None:
        return 0.0
    return max(judged.machine.high, 1 / judged.machine.low)


def interval(ratio_: judgement.Interval | None) -> str:
    """Write a ratio with its interval: ``0.951 [0.946, 0.957]``."""
    if ratio_ is None:
        return '-'
    low, high = _short(ratio_.low), _short(ratio_.high)
    return f'{_short(ratio_.ratio)} [{low}, {high}]'


def _short(value: float) -> str:
    return f'{value:.3f}' if value < 10 else f'{value:.4g}'


def bound(judged: judgement.Judgement) -> str:
    """Write the bound of a judgement: ``>= 0.962``."""
    if judged.limit is None:
        return '-'
    sign = '>=' if judged.direction is outcome.Direction.UP else '<='
    return f'{sign} {judged.limit:.3f}'


def figure(value: float | None) -> str:
    """Write a value with four digits, large ones without an exponent."""
    if value is None:
        return '-'
    return f'{value:.0f}' if 1e4 <= value < 1e9 else f'{value:.4g}'


def draw_figures(judgements: Iterable[judgement.Judgement],
                 known: DefaultBounds | None = None, other: str = 'Native',
                 width: int | None = 100) -> str:
    """Draw a table of judgements, those of a run below its label.

    :param known: the default bounds; without them no figure is published
    :param other: what the guest is compared with
    """
    ratios = f'Guest / {other.lower()}'
    headings = ['Figure', 'Unit', other, 'Guest', ratios, 'Bound', 'Verdict']
    rows: list[Sequence[str]] = []
    for label, group in itertools.groupby(
            sorted(judgements, key=lambda judged: judged.label),
            key=lambda judged: judged.label):
        rows.append((label,))
        for judged in group:
            row = [f'  {judged.metric}', judged.unit, figure(judged.native),
                   figure(judged.guest), interval(judged.interval),
                   bound(judged),
                   '-' if judged.result is None else judged.result.value]
            if known is not None:
                row.insert(-1, write_published(
                    known.get((label, judged.metric))))
            rows.append(row)
    if known is not None:
        headings.insert(-1, 'Published')
    return text_table.draw(headings, rows, {
        other, 'Guest', ratios, 'Bound', 'Published'}, width)


def list_samples(run: record.Run) -> dict[str, list[outcome.Metric | None]]:
    """List each figure of a run in every sample; None if it lacks there."""
    outcomes = [sample.outcome for sample in run.samples if not sample.warm_up]
    return {name: [each.metrics.get(name) for each in outcomes]
            for name in dict.fromkeys(
                name for each in outcomes for name in each.metrics)}


def _unpaired(run: record.Run, width: int) -> str:
    """Draw the samples of a run that has one side."""
    rows = []
    for name, found in list_samples(run).items():
        unit = next(metric.unit for metric in found if metric is not None)
        rows.append((name, unit, ' '.join(
            figure(metric.value if metric else None) for metric in found)))
    invalid = [_wrapped(f'INVALID sample {sample.pair + 1}: '
                        f'{sample.outcome.reason}', width)
               for sample in run.samples
               if not sample.warm_up and not sample.outcome.valid]
    return '\n'.join((
        printable.escape(f'{run.label}, {run.host}, unpaired'),
        text_table.draw(('Figure', 'Unit', 'Samples'), rows, width=width),
        *invalid))


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(printable.escape(text), width,
                         subsequent_indent='  ', break_on_hyphens=False)

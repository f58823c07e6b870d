# SPDX-License-Identifier: Apache-2.0

"""Write results as text: a table and footnotes."""

import itertools
import textwrap
from collections.abc import Iterable
from collections.abc import Iterator
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

#: (label of the run, metric) to default bound.
DefaultBounds = dict[tuple[str, str], judgement.Bound]


def find_default_bounds(result: record.Result) -> DefaultBounds:
    """Return the default bounds of the figures, even if others were set."""
    known: DefaultBounds = {}
    for run in result.runs:
        for metric, bound in bounds.find_bounds(run).items():
            known[run.label, metric] = bound
    return known


def find_published_ratio(bound: judgement.Bound | None) -> float | None:
    """Return the ratio of a bound, None if no study published it."""
    if bound is None or bound.kind is not judgement.BoundKind.MEASURED:
        return None
    return bound.ratio


def write_published(bound: judgement.Bound | None) -> str:
    """Format the published ratio, or the kind of a bound without one."""
    if bound is None or bound.kind is None:
        return '-'
    found = find_published_ratio(bound)
    return bound.kind.value if found is None else f'{found:.3f}'


def bound_source(bound: judgement.Bound) -> str:
    """Describe the source of a bound, empty for one that the user set."""
    if not bound.source:
        return ''
    ratio = f'{bound.ratio:.3f}'
    if bound.margin:
        ratio += f' within {bound.margin:.0%}'
    parts = (ratio, bound.kind, bound.source)
    text = ', '.join(part for part in parts if part)
    return f'{text}; {bound.conditions}' if bound.conditions else text


#: The better direction, for the column of a table.
BETTER = {outcome.Direction.UP: 'higher', outcome.Direction.DOWN: 'lower'}

#: Of more figures, a footnote names only the first and the last.
MAX_NAMED = 4


def table(result: record.Result, width: int = 100) -> str:
    """Draw a judged result as a table with footnotes.

    :param width: columns of the terminal; longer lines are wrapped
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
    """Return the judgements, then the figures with pairs but without a bound.

    Runs without native samples are left out.
    """
    alone = {run.label for run in result.runs
             if run.purpose is record.Purpose.UNPAIRED
             and not any(sample.side is record.Side.NATIVE
                         for sample in run.samples)}
    judged = [each for each in result.verdict.judgements
              if each.label not in alone] if result.verdict else []
    names = {(each.label, each.metric) for each in judged}
    rest: list[judgement.Judgement] = []
    for run in select_runs(result):
        if run.purpose is not record.Purpose.UNPAIRED:
            rest += [
                each for each in verdict.describe(run)
                if each.interval and (each.label, each.metric) not in names]
    return (*judged, *rest)


def select_runs(result: record.Result) -> list[record.Run]:
    """Return the runs without A/A runs, unless all are A/A runs."""
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
    lines += [f'{names}: bound {text}'
              for names, text in sources(_name_bounds(result.runs))]
    if result.verdict is not None:
        reason = f': {result.verdict.reason}' if result.verdict.reason else ''
        if any(run.purpose is not record.Purpose.UNPAIRED
               for run in result.runs):
            lines.append(f'{verdict.name_result(result.verdict)}{reason}')
            if result.verdict.scope:
                lines.append(f'the verdict: {result.verdict.scope}')
        else:
            lines.append('unpaired: no verdict without native samples')
    return lines


def _name_bounds(runs: Iterable[record.Run],
                 ) -> Iterator[tuple[str, judgement.Bound]]:
    """Yield each bound of the runs with the name of its figure."""
    for run in runs:
        for metric, bound in run.bounds.items():
            yield f'{run.benchmark} {metric}', bound


def notes(judgements: Iterable[judgement.Judgement],
          ) -> list[tuple[str, str]]:
    """Return (names of figures, reason or remark) pairs."""
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
    """Return (names of figures, source of their bound) pairs.

    :param bounds: names of figures with their bounds
    """
    figures: dict[str, list[str]] = {}
    for name, bound in bounds:
        text = bound_source(bound)
        if text:
            figures.setdefault(text, []).append(name)
    return [(abridge(list(dict.fromkeys(names))), text)
            for text, names in figures.items()]


def abridge(figures: Sequence[str]) -> str:
    """Join the names of a few figures; of many, the first and the last."""
    if len(figures) <= MAX_NAMED:
        return ', '.join(figures)
    return f'{figures[0]} to {figures[-1]} ({len(figures)} figures)'


def sides(result: record.Result) -> list[str]:
    """Describe the runs that do not compare a warm guest with its host.

    The lines include the settings that were not as a study requires.
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
    """Describe how much native differed from itself within the runs.

    There is a line for each run with controls, on its worst figure.
    """
    worst: dict[str, judgement.Judgement] = {}
    lengths = {run.label: run.planned_controls for run in result.runs}
    for each in result.verdict.judgements if result.verdict else ():
        before = worst.setdefault(each.label, each)
        if _self_difference(each) > _self_difference(before):
            worst[each.label] = each
    return [f'{label}: native against native in the same run, '
            f'{lengths[label]} pairs: {interval(each.machine)} '
            f'({each.metric})' for label, each in worst.items()
            if each.machine is not None and lengths.get(label)]


def _self_difference(judged: judgement.Judgement) -> float:
    """Return how far the interval of native against native extends."""
    if judged.machine is None:
        return 0.0
    return max(judged.machine.high, 1 / judged.machine.low)


def interval(ratio_: judgement.Interval | None) -> str:
    """Format a ratio with its interval: ``0.951 [0.946, 0.957]``."""
    if ratio_ is None:
        return '-'
    low, high = _short(ratio_.low), _short(ratio_.high)
    return f'{_short(ratio_.ratio)} [{low}, {high}]'


def _short(value: float) -> str:
    return f'{value:.3f}' if value < 10 else f'{value:.4g}'


def bound(judged: judgement.Judgement) -> str:
    """Format the bound of a judgement: ``>= 0.962``."""
    if judged.limit is None:
        return '-'
    sign = '>=' if judged.direction is outcome.Direction.UP else '<='
    return f'{sign} {judged.limit:.3f}'


def figure(value: float | None) -> str:
    """Format a value with four digits, large values without an exponent."""
    if value is None:
        return '-'
    return f'{value:.0f}' if 1e4 <= value < 1e9 else f'{value:.4g}'


def draw_figures(judgements: Iterable[judgement.Judgement],
                 known: DefaultBounds | None = None, other: str = 'Native',
                 width: int | None = 100) -> str:
    """Draw a table of judgements, grouped by the label of their run.

    :param known: the default bounds; None omits the column ``Published``
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
    """Return each metric of a run in all samples; None where it is missing."""
    outcomes = [sample.outcome for sample in run.samples if not sample.warm_up]
    names = dict.fromkeys(itertools.chain.from_iterable(
        each.metrics for each in outcomes))
    return {name: [each.metrics.get(name) for each in outcomes]
            for name in names}


def _unpaired(run: record.Run, width: int) -> str:
    """Draw the samples of a run with one side."""
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

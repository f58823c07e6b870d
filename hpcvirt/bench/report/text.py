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

"""A result as a table for people at a terminal."""

import textwrap
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import text_table
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.studies import preconditions

#: The word of a table for the better direction of a figure.
BETTER = {outcome.Direction.UP: 'higher', outcome.Direction.DOWN: 'lower'}

#: More figures of which the same is said are not named one by one.
MOST_NAMED = 4


def table(result: record.Result, width: int = 100) -> str:
    """Draw a judged result.

    :param width: columns; a longer line is folded
    """
    judgements = shown(result)
    blocks = [_table(judgements, width)] if judgements else []
    blocks += [_alone(run, width) for run in result.runs
               if run.purpose is record.Purpose.UNPAIRED]
    notes = [_wrapped(line, width)
             for line in footnotes(result, judgements)]
    return '\n'.join((*blocks, *notes)) + '\n'


def shown(result: record.Result) -> tuple[judgement.Judgement, ...]:
    """List what is judged, then the other figures that were paired."""
    judged = result.verdict.judgements if result.verdict else ()
    there = {(one.label, one.metric) for one in judged}
    rest = [one for run in result.runs
            if run.purpose is not record.Purpose.UNPAIRED
            for one in verdict.describe(run)
            if one.interval and (one.label, one.metric) not in there]
    return (*judged, *rest)


def footnotes(result: record.Result,
              judgements: tuple[judgement.Judgement, ...]) -> list[str]:
    """What the table says, why, and where the bounds come from."""
    said: dict[tuple[str, str], list[str]] = {}
    for one in judgements:
        for text in (one.reason, *one.remarks):
            if text and one.reason != 'no bound':
                said.setdefault((one.label, text), []).append(one.metric)
    pairs = {one.pairs for one in judgements}
    lines = []
    if any(pairs):
        lines.append(f'{max(pairs)} pairs; guest / native with its 90 % '
                     'interval, PASS and FAIL each at 95 %')
    lines += [f'{label} {named(metrics)}: {text}'
             for (label, text), metrics in said.items()]
    lines.extend(arms(result))
    lines += [f'{names}: bound {text}' for names, text in sources(
        (f'{run.benchmark} {metric}', bound)
        for run in result.runs for metric, bound in run.bounds.items())]
    if result.verdict is not None:
        reason = f': {result.verdict.reason}' if result.verdict.reason else ''
        if any(run.purpose is not record.Purpose.UNPAIRED
               for run in result.runs):
            lines.append(f'{result.verdict.word}{reason}')
        else:
            lines.append('unpaired: without native samples nothing is judged')
    return lines


def sources(bounds: Iterable[tuple[str, judgement.Bound]],
            ) -> list[tuple[str, str]]:
    """Where bounds come from, those of one origin together.

    :param bounds: a figure and its bound
    :returns: names of figures, and the bound with its source
    """
    figures: dict[str, list[str]] = {}
    for name, bound in bounds:
        if bound.source:
            text = f'{bound.ratio:.3f}, {bound.source}'
            figures.setdefault(text, []).append(name)
    return [(named(list(dict.fromkeys(names))), text)
            for text, names in figures.items()]


def named(figures: Sequence[str]) -> str:
    """A few figures by name, many by the first and the last."""
    if len(figures) <= MOST_NAMED:
        return ', '.join(figures)
    return f'{figures[0]} to {figures[-1]} ({len(figures)} figures)'


def arms(result: record.Result) -> list[str]:
    """What the arms are where they are not a warm guest and its host.

    Or not what the study wants them to be.
    """
    alike = [f'{run.label}: native against native, what the machine can tell '
             'apart' for run in result.runs
             if run.purpose is record.Purpose.AA]
    cold = [f'{run.label}: the guest was relaunched before each of its '
            'samples' for run in result.runs
            if run.launch is record.Launch.COLD]
    return [*alike, *cold, *preconditions.of_result(result)]


def ratio(one: judgement.Judgement) -> str:
    """The ratio of a judgement with its interval."""
    return interval(one.interval)


def interval(one: judgement.Interval | None) -> str:
    """A ratio with its interval: ``0.951 [0.946, 0.957]``."""
    if one is None:
        return '-'
    return f'{_short(one.ratio)} [{_short(one.low)}, {_short(one.high)}]'


def _short(value: float) -> str:
    return f'{value:.3f}' if value < 10 else f'{value:.4g}'


def bound(one: judgement.Judgement) -> str:
    """The bound that decided: ``>= 0.962``."""
    if one.limit is None:
        return '-'
    sign = '>=' if one.direction == 'up' else '<='
    return f'{sign} {one.limit:.3f}'


def figure(value: float | None) -> str:
    """A value with four digits."""
    return '-' if value is None else f'{value:.4g}'


def _table(judgements: tuple[judgement.Judgement, ...], width: int) -> str:
    rows: list[Sequence[str]] = []
    label = None
    for one in sorted(judgements, key=lambda one: one.label):
        if one.label != label:
            label = one.label
            rows.append((label,))
        rows.append((
            f' {one.metric}', one.unit, figure(one.native),
            figure(one.guest), ratio(one), bound(one),
            '-' if one.reason == 'no bound' else one.word.value))
    return text_table.draw(
        ('Figure', 'Unit', 'Native', 'Guest', 'Guest / native', 'Bound',
         'Verdict'), rows,
        {'Native', 'Guest', 'Guest / native', 'Bound'}, width)


def _alone(run: record.Run, width: int) -> str:
    """The samples of a run that has one arm."""
    samples = [sample for sample in run.samples if not sample.warm_up]
    names = dict.fromkeys(name for sample in samples
                          for name in sample.outcome.metrics)
    rows = []
    for name in names:
        found = [sample.outcome.metrics.get(name) for sample in samples]
        unit = next(metric.unit for metric in found if metric is not None)
        rows.append((name, unit, ' '.join(
            figure(metric.value if metric else None) for metric in found)))
    invalid = [_wrapped(f'INVALID sample {sample.pair + 1}: '
                        f'{sample.outcome.reason}', width)
               for sample in samples if not sample.outcome.valid]
    return '\n'.join((
        f'{run.label}, {run.host}, unpaired',
        text_table.draw(('Figure', 'Unit', 'Samples'), rows, width=width),
        *invalid))


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, subsequent_indent='  ',
                         break_on_hyphens=False)

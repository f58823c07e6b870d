# SPDX-License-Identifier: Apache-2.0

"""Report the findings of an experiment as text, JSON, a page and a profile."""

import dataclasses
import math
import textwrap
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import yaml

from hpcvirt import printable
from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.audit import costs
from hpcvirt.bench.model import judgement
from hpcvirt.bench.report import charts
from hpcvirt.flavors import planned as plans
from hpcvirt.page import templates
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import model

#: Explains the columns of the table of values.
LEGEND = """\
Effect: how much better the {} is than today; each end has 95 % confidence.
Time: the same for one guest. Guests, Cores, GiB: what a host gives to guests.
"""
TITLE = 'What pays on these hosts'

#: Key of a profile or setting of the host -> what was published about it.
_PUBLISHED = {
    'page_size': f'{costs.SMALL_PAGES}; 1 GiB pages were slightly better than '
                 f'2 MiB {plans.HS06_STUDY}',
    'guests_per_host': 'HS06 rate lost by guests of a 32-core host: '
    + ', '.join(f'{loss.low_percent:g}' + (
        f' to {loss.high_percent:g}' if loss.high_percent > loss.low_percent
        else '') + f' % with {loss.configuration}'
        for _, loss in plans.BY_SHARE) + f' {plans.HS06_STUDY}',
    **dict.fromkeys(('shared_cores_per_cell', 'housekeeping_cores_per_cell'),
                    str(costs.BY_RULE['isolation'])),
    **dict.fromkeys(('ept', 'npt', 'nested_paging'),
                    str(costs.BY_RULE['nested-paging'])),
    'ksm': str(costs.BY_RULE['ksm']),
}


@dataclasses.dataclass(frozen=True)
class TuneReport:
    """An experiment with its findings so far, from at least one trial."""

    space: model.Space
    findings: model.Findings
    trials: Sequence[model.Trial]

    @property
    def dates(self) -> str:
        """The days of the first and the last trial."""
        return (f'{self.trials[0].ended_at[:10]} to '
                f'{self.trials[-1].ended_at[:10]}')

    def document(self) -> dict[str, Any]:
        """Return the report as JSON."""
        experiment = self.space.experiment
        return {
            'experiment': experiment.name, 'host_class': experiment.host_class,
            'objective': experiment.objective.value,
            'matters_percent': experiment.matters_percent,
            'trials': len(self.trials), 'dates': self.dates,
            'recommended_values': experiment.format_levels(
                self.findings.recommended),
            **serialization.dump(self.findings), 'values': [{
                **serialization.dump(row),
                'published': self.find_published(row)}
                for row in self.findings.values]}

    def text(self, width: int | None) -> str:
        """Return the report as text; None is no limit of its width."""
        rows, programs = self.findings.values, self.space.experiment.programs
        blocks = [''.join(f'{line}\n' for line in self.summary())]
        if rows:
            cells = [self.cells(row) for row in rows]
            blocks.append(text_table.draw(
                tuple(cells[0]), [tuple(each.values()) for each in cells],
                {'Time', 'Trials', 'Guests', 'Cores', 'GiB'}, width)
                + LEGEND.format(self.space.experiment.objective))
        if rows and len(programs) > 1:
            blocks.append(text_table.draw(('Value', *programs), [
                (_name(row), *map(percents, row.programs.values()))
                for row in rows], (), width))
        blocks.append(''.join(f'{note}\n' for note in self.notes()))
        return '\n'.join(filter(None, blocks))

    def cells(self, row: model.ValueFinding) -> dict[str, str]:
        """Return the cells of a value in the table, by their headings."""
        return {
            'Value': _name(row), 'Effect': percents(row.effect),
            'Time': percent(row.time.gain),
            'Decision': 'refused' if row.guard else row.decision.value,
            'Trials': str(row.trials),
            'Stragglers': f'{row.slow} of {row.runs}',
            'Guests': str(row.cost.guests), 'Cores': str(row.cost.cores),
            'GiB': f'{row.cost.memory_mib / 1024:.0f}'}

    def summary(self) -> Iterator[str]:
        """Yield what was found, in lines."""
        found, experiment = self.findings, self.space.experiment
        yield (f'Experiment {experiment.name}, class {experiment.host_class}: '
               f'{words.count_noun(len(self.trials), "trial")}, {self.dates}')
        yield f'Recommended: {experiment.format_levels(found.recommended)}'
        yield f'Reason: {found.reason}'
        gain = found.confirmation
        if gain is not None and gain.effect is not None:
            yield (('Gain of ' if gain.is_gain else 'No gain was shown of ')
                   + f'{experiment.format_levels(gain.levels)} against today: '
                   f'{percents(gain.effect)}, '
                   f'{words.count_noun(gain.pairs, "pair")} of fresh boots')
        if found.native is not None:
            yield f'Today against native: {percents(found.native)}'

    def notes(self) -> Iterator[str]:
        """Yield what the tables do not say, in lines."""
        rows = self.findings.values
        for row in rows:
            if row.guard:
                yield f'{_name(row)} is refused: {row.guard}'
        undecided = [_name(row) for row in rows
                     if row.decision is model.Decision.OPEN]
        if undecided:
            yield f'Not decided: {", ".join(undecided)}'
        for pair in self.findings.interactions:
            yield (f'{" and ".join(pair.values)} together: '
                   f'{percents(pair.effect)} beyond the sum of both' + (
                       ', or the interaction of '
                       f'{" or ".join(pair.confounded)}, which the design '
                       'cannot tell apart' if pair.confounded else ''))
        for row in rows:
            for sentence in self.find_published(row):
                yield f'Published about {_name(row)}: {sentence}'

    def find_published(self, row: model.ValueFinding) -> list[str]:
        """Find what was published about a value, in sentences."""
        change = self.space.experiment.choices[row.choice][row.value]
        keys = [*change.profile,
                *(['guests_per_host'] if change.guests_per_host else []),
                *(key.lower().replace('-', '_') for key in change.host)]
        return [*dict.fromkeys(
            _PUBLISHED[key] for key in keys if key in _PUBLISHED)]


def percent(gain: float) -> str:
    """Format a logarithm of a ratio: ``+1.2 %``."""
    return f'{100 * math.expm1(min(gain, 100.0)):+z.1f} %'


def percents(effect: model.Effect) -> str:
    """Format an effect with its interval: ``+1.2 % (+0.4 to +2.0 %)``."""
    low = percent(effect.low).removesuffix(' %')
    return f'{percent(effect.gain)} ({low} to {percent(effect.high)})'


def _name(row: model.ValueFinding) -> str:
    return f'{row.choice}={row.value}'


def page(shown: TuneReport, minute: str) -> str:
    """Return the report as an HTML page that is written at this minute."""
    # The drawings cover at least a gain and a loss of 2 %.
    reaches = [0.02]
    for row in shown.findings.values:
        for effect in (row.effect, row.time, *row.programs.values()):
            reaches += [abs(effect.low), abs(effect.high)]
    span = math.exp(1.1 * max(reaches))

    def draw(effect: model.Effect) -> str:
        return charts.interval(judgement.Interval(*map(math.exp, effect)),
                               span, None, None)
    html: str = templates.environment('hpcvirt.tune').get_template(
        'tune.html.j2').render(
            title=TITLE, marks=['PASS', 'FAIL', 'INCONCLUSIVE'],
            minute=minute, shown=shown, summary=[*shown.summary()],
            notes=[*shown.notes()], draw=draw, percents=percents,
            span=f'{1 / span - 1:+.1%} to {span - 1:+.1%}')
    return html + '\n'


def profile(shown: TuneReport) -> str:
    """Write the recommended profile as YAML for ``flavor plan --profile``.

    The comments say what was found. What a profile cannot have is a comment
    only.
    """
    experiment, levels = shown.space.experiment, shown.findings.recommended
    comments = [*shown.summary()]
    for choice, level in zip(shown.space.choices, levels, strict=True):
        value = choice.values[level]
        change = experiment.choices[choice.name].get(
            value, experiments.ValueChange())
        comments += [
            f'{choice.name}: {value}',
            *(f'  {row.value} against today: {percents(row.effect)}, '
              f'{row.decision}, {row.trials} trials, {shown.dates}, '
              f'{experiment.host_class}'
              + (f'; refused: {row.guard}' if row.guard else '')
              for row in shown.findings.values if row.choice == choice.name
              and value in (row.value, experiments.TODAY)),
            *([f'  Use the flavor of which a host takes {number} instances.']
              if (number := change.guests_per_host) else []),
            *(f'  Set on the host: {key}={item}'
              for key, item in change.host.items())]
    lines: list[str] = []
    for text in comments:
        lines += textwrap.wrap(
            printable.escape(text), 79, initial_indent='# ',
            subsequent_indent='#     ', break_long_words=False,
            break_on_hyphens=False)
    content = dict(shown.space.configurations[levels].content)
    return '\n'.join([*lines, yaml.safe_dump(content, sort_keys=False)
                      if content else ''])

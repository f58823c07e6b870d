# SPDX-License-Identifier: Apache-2.0

"""Report the findings of an experiment as text and as a JSON document."""

import dataclasses
import math
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import findings as finding_types
from hpcvirt.tune import published
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

#: Explains the columns of the table of values.
LEGEND = """\
Effect: how much better the {} is than with today's value; ends at 95 %.
Time: the same for one guest. Guests, Cores, GiB: what a host gives to guests.
"""


@dataclasses.dataclass(frozen=True)
class TuneReport:
    """An experiment with its findings so far."""

    experiment: experiments.Experiment
    space: spaces.Space
    findings: finding_types.Findings
    trials: Sequence[trial.Trial] = ()

    @property
    def dates(self) -> tuple[str, str]:
        """The days of the first and the last trial; empty without trials."""
        return (self.trials[0].began_at[:10],
                self.trials[-1].ended_at[:10]) if self.trials else ('', '')

    def find_published(self, choice: str, value: str) -> tuple[str, ...]:
        """Find what was published about a value."""
        return published.find(self.experiment.choices[choice][value])

    def find_cost(self, choice: str, value: str) -> spaces.HostCost:
        """Return what a host gives to guests with a value."""
        own = next(each for each in self.space.choices if each.name == choice)
        return own.costs[own.values.index(value)]

    def document(self) -> dict[str, Any]:
        """Return the report as JSON."""
        found = serialization.dump(self.findings)
        first, last = self.dates
        return {
            'experiment': self.experiment.name,
            'class': self.experiment.host_class,
            'objective': self.experiment.objective.value,
            'matters_percent': self.experiment.matters_percent,
            'trials': len(self.trials), 'first': first, 'last': last,
            'recommended_values': self.experiment.format_levels(
                self.findings.recommended),
            **found, 'values': [
                {**row, 'cost': serialization.dump(
                    self.find_cost(row['choice'], row['value'])),
                 'published': list(self.find_published(row['choice'],
                                                       row['value']))}
                for row in found['values']]}

    def text(self, width: int | None) -> str:
        """Return the report as text.

        :param width: columns of the terminal, None for no limit
        """
        blocks = [''.join(f'{line}\n' for line in self.summary())]
        if self.findings.values:
            blocks.append(text_table.draw(
                ('Value', 'Effect', 'Time', 'Decision', 'Trials',
                 'Stragglers', 'Guests', 'Cores', 'GiB'),
                map(self.row, self.findings.values),
                {'Time', 'Trials', 'Guests', 'Cores', 'GiB'}, width)
                + LEGEND.format(self.experiment.objective))
        if len(self.space.weights) > 1:
            blocks.append(text_table.draw(
                ('Value', *self.space.weights), (
                    (_name(row), *(percents(row.programs[name])
                                   if name in row.programs else '-'
                                   for name in self.space.weights))
                    for row in self.findings.values), (), width))
        notes = [*self.notes()]
        if notes:
            blocks.append(''.join(f'{note}\n' for note in notes))
        return '\n'.join(blocks)

    def row(self, row: finding_types.ValueFinding) -> tuple[str, ...]:
        """Return the cells of a value."""
        cost = self.find_cost(row.choice, row.value)
        return (_name(row), percents(row.effect), percent(row.time.gain),
                'refused' if row.guard else row.decision.value,
                str(row.trials), f'{row.slow[0]} of {row.runs[0]}',
                str(cost.guests), str(cost.cores),
                f'{cost.memory_mib / 1024:.0f}')

    def summary(self) -> Iterator[str]:
        """Yield what was found, in lines."""
        first, last = self.dates
        found, format_levels = self.findings, self.experiment.format_levels
        yield (f'Experiment {self.experiment.name}, class '
               f'{self.experiment.host_class}: '
               f'{words.count_noun(len(self.trials), "trial")}'
               + (f', {first} to {last}' if first else ''))
        yield f'Recommended: {format_levels(found.recommended)}'
        yield f'Reason: {found.reason}'
        gain = found.confirmation
        if gain is not None and gain.effect is not None:
            yield (('Gain of ' if gain.is_gain else 'No gain was shown of ')
                   + f'{format_levels(gain.levels)} against today: '
                   f'{percents(gain.effect)}, '
                   f'{words.count_noun(gain.pairs, "pair")} of fresh boots')
        if found.native is not None:
            yield f'Today against native: {percents(found.native)}'

    def notes(self) -> Iterator[str]:
        """Yield what the tables do not say, in lines."""
        found = self.findings
        for row in found.values:
            if row.guard:
                yield f'{_name(row)} is refused: {row.guard}'
        if found.confirmation is not None and found.confirmation.guard:
            yield (self.experiment.format_levels(found.confirmation.levels)
                   + f' is refused: {found.confirmation.guard}')
        undecided = [_name(row) for row in found.values
                     if row.decision is finding_types.Decision.OPEN]
        if undecided:
            yield f'Not decided: {", ".join(undecided)}'
        for pair in found.interactions:
            yield (f'{" and ".join(pair.values)} together: '
                   f'{percents(pair.effect)} beyond the sum of both' + (
                       ', or the interaction of '
                       f'{" or ".join(pair.confounded)}, which the design '
                       'cannot tell apart' if pair.confounded else ''))
        for row in found.values:
            for sentence in self.find_published(row.choice, row.value):
                yield f'Published about {_name(row)}: {sentence}'


def percent(gain: float) -> str:
    """Format a logarithm of a ratio: ``+1.2 %``."""
    shown = f'{100 * math.expm1(min(gain, 100.0)):+.1f}'
    return f'{"0.0" if shown in ("-0.0", "+0.0") else shown} %'


def percents(effect: finding_types.Effect) -> str:
    """Format an effect with its interval: ``+1.2 % (+0.4 to +2.0 %)``."""
    if not (math.isfinite(effect.low) and math.isfinite(effect.high)):
        return f'{percent(effect.gain)} (no interval yet)'
    low = percent(effect.low).removesuffix(' %')
    return f'{percent(effect.gain)} ({low} to {percent(effect.high)})'


def _name(row: finding_types.ValueFinding) -> str:
    return f'{row.choice}={row.value}'

# SPDX-License-Identifier: Apache-2.0

"""Write the recommended profile, with the evidence of each choice."""

import textwrap
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import yaml

from hpcvirt import printable
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import report as reports

_WIDTH = 79


def profile(shown: reports.TuneReport, content: Mapping[str, Any]) -> str:
    """Write the recommended profile as YAML for ``flavor plan --profile``.

    The comment of each choice has its effect with the interval, the number of
    trials, the dates and the class of hosts. Choices that are no keys of a
    profile are comments only.

    :param content: the content of the recommended profile
    """
    lines = [line for text in shown.summary() for line in _comment(text)]
    rest = dict(content)
    for choice, level in zip(shown.space.choices, shown.findings.recommended,
                             strict=True):
        value = choice.values[level]
        change = (shown.experiment.choices[choice.name][value] if level
                  else experiments.ValueChange())
        lines += ['', *_evidence(shown, choice.name, value)]
        own = {key: rest.pop(key) for key in change.profile
               if key in rest and key != 'extra_specs'}
        lines += [_dump(own)] if own else []
        lines += [f'# Extra spec, see below: {key}={item}'
                  for key, item in change.extra_specs.items()]
        if change.guests_per_host is not None:
            lines.append('# Use the flavor of which a host takes '
                         f'{change.guests_per_host} instances.')
        lines += [f'# Set on the host: {key}={item}'
                  for key, item in change.host.items()]
    if rest:
        lines += ['', "# As in today's profile, besides these extra specs"
                  if 'extra_specs' in rest else "# As in today's profile",
                  _dump(rest)]
    return ''.join(f'{printable.escape(line)}\n' for text in lines
                   for line in text.splitlines() or [''])


def _evidence(shown: reports.TuneReport, choice: str,
              value: str) -> Iterator[str]:
    first, last = shown.dates
    rows = [row for row in shown.findings.values if row.choice == choice]
    yield from _comment(f'{choice}: {value}')
    for row in rows:
        if value in (row.value, experiments.TODAY):
            yield from _comment(
                f'{row.value} against today: {reports.percents(row.effect)}, '
                f'{row.decision}, {row.trials} trials, {first} to {last}, '
                f'{shown.experiment.host_class}' + (
                    f'; refused: {row.guard}' if row.guard else ''))


def _comment(text: str) -> list[str]:
    return textwrap.wrap(printable.escape(text), _WIDTH,
                         initial_indent='# ', subsequent_indent='#   ',
                         break_long_words=False, break_on_hyphens=False)


def _dump(content: Mapping[str, Any]) -> str:
    text: str = yaml.safe_dump(dict(content), sort_keys=False)
    return text.rstrip('\n')

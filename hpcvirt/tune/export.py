# SPDX-License-Identifier: Apache-2.0

"""Write the recommended profile, with the evidence of each choice."""

import textwrap
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import yaml

from hpcvirt import printable
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import report as reports


def profile(shown: reports.TuneReport, content: Mapping[str, Any]) -> str:
    """Write the recommended profile as YAML for ``flavor plan --profile``.

    The comment of each choice has its effect with the interval, the number of
    trials, the dates and the class of hosts. Choices that are no keys of a
    profile are comments only.

    :param content: the content of the recommended profile
    """
    rest = dict(content)
    blocks = [_write(shown.summary(), {})]
    for choice, level in zip(shown.space.choices, shown.findings.recommended,
                             strict=True):
        value = choice.values[level]
        change = shown.experiment.choices[choice.name].get(
            value, experiments.ValueChange())
        blocks.append(_write([
            f'{choice.name}: {value}',
            *(f'{row.value} against today: {reports.percents(row.effect)}, '
              f'{row.decision}, {row.trials} trials, {shown.dates}, '
              f'{shown.experiment.host_class}'
              + (f'; refused: {row.guard}' if row.guard else '')
              for row in shown.findings.values if row.choice == choice.name
              and value in (row.value, experiments.TODAY)),
            *(f'Extra spec, see below: {key}={item}'
              for key, item in change.extra_specs.items()),
            *([f'Use the flavor of which a host takes {number} instances.']
              if (number := change.guests_per_host) else []),
            *(f'Set on the host: {key}={item}'
              for key, item in change.host.items())], {
            key: rest.pop(key) for key in change.profile
            if key in rest and key != 'extra_specs'}))
    return '\n'.join([*blocks, _write(['The rest of the profile'], rest)])


def _write(comments: Iterable[str], content: Mapping[str, Any]) -> str:
    """Write keys of the profile below comments."""
    lines = [line for text in comments for line in textwrap.wrap(
        printable.escape(text), 79, initial_indent='# ',
        subsequent_indent='#   ', break_long_words=False,
        break_on_hyphens=False)]
    return ''.join(f'{line}\n' for line in lines) + (
        yaml.safe_dump(dict(content), sort_keys=False) if content else '')

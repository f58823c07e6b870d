# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt tune plan``: say what an experiment takes and what it can show."""

import argparse
import itertools
import math
import textwrap
from typing import Any

from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.cmd import command
from hpcvirt.cmd import terminal
from hpcvirt.cmd.tune import documents
from hpcvirt.tune import configurations
from hpcvirt.tune import design as designs
from hpcvirt.tune import effects


class PlanTuning(command.Report):
    """Plan an experiment that compares choices of a profile.

    Print how many configurations "hpcvirt tune run" would measure, the boots,
    reboots and hours that this takes at most, the smallest effect of each
    choice that it can show, and the guests, cores and memory of a host with
    each value. An experiment that cannot show the differences that matter
    within its limits is refused.
    """

    rows = 'values'
    fields = ('choice', 'value', 'guests', 'cores', 'memory_mib', 'reboot',
              'smallest_percent')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        documents.add_experiment(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Plan the experiment."""
        document = _make_document(documents.read(args.experiment))
        return command.CommandResult(
            document, lambda: _draw(document, terminal.width()))


def _make_document(read: configurations.TuneDocument) -> dict[str, Any]:
    space, experiment = read.space, read.space.experiment
    design = designs.make(space)
    names = [choice.name for choice in space.choices]
    smallest = effects.smallest_effects(space)
    alike = sorted({
        tuple(sorted([pair, *others])) for pair in itertools.combinations(
            range(len(names)), 2) if (others := design.aliases(pair))})
    return {
        'schema_version': 1, 'name': experiment.name,
        'hosts': [host.name for host in read.hosts],
        'configurations': [{
            'values': experiment.format_levels(levels), 'guests': own.guests,
            'flavor': serialization.dump(own.flavor)}
            for levels in design.levels
            for own in [read.configurations[levels]]],
        'replicates': space.replicates,
        'pairs': experiment.confirm_boots,
        **configurations.count(read),
        'noise_percent': experiment.noise_percent,
        'values': [{
            'choice': choice.name, 'value': value,
            **serialization.dump(cost), 'reboot': choice.has_reboot,
            'smallest_percent': round(100 * math.expm1(least), 2)}
            for choice, least in zip(space.choices, smallest, strict=True)
            for value, cost in zip(choice.values, choice.costs, strict=True)],
        'confounded': [[[names[place] for place in each] for each in pairs]
                       for pairs in alike]}


def _draw(plan: dict[str, Any], width: int | None) -> str:
    text = text_table.draw(
        ('Choice', 'Value', 'Guests', 'Cores', 'GiB', 'Reboot', 'Shows'),
        [(row['choice'], row['value'], str(row['guests']), str(row['cores']),
          f'{row["memory_mib"] / 1024:.0f}', 'yes' if row['reboot'] else 'no',
          f'{row["smallest_percent"]:.1f} %') for row in plan['values']],
        {'Guests', 'Cores', 'GiB', 'Shows'}, width)
    lines = [(
        'Guests, Cores, GiB: what a host gives to guests with this value. '
        'Shows: the smallest effect of the choice that 4 of 5 such '
        'experiments show, if boots of the same configuration differ by '
        f'{plan["noise_percent"]:g} %.'), (
        f'On {words.join_names(plan["hosts"], "hosts")}: '
        f'{len(plan["configurations"])} configurations are measured '
        f'{plan["replicates"]} times, and the best in {plan["pairs"]} pairs '
        f'of boots with that of today. That takes at most {plan["runs"]} runs '
        f'of programs, {plan["boots"]} boots, {plan["reboots"]} reboots and '
        f'{plan["hours"]:.1f} hours.')]
    lines += ['These interactions cannot be told from each other: '
              + ', '.join(' x '.join(pair) for pair in pairs) + '.'
              for pairs in plan['confounded']]
    return '\n'.join([text, *(textwrap.fill(
        line, width or text_table.WIDTH) for line in lines), ''])

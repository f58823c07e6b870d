# SPDX-License-Identifier: Apache-2.0

"""Read an experiment and plan it; show and export what it has found."""

import argparse
import dataclasses
import datetime
import itertools
import math
import os
import textwrap
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import run_spec
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import hosts
from hpcvirt.cmd import html_file
from hpcvirt.cmd import output
from hpcvirt.cmd import store_arguments
from hpcvirt.cmd import yaml_file
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.topology.alike import classes as alike_classes
from hpcvirt.topology.alike import differences as alike_differences
from hpcvirt.tune import configurations
from hpcvirt.tune import design as designs
from hpcvirt.tune import effects
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import model


class PlanTuning(command.Report):
    """Plan an experiment that compares choices of a profile.

    Print how many configurations "hpcvirt bench run" would measure, the
    boots, reboots and hours that this takes at most, the smallest effect of
    each choice that it can show, and the guests, cores and memory of a host
    with each value. An experiment that cannot show the differences that matter
    within its limits is refused.
    """

    rows = 'values'
    fields = ('choice', 'value', 'guests', 'cores', 'memory_mib', 'reboot',
              'smallest_percent')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_experiment(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Plan the experiment."""
        document = _make_document(read(args.experiment))
        return command.CommandResult(
            document, lambda: _draw(document, output.width()))


def _make_document(space: model.Space) -> dict[str, Any]:
    experiment, design = space.experiment, designs.make(space)
    names = [choice.name for choice in space.choices]
    alike = sorted({
        tuple(sorted([pair, *others])) for pair in itertools.combinations(
            range(len(names)), 2) if (others := design.aliases(pair))})
    planned = []
    for levels in design.levels:
        own = space.configurations[levels]
        planned.append({
            'values': experiment.format_levels(levels), 'guests': own.guests,
            'flavor': serialization.dump(own.flavor)})
    values: list[dict[str, Any]] = []
    for choice, least in zip(
            space.choices, effects.smallest_effects(space), strict=True):
        values += [{
            'choice': choice.name, 'value': value,
            **serialization.dump(cost), 'reboot': choice.has_reboot,
            'smallest_percent': round(100 * math.expm1(least), 2)}
            for value, cost in zip(choice.values, choice.costs, strict=True)]
    return {
        'schema_version': 1, 'name': experiment.name,
        'hosts': [host.name for host in space.hosts],
        'configurations': planned,
        'replicates': space.replicates, 'pairs': experiment.confirm_boots,
        **configurations.count(space),
        'noise_percent': experiment.noise_percent,
        'values': values,
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


class ShowExperiment(command.Report):
    """Show what an experiment has found so far.

    Show the recommended profile with its gain, the effect of each value
    compared with today's, its cost, and what was published about it. The
    format profile prints the recommended profile for "hpcvirt flavor plan
    --profile"; the comment of each choice has its effect with the interval,
    the number of trials, the dates and the class of hosts.
    """

    rows = 'values'
    fields = ('choice', 'value', 'decision', 'trials', 'guard')
    more_formats = ('profile',)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add(parser)
        parser.add_argument(
            '--html', metavar='FILE', help='write a self-contained page; an '
            'existing file is replaced only if it is such a page')

    def answer(self,
               args: argparse.Namespace) -> command.CommandResult | None:
        """Show the findings, or write the page."""
        found = _read(args)
        from hpcvirt.tune import report
        shown = report.TuneReport(*found)
        if args.html is None:
            return command.CommandResult(
                shown.document(), lambda: shown.text(output.width()),
                others={'profile': lambda: report.profile(shown)})
        if args.formatter != 'table':
            raise exception.InvalidInput('--format', 'is not for --html')
        now = datetime.datetime.now(datetime.UTC)
        html_file.write(args.html, report.page(
            shown, f'{now:%Y-%m-%d %H:%M} UTC'), report.TITLE)
        print(args.html)
        return None


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Add the argument EXPERIMENT."""
    parser.add_argument('experiment', metavar='EXPERIMENT',
                        help='the file of the experiment, as YAML or JSON')


def read(path: str) -> model.Space:
    """Read and plan the experiment of a file; see :func:`plan`."""
    return plan(yaml_file.read(path, hosts.MAX_PROFILE_BYTES),
                input_file.name(path))


def plan(plain: object, where: str,
         profile: str | None = None) -> model.Space:
    """Read an experiment and all files that it names, and plan it.

    :param plain: the document
    :param where: its file; the fleet is relative to its folder
    :param profile: a profile to confirm instead of the screening
    :raises InvalidInput: for an invalid file, a configuration that cannot be
        planned, or limits within which nothing can be decided
    """
    experiment = experiments.read(plain, where)
    fleet = hosts.read_fleet(
        os.path.join(os.path.dirname(where), experiment.fleet))
    own = fleet.find_class(experiment.host_class, f'{where}: host_class')
    if profile is not None:
        given = hosts.read_profile_content(profile)
        experiment = dataclasses.replace(experiment, choices={
            'profile': {'given': experiments.ValueChange(profile=(
                {'base': given} if isinstance(given, str)
                else {'base': 'default', **given}))}})
    found = own.list_topologies()
    _check_alike(found, f'{where}: class')
    space = configurations.plan(experiment, found, own.profile_content, where)
    guest = space.configurations[space.today].guest
    for name, program in experiment.programs.items():
        _check_program(program, guest, f'{where}: programs[{name!r}]')
    return (configurations.plan_replicates(space, where)
            if profile is None else space)


def _check_alike(found: Sequence[host_model.Host], where: str) -> None:
    """Check that hosts are alike by the rule of the command that groups them.

    :raises InvalidInput: saying how a host differs
    """
    own, *others = alike_classes.group(found)
    odd: list[str] = []
    for variant in own.odd:
        odd += variant.hosts
    for other in others:
        odd += other.hosts
    if not odd:
        return
    by_name = {host.name: host for host in found}
    differences = alike_differences.compare_hosts(by_name[odd[0]],
                                                  own.example)
    what = '; '.join(item.what for item in differences)
    raise exception.InvalidInput(
        where, f'{own.example.name} and {odd[0]} are not alike; of {odd[0]}: '
        f'{what}; give hosts that are not alike a class of their own')


def _check_program(program: experiments.TunedProgram,
                   guest: shape_model.Shape, where: str) -> None:
    try:
        definition, variant = catalogue.find(program.benchmark)
        run_spec.make(
            requests.RunRequest(definition, variant, program.settings),
            sizing.Machine(guest.cpus, guest.memory_mib, len(guest.cells)))
    except exception.InvalidInput as exc:
        raise exception.InvalidInput(where, str(exc)) from exc
    # Without a metric, that of a benchmark with a single one counts.
    metric = program.metric or ', '.join(
        each.name for each in definition.metrics if each.primary)
    if metric_definition.find(definition.metrics, metric) is None:
        known = ', '.join(each.form for each in definition.metrics)
        raise exception.InvalidInput(f'{where}.metric',
                                     f'must be one of {known}')


def _add(parser: argparse.ArgumentParser) -> None:
    add_experiment(parser)
    store_arguments.add(parser)


def _read(args: argparse.Namespace) -> tuple[
        model.Space, model.Findings, tuple[model.Trial, ...]]:
    with extras.bench():
        from hpcvirt.tune import analysis
        from hpcvirt.tune import tuning
    space = read(args.experiment)
    name = space.experiment.name
    trials = tuning.find_record(
        args.data, tuning.make_record(space, name)).trials
    if not trials:
        raise exception.InvalidInput(
            tuning.locate(args.data, name), 'has no trial: "hpcvirt bench '
            'run --apply" has made none of this experiment here')
    return space, analysis.analyse(space, trials), trials

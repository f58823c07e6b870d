# SPDX-License-Identifier: Apache-2.0

"""Read an experiment and plan it, for all commands of ``hpcvirt tune``."""

import argparse
import dataclasses
import os
import re

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import words
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.run import run_spec
from hpcvirt.cmd import hosts
from hpcvirt.cmd import yaml_file
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.tune import configurations
from hpcvirt.tune import experiment as experiments


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Add the argument EXPERIMENT."""
    parser.add_argument('experiment', metavar='EXPERIMENT',
                        help='the file of the experiment, as YAML or JSON')


def read(path: str,
         profile: str | None = None) -> configurations.TuneDocument:
    """Read an experiment and all files that it names, and plan it.

    :param path: the file; the fleet is relative to its folder
    :param profile: a profile to confirm instead of the screening
    :raises InvalidInput: for an invalid file, a configuration that cannot be
        planned, or limits within which nothing can be decided
    """
    where = input_file.name(path)
    experiment = experiments.read(
        yaml_file.read(path, hosts.MAX_PROFILE_BYTES), where)
    fleet = hosts.read_fleet(
        os.path.join(os.path.dirname(where), experiment.fleet))
    own = fleet.classes.get(experiment.host_class)
    if own is None:
        raise exception.InvalidInput(
            f'{where}: class', f'{experiment.host_class[:64]!r} is not in '
            f'{fleet.where}'
            + words.suggest(experiment.host_class, fleet.classes))
    if profile is not None:
        given = hosts.read_profile_content(profile)
        experiment = dataclasses.replace(experiment, choices={
            'profile': {'given': experiments.ValueChange(profile=(
                {'base': given} if isinstance(given, str)
                else {'base': 'default', **given}))}})
    found = own.list_topologies()
    first, *other = host_model.group_twins(found)
    if other:
        raise exception.InvalidInput(
            f'{where}: class', f'{first[0].name} and {other[0][0].name} are '
            'not alike; an experiment needs hosts with the same topology')
    document = configurations.plan(experiment, found, own.profile_content,
                                   where)
    guest = document.configurations[document.space.today].guest
    for name, program in experiment.programs.items():
        _check_program(program, guest, f'{where}: programs[{name!r}]')
    return (configurations.plan_replicates(document, where)
            if profile is None else document)


def _check_program(program: experiments.TunedProgram,
                   guest: shape_model.Shape, where: str) -> None:
    try:
        definition, variant = catalogue.find(program.benchmark)
        run_spec.make(definition, variant, sizing.Machine(
            guest.cpus, guest.memory_mib, len(guest.cells)), program.settings)
    except exception.InvalidInput as exc:
        raise exception.InvalidInput(where, str(exc)) from exc
    known = [each.name + '[BYTES]' * each.per_size
             for each in definition.metrics]
    metric = program.metric or ', '.join(
        each.name for each in definition.metrics if each.primary)
    if re.sub(r'\[\d+\]$', '[BYTES]', metric) not in known:
        raise exception.InvalidInput(
            f'{where}.metric', f'must be one of {", ".join(known)}')

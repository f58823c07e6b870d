# SPDX-License-Identifier: Apache-2.0

"""Read an experiment and plan it, for all commands of ``hpcvirt tune``."""

import argparse
import dataclasses
import itertools
import math
import os
from typing import Any

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import words
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.run import run_spec
from hpcvirt.cmd import hosts
from hpcvirt.cmd import yaml_file
from hpcvirt.fleet import classes as fleet_classes
from hpcvirt.fleet import document as fleet_documents
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.tune import budget as budgets
from hpcvirt.tune import configurations
from hpcvirt.tune import design as designs
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import space as spaces

#: If there are more configurations, only those of one replicate are planned.
MAX_PLANNED = 1024


@dataclasses.dataclass(frozen=True)
class TuneDocument:
    """An experiment that can be carried out.

    :ivar where: the file, for errors
    :ivar hosts: the hosts, which differ only in their names
    """

    where: str
    experiment: experiments.Experiment
    hosts: tuple[host_model.Host, ...]
    configurations: configurations.Configurations
    space: spaces.Space
    budget: spaces.Budget


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Add the argument EXPERIMENT."""
    parser.add_argument('experiment', metavar='EXPERIMENT',
                        help='the file of the experiment, as YAML or JSON')


def read(path: str, *, has_native: bool = False, profile: str | None = None,
         guests: int | None = None) -> TuneDocument:
    """Read an experiment and all files that it names, and plan it.

    :param path: the file; relative paths in it are relative to its folder
    :param has_native: whether the confirmation has native trials
    :param profile: a profile to confirm instead of the screening: the space
        has one choice ``profile`` with the values ``today`` and ``given``
    :param guests: how many guests fill a host with that profile; None for as
        many as today
    :raises InvalidInput: for an invalid file, a configuration that cannot be
        planned, or limits within which nothing can be decided
    """
    where = input_file.name(path)
    folder = '' if path == input_file.STDIN else os.path.dirname(path)
    experiment = experiments.read(
        yaml_file.read(path, hosts.MAX_PROFILE_BYTES), where)
    today, found = _read_class(experiment, folder, where)
    given = None
    if profile is not None:
        given = fleet_classes.FleetClass(
            hosts=(), profile=hosts.read_profile_content(
                profile)).profile_content
        experiment = dataclasses.replace(
            experiment, interactions=(), choices={
                'profile': {'given': experiments.ValueChange(
                    guests_per_host=guests)}})
    planned = configurations.Configurations(experiment, found, today, where,
                                            given)
    space = planned.make_space()
    counts = [len(choice.values) for choice in space.choices]
    for levels in (itertools.product(*map(range, counts))
                   if math.prod(counts) <= MAX_PLANNED
                   else designs.make(space).levels):
        planned.plan(levels)
    for number, program in enumerate(experiment.programs):
        _check_program(program, planned.plan(space.today).guest,
                       f'{where}: programs[{number}]')
    return TuneDocument(
        where, experiment, found, planned, space, budgets.make(
            experiment, space, len(found), where, has_native=has_native,
            has_screening=given is None))


def _read_class(experiment: experiments.Experiment, folder: str, where: str,
                ) -> tuple[dict[str, Any], tuple[host_model.Host, ...]]:
    """Read the content of today's profile, and the hosts."""
    if experiment.fleet is None:
        own = fleet_classes.FleetClass(hosts=tuple(
            hosts.read_entries(experiment.hosts, folder=folder)))
    else:
        path = os.path.join(folder, experiment.fleet)
        known = hosts.read_fleet(path).classes
        name = experiment.host_class or ''
        if name not in known:
            raise exception.InvalidInput(
                f'{where}: class', f'{name[:64]!r} is not in {path}'
                + words.suggest(name, known))
        own = known[name]
    fleet_documents.FleetDocument(where, {hosts.CLASS: own}).check_names()
    if experiment.profile is not None:
        own = dataclasses.replace(own, profile=hosts.read_profile_content(
            experiment.profile, folder) if isinstance(
                experiment.profile, str) else experiment.profile)
    return own.profile_content, own.list_topologies()


def _check_program(program: experiments.TunedProgram,
                   guest: shape_model.Shape, where: str) -> None:
    """Check that a program runs in a guest, and has the metric.

    :raises InvalidInput: if not
    """
    try:
        definition, variant = catalogue.find(program.benchmark)
        run_spec.make(definition, variant, sizing.Machine(
            guest.cpus, guest.memory_mib, len(guest.cells)), program.settings)
    except exception.InvalidInput as exc:
        raise exception.InvalidInput(where, str(exc)) from exc
    figures = {each.name: each for each in definition.metrics}
    name, size = bounds.split(program.metric or ', '.join(
        each.name for each in definition.metrics if each.primary))
    if name not in figures or figures[name].per_size != (size is not None):
        raise exception.InvalidInput(
            f'{where}.metric', 'must be one of ' + ', '.join(
                each.name + ('[BYTES]' if each.per_size else '')
                for each in definition.metrics))

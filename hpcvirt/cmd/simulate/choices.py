# SPDX-License-Identifier: Apache-2.0

"""Make the scenarios of a replay from the arguments.

The first choice of a what-if has the arguments of the command. Each other one,
``NAME: ARGUMENTS``, has those after its name instead.
"""

import argparse
import dataclasses
import re
import shlex
from collections.abc import Callable
from collections.abc import Iterator
from typing import NoReturn

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.cmd import command
from hpcvirt.cmd import hosts
from hpcvirt.flavors import host_part
from hpcvirt.flavors import planner
from hpcvirt.fleet import assemble
from hpcvirt.fleet import document as documents
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import read
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import synthetic


class _ChoiceParser(command.CommandParser):
    def error(self, message: str) -> NoReturn:
        raise exception.InvalidInput(self.prog, message)


def read_choices(args: argparse.Namespace,
                 add_arguments: Callable[[argparse.ArgumentParser], None],
                 ) -> dict[str, scenarios.Scenario]:
    """Read the fleets of all choices, and map the workload to their flavors.

    :param add_arguments: adds the arguments that a choice can replace
    :returns: choice to scenario; the only one has the name ''
    :raises InvalidInput: for an invalid file or argument
    """
    given = {'as given' if args.what_if else '': args}
    for text in args.what_if:
        name, own = _parse_choice(text, args, add_arguments)
        if name in given:
            raise exception.InvalidInput('--what-if',
                                         f'{name} is the name of two choices')
        given[name] = own
    fleets = {name: _read_fleet(own) for name, own in given.items()}
    model = synthetic.parse(args.workload)
    if model is None and args.seeds > 1:
        raise exception.InvalidInput(
            '--seeds', f'is for the model {synthetic.MODEL}; use --windows '
            'for a log')
    others = [flavor for fleet, *_ in fleets.values()
              for flavor in fleet.flavors]
    flavors = next(iter(fleets.values()))[0].flavors
    found = ([read.workload(args.workload)] if model is None else [
        model.workload(seed, flavors) for seed in range(args.seeds)])
    choices: dict[str, scenarios.Scenario] = {}
    for name, (fleet, are_given, in_use) in fleets.items():
        # The model describes the flavors of the first fleet.
        choices[name] = scenarios.make_scenario(
            input_file.name(args.workload), found if model is None else [
                dataclasses.replace(each, flavors={
                    flavor.name: flavor for flavor in fleet.flavors
                    if each.flavors.get(flavor.name) == flavor})
                for each in found],
            fleet, args.load, own=model is not None or not are_given,
            vf_share=args.vf_share, others=others if args.what_if else None,
            like=next(iter(choices.values()), None),
            in_use=in_use if args.in_use else None, warm_up=args.warm_up)
    return choices


def _parse_choice(text: str, args: argparse.Namespace,
                  add_arguments: Callable[[argparse.ArgumentParser], None],
                  ) -> tuple[str, argparse.Namespace]:
    match = re.fullmatch(r'\s*(\w[\w .+-]{0,21}):(.*)', text, re.DOTALL)
    if not match:
        raise exception.InvalidInput(
            '--what-if', f'{text[:40]!r} must begin with a name of at most 22 '
            'letters and digits, and a colon')
    parser = _ChoiceParser(prog=f'--what-if {match[1]}', add_help=False)
    add_arguments(parser)
    parser.add_argument('--add', action='append', type=_parse_growth)
    try:
        own = vars(parser.parse_args(shlex.split(match[2])))
    except ValueError as exc:
        parser.error(str(exc))
    keys = {key for key, value in own.items() if value and key != 'source'}
    if 'fleet' in keys:
        keys |= {'path', 'profile', 'cpus', 'pages'}
    elif 'path' in keys:
        keys |= {'fleet', 'source'}
    return match[1], argparse.Namespace(**{**vars(args), **{
        key: own[key] for key in keys}})


def _parse_growth(word: str) -> tuple[str, int]:
    kind, _, count = word.rpartition('*')
    return kind, command.whole_number(1, 10_000)(count)


def _read_fleet(args: argparse.Namespace,
                ) -> tuple[state.Fleet, bool, state.Fleet]:
    """Read the hosts, and read or plan the flavors.

    :returns: the empty fleet; whether its flavors are given, not planned; and
        the fleet with its instances
    :raises InvalidInput: for an invalid file or argument
    """
    document = hosts.read(args)
    given: dict[str, flavor_model.Flavor] = {}
    for path in args.flavors:
        for flavor in hosts.read_flavors(path):
            if given.setdefault(flavor.name, flavor) is not flavor:
                raise exception.InvalidInput(
                    path, f'has the flavor {flavor.name[:64]}, which another '
                    'file has as well')
    document = dataclasses.replace(document, flavors=tuple(
        given.values()) or document.flavors)
    if args.fleet is not None:
        if args.cpus or args.pages:
            raise exception.InvalidInput(
                '--cpus' if args.cpus else '--pages', 'cannot be used with '
                '--fleet, whose profiles divide the hosts')
        fleet, flavors = assemble.make_fleet(document)
        hosts.warn(fleet.warnings)
        for name, why in fleet.broken.items():
            raise exception.InvalidInput(name, why)
    else:
        (own,) = document.classes.values()
        topologies = own.list_topologies()
        plan = planner.plan(topologies, own.read_profile(document.where),
                            host_part.build(args.cpus, args.pages))
        hosts.warn(plan.warnings)
        fleet = assemble.fleet(topologies, {
            host.name: host.settings for host in plan.hosts}, ())
        flavors = document.flavors or tuple(
            item.flavor for item in plan.flavors)
    empty = state.Fleet(tuple(_list_empty(document, fleet)), {},
                        flavors=flavors)
    for kind, count in getattr(args, 'add', ()):
        empty = scenarios.grow(empty, kind, count)
    return empty, bool(document.flavors), fleet


def _list_empty(document: documents.FleetDocument,
                fleet: state.Fleet) -> Iterator[state.FleetHost]:
    """Yield the hosts without instances; those of an entry are then alike."""
    by_name = {host.name: host for host in fleet.hosts}
    for own in document.classes.values():
        for entry in own.hosts:
            host = by_name[entry.names[0]]
            empty = moving.leave_all(host.instances, host).state
            yield from (state.FleetHost(name, empty) for name in entry.names)

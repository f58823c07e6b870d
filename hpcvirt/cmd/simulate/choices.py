# SPDX-License-Identifier: Apache-2.0

"""Make the scenarios of a replay from the arguments.

The first choice of a what-if has the arguments of the command. Each other one,
``NAME: ARGUMENTS``, has those after its name instead.
"""

import argparse
import dataclasses
import re
import shlex
from typing import NoReturn

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.cmd import command
from hpcvirt.cmd.simulate import empty_fleet
from hpcvirt.simulate import read
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import simulation
from hpcvirt.simulate import synthetic


class _ChoiceParser(command.CommandParser):
    def error(self, message: str) -> NoReturn:
        raise exception.InvalidInput(self.prog, message)


def read_choices(args: argparse.Namespace) -> dict[str, scenarios.Scenario]:
    """Read the fleets of all choices, and map the workload to their flavors.

    :returns: choice to scenario; the only one has the name ''
    :raises InvalidInput: for an invalid file or argument
    """
    given = {'as given' if args.what_if else '': args}
    for text in args.what_if:
        name, own = _parse_choice(text, args)
        if name in given:
            raise exception.InvalidInput('--what-if',
                                         f'{name} is the name of two choices')
        given[name] = own
    fleets = {name: empty_fleet.read(own) for name, own in given.items()}
    for name, (fleet, are_given, in_use) in fleets.items():
        grown = fleet
        for kind, count in getattr(given[name], 'add', ()):
            grown = scenarios.grow(grown, kind, count)
        fleets[name] = grown, are_given, in_use
    model = synthetic.parse(args.workload)
    if model is None and args.seeds > 1:
        raise exception.InvalidInput(
            '--seeds', 'is for models, which are '
            f'{" and ".join(synthetic.MODELS)}; use --windows for a log')
    others = [flavor for fleet, *_ in fleets.values()
              for flavor in fleet.flavors]
    flavors = next(iter(fleets.values()))[0].flavors
    found = ([read.workload(args.workload)] if model is None else [
        model.workload(seed, flavors) for seed in range(args.seeds)])
    choices: dict[str, scenarios.Scenario] = {}
    for name, (fleet, are_given, in_use) in fleets.items():
        # A model describes the flavors of the first fleet.
        choices[name] = simulation.make_scenario(
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
                  ) -> tuple[str, argparse.Namespace]:
    match = re.fullmatch(r'\s*(\w[\w .+-]{0,21}):(.*)', text, re.DOTALL)
    if not match:
        raise exception.InvalidInput(
            '--what-if', f'{text[:40]!r} must begin with a name of at most 22 '
            'letters and digits, and a colon')
    parser = _ChoiceParser(prog=f'--what-if {match[1]}', add_help=False)
    empty_fleet.add_arguments(parser)
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

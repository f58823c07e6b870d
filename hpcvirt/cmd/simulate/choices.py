# SPDX-License-Identifier: Apache-2.0

"""Make the scenarios of a replay from the arguments.

Each ``--fleet`` is a choice. The hosts of the command line are the only one.
"""

import argparse
import dataclasses
import itertools
import os
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.cmd import hosts
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import host_part
from hpcvirt.fleet import assemble
from hpcvirt.fleet import document as documents
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import read
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import synthetic
from hpcvirt.simulate import workload as workloads


@dataclasses.dataclass(frozen=True)
class _GivenFleet:
    """The fleet of a choice.

    :ivar empty: the hosts without instances, and the flavors
    :ivar has_flavors: whether the flavors are given, not planned
    :ivar in_use: the hosts with their instances
    """

    empty: state.Fleet
    has_flavors: bool
    in_use: state.Fleet


def read_choices(args: argparse.Namespace) -> dict[str, scenarios.Scenario]:
    """Read the fleets, and map the workload to their flavors.

    :returns: the name of each fleet to its scenario; a single one has the
        name ''
    :raises InvalidInput: for an invalid file or argument
    """
    paths = args.fleet or [None]
    fleets: dict[str, _GivenFleet] = {}
    for path in paths:
        name = _name_choice(path) if len(paths) > 1 else ''
        if name in fleets:
            raise exception.InvalidInput(
                input_file.name(path), f'is another fleet of the name {name}')
        fleets[name] = _read_fleet(argparse.Namespace(
            **{**vars(args), 'fleet': path}))
    model = synthetic.parse(args.workload)
    if model is None and args.seeds > 1:
        raise exception.InvalidInput(
            '--seeds', f'is for the model {synthetic.MODEL}, not for a log')
    first = next(iter(fleets.values()))
    if model is None:
        found = [read.workload(args.workload)]
    else:
        # The model describes the flavors of the first fleet.
        found = [model.workload(seed, first.empty.flavors)
                 for seed in range(args.seeds)]
    others = None
    if len(fleets) > 1:
        others = list(itertools.chain.from_iterable(
            each.empty.flavors for each in fleets.values()))
    kinds: dict[str, device_choice.CountedAs] = {}
    for each in fleets.values():
        kinds |= each.empty.device_kinds
    choices: dict[str, scenarios.Scenario] = {}
    for name, given in fleets.items():
        own = found
        if model is not None:
            own = [_keep_flavors(each, given.empty.flavors) for each in found]
        choices[name] = scenarios.make_scenario(
            input_file.name(args.workload), own, given.empty, args.load,
            own=model is not None or not given.has_flavors,
            vf_share=args.vf_share, others=others, kinds=kinds,
            like=next(iter(choices.values()), None),
            in_use=given.in_use if args.in_use else None,
            warm_up=args.warm_up)
    return choices


def _name_choice(path: str) -> str:
    """Name a fleet by its file, without folder and suffix."""
    return os.path.splitext(os.path.basename(input_file.name(path)))[0]


def _keep_flavors(workload: workloads.Workload,
                  flavors: Sequence[flavor_model.Flavor],
                  ) -> workloads.Workload:
    """Leave out the flavors of a workload that a fleet does not have."""
    kept = {flavor.name: flavor for flavor in flavors
            if workload.flavors.get(flavor.name) == flavor}
    return dataclasses.replace(workload, flavors=kept)


def _read_fleet(args: argparse.Namespace) -> _GivenFleet:
    """Read the hosts, and read or plan the flavors.

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
    part = host_part.build(args.cpus, args.pages)
    fleet, flavors = assemble.make_fleet(document, part)
    hosts.warn(fleet.warnings)
    for name, why in fleet.broken.items():
        raise exception.InvalidInput(name, why)
    empty = state.Fleet(tuple(_list_empty(document, fleet)), {},
                        flavors=flavors, device_kinds=fleet.device_kinds)
    return _GivenFleet(empty, bool(document.flavors), fleet)


def _list_empty(document: documents.FleetDocument,
                fleet: state.Fleet) -> Iterator[state.FleetHost]:
    """Yield the hosts without instances; those of an entry are then alike."""
    by_name = {host.name: host for host in fleet.hosts}
    for own in document.classes.values():
        for entry in own.hosts:
            host = by_name[entry.names[0]]
            empty = moving.leave_all(host.instances, host).state
            yield from (state.FleetHost(name, empty) for name in entry.names)

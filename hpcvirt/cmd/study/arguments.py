# SPDX-License-Identifier: Apache-2.0

"""The arguments that several commands of ``hpcvirt bench study`` share."""

import argparse
import itertools
import typing
from collections.abc import Iterable

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import study
from hpcvirt.cmd import command

if typing.TYPE_CHECKING:
    from hpcvirt.acceptance import case_plan
    from hpcvirt.bench.studies import scaling


def add_study(parser: argparse.ArgumentParser,
              nargs: str | None = None) -> None:
    """Add the argument that names a study."""
    parser.add_argument('study', metavar='STUDY', nargs=nargs,
                        help=f'one of {", ".join(study_catalogue.IDS)}')


def add_case(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a case."""
    parser.add_argument('--case', metavar='CASE', help='only this case')


def add_hosts(parser: argparse.ArgumentParser) -> None:
    """Add the hosts of the site; a case may span several."""
    # The import takes long, and "study compare" does not need it.
    from hpcvirt.cmd import hosts
    if isinstance(parser, command.CommandParser):
        parser.intermixed = True
    parser.add_argument(
        'path', metavar=hosts.METAVAR, nargs='*', help='the topology of a '
        'host, or of several, to run it on; with --fleet, a class or a host '
        'of it')
    hosts.add_fleet(parser)


def find_study(args: argparse.Namespace) -> study.Study:
    """Return the study, limited to the case that the arguments name.

    :raises InvalidInput: if there is no such study or case
    """
    study_ = study_catalogue.get(args.study)
    return study_ if args.case is None else study_.limited_to(args.case)


def make_planners(args: argparse.Namespace,
                  ) -> 'dict[str, case_plan.CasePlanner]':
    """Return the planner of cases for each class of hosts.

    Hosts of the command line are a class without a name. As in the studies,
    guests get all of their cores.

    :raises InvalidInput: for an invalid argument or file
    """
    from hpcvirt.acceptance import case_plan
    from hpcvirt.cmd import hosts
    from hpcvirt.flavors import profile as profiles
    names = {*args.path}
    if args.fleet is None:
        # Without hosts, this says how to give them.
        return {'': case_plan.CasePlanner(
            hosts.read(args).list_topologies(), profiles.DENSE)}
    document = hosts.read_fleet(args.fleet)
    known: set[str] = set()
    found = {}
    for name, own in document.classes.items():
        where = document.locate(name)
        try:
            machines = own.list_topologies()
        except exception.InvalidInput as exc:
            raise exception.InvalidInput(where, str(exc)) from exc
        known.update((name, *(host.name for host in machines)))
        chosen = [host for host in machines
                  if not names or name in names or host.name in names]
        if chosen:
            found[name] = case_plan.CasePlanner(chosen,
                                                own.read_profile(where))
    for name in sorted(names - known):
        raise exception.InvalidInput(
            name[:64], f'is neither a class nor a host of {document.where}'
            + words.nearest(name, known))
    if not found:
        raise exception.InvalidInput(document.where, 'has no hosts')
    return found


def warn(planned: 'Iterable[case_plan.CasePlan | scaling.CaseRefusal]',
         ) -> None:
    """Print the warnings of the plans of cases."""
    from hpcvirt.cmd import hosts
    hosts.warn(itertools.chain.from_iterable(
        getattr(each, 'warnings', ()) for each in planned))

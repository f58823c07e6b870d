# SPDX-License-Identifier: Apache-2.0

"""The arguments that several commands of ``hpcvirt bench study`` share."""

import argparse
import typing
from collections.abc import Iterable

from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import study

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
    # The import takes long, and lists of studies do not need it.
    from hpcvirt.cmd import hosts
    hosts.add_hosts(parser, '+')
    parser.add_argument(
        '--profile', metavar='NAME|FILE',
        help='the resources of each host for guests, as for "hpcvirt flavor '
        'plan" (default: dense, as in the studies)')


def find_study(args: argparse.Namespace) -> study.Study:
    """Return the study, limited to the case that the arguments name.

    :raises InvalidInput: if there is no such study or case
    """
    study_ = study_catalogue.get(args.study)
    return study_ if args.case is None else study_.limited_to(args.case)


def planner(args: argparse.Namespace) -> 'case_plan.CasePlanner':
    """Return the planner of cases for the hosts that the arguments name.

    :raises InvalidInput: for an invalid file
    """
    from hpcvirt.acceptance import case_plan
    from hpcvirt.cmd import hosts
    return case_plan.CasePlanner(hosts.read_hosts(args.path),
                                 hosts.read_profile(args.profile or 'dense'))


def warn(planned: 'Iterable[case_plan.CasePlan | scaling.CaseRefusal]',
         ) -> None:
    """Print the warnings of the plans of cases."""
    from hpcvirt.cmd import hosts
    hosts.warn(item for each in planned
               for item in getattr(each, 'warnings', ()))

# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Arguments that several verbs of ``hpcvirt study`` share."""

import argparse
import json

from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import study
from hpcvirt.cmd import fleet_arguments
from hpcvirt.flavors import profile as profiles
from hpcvirt.replication import case_plan


def add_study(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a study."""
    parser.add_argument('study', metavar='STUDY',
                        help=f'one of {", ".join(study_catalogue.IDS)}')


def add_case(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a case."""
    parser.add_argument('--case', metavar='CASE', help='only this case')


def add_hosts(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the hosts of the site."""
    parser.add_argument(
        'path', metavar='PATH', nargs='+',
        help='the topology of a host of the site; a case that spans hosts '
        'needs one for each')
    parser.add_argument(
        '--profile', metavar='NAME|FILE',
        help='the choices of the operator, as for "hpcvirt flavor plan"; by '
        'default dense, as in the studies')


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses a table or JSON."""
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='table (the default) or json')


def chosen(args: argparse.Namespace) -> study.Study:
    """Return the study, limited to the case that the arguments name.

    :raises InvalidInput: if there is no such study or case
    """
    study_ = study_catalogue.get(args.study)
    return study_ if args.case is None else study_.limited_to(args.case)


def planner(args: argparse.Namespace) -> case_plan.CasePlanner:
    """Return the planner of cases for the hosts that the arguments name.

    :raises InvalidInput: for a file that cannot be used
    """
    profile = (profiles.DENSE if args.profile is None
               else fleet_arguments.read_profile(args.profile))
    return case_plan.CasePlanner(fleet_arguments.read_hosts(args.path),
                                 profile)


def print_json(document: object) -> None:
    """Print a document."""
    print(json.dumps(document, indent=2, allow_nan=False))

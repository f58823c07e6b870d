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

"""``hpcvirt study scale``."""

import argparse
import sys

from hpcvirt.cmd import fleet_arguments
from hpcvirt.cmd import terminal
from hpcvirt.cmd.study import arguments
from hpcvirt.replication import case_plan
from hpcvirt.replication import case_table

_ABOUT = """\
Scale the cases of a study to hosts of a site, and say which cases these hosts
cannot run.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'scale', help='scale the cases of a study to hosts',
        description=_ABOUT, epilog=fleet_arguments.EPILOG + 'Status 1: these '
        'hosts can run none of the cases.')
    arguments.add_study(parser)
    arguments.add_hosts(parser)
    arguments.add_case(parser)
    arguments.add_format(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the cases as the hosts can run them."""
    study_ = arguments.chosen(args)
    planner = arguments.planner(args)
    plans = [planner.plan(study_, case) for case in study_.cases]
    if args.format == 'json':
        arguments.print_json([case_plan.document(each) for each in plans])
    else:
        sys.stdout.write(case_table.table(plans, terminal.width()))
    return 0 if any(isinstance(each, case_plan.CasePlan)
                    for each in plans) else 1

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

"""``hpcvirt study script``."""

import argparse
import sys

from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import scaling
from hpcvirt.cmd import fleet_arguments
from hpcvirt.cmd.study import arguments
from hpcvirt.replication import case_table
from hpcvirt.replication import script

_ABOUT = """\
Print the shell script that runs a case on hosts of a site. It creates a
flavor and guests, runs "hpcvirt bench run --study", and deletes what it
created.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'script', help='print the script that runs a case',
        description=_ABOUT, epilog=fleet_arguments.EPILOG + 'Status 1: these '
        'hosts cannot run the case.')
    arguments.add_study(parser)
    parser.add_argument('case', metavar='CASE',
                        help='a case of the study, see "hpcvirt study show"')
    arguments.add_hosts(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script of a case."""
    study_ = study_catalogue.get(args.study)
    planned = arguments.planner(args).plan(study_, study_.case(args.case))
    if isinstance(planned, scaling.Refusal):
        sys.stderr.write(case_table.table([planned], None))
        return 1
    print('\n'.join(script.script(study_, planned)))
    return 0

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

"""``hpcvirt study list``."""

import argparse
import sys

from hpcvirt.bench.report import study_text
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import document
from hpcvirt.cmd import terminal
from hpcvirt.cmd.study import arguments


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser('list', help='list the studies',
                              description='List the published studies.')
    arguments.add_format(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the studies."""
    studies = study_catalogue.studies()
    if args.format == 'json':
        arguments.print_json([document.of_study(each) for each in studies])
    else:
        sys.stdout.write(study_text.listing(studies, terminal.width()))
    return 0

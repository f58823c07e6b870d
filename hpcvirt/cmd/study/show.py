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

"""``hpcvirt study show``."""

import argparse
import sys

from hpcvirt.bench.report import study_text
from hpcvirt.bench.studies import document
from hpcvirt.cmd import terminal
from hpcvirt.cmd.study import arguments

_ABOUT = """\
Show a published study: its document, its cases, its figures with the ratios
computed from them, and the claims that do not follow from the figures.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser('show', help='show a study',
                              description=_ABOUT)
    arguments.add_study(parser)
    arguments.add_case(parser)
    arguments.add_format(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print a study."""
    study_ = arguments.chosen(args)
    if args.format == 'json':
        arguments.print_json(document.of_study(study_))
    else:
        sys.stdout.writelines(study_text.describe(study_, terminal.width()))
    return 0

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

"""``hpcvirt study compare``."""

import argparse
import sys

from hpcvirt import exception
from hpcvirt.bench.model import record
from hpcvirt.bench.report import study_text
from hpcvirt.bench.results import location
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import document
from hpcvirt.cmd import terminal
from hpcvirt.cmd.bench import store_arguments
from hpcvirt.cmd.study import arguments

_ABOUT = """\
Compare the figures of a study with the newest results of "hpcvirt bench run
--study". A figure without a result is shown as not yet run.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'compare', help='compare the figures of a study with your results',
        description=_ABOUT)
    arguments.add_study(parser)
    arguments.add_case(parser)
    store_arguments.add(parser)
    arguments.add_format(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print published figures and results of the site."""
    comparisons = comparison.compare(arguments.chosen(args), _runs(args))
    if args.format == 'json':
        arguments.print_json([document.of_comparison(each)
                              for each in comparisons])
    else:
        sys.stdout.write(study_text.compared(comparisons, terminal.width()))
    return 0


def _runs(args: argparse.Namespace) -> list[record.Run]:
    """Read every run of the store that the arguments name."""
    store = store_arguments.open_existing(args)
    if store is None and args.store is None:
        raise exception.InvalidInput(
            args.data, f'has no {location.DATABASE}: "hpcvirt bench run" '
            'creates it')
    if store is None:
        return []
    try:
        return [run for entry in store.entries()
                for run in store.result(entry.id).runs]
    finally:
        store.close()

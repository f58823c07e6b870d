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

"""``hpcvirt bench list``."""

import argparse
import json
import sys

from hpcvirt import text_table
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.cmd import terminal

_EPILOG = ('Names may be written in any case, with hyphens or underscores. In '
           '"parse" and "compare", npb, osu, qe, namd and wrf stand for any '
           'benchmark of that program.')


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser('list', help='list the benchmarks',
                              description='List the benchmarks.',
                              epilog=_EPILOG)
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='table (the default) or json')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the benchmarks."""
    listed = catalogue.all_definitions()
    if args.format == 'json':
        print(json.dumps([_plain(definition) for definition in listed],
                         indent=2))
        return 0
    rows = [(definition.name, definition.title, _from(definition),
             ' '.join(variant.name for variant in definition.variants),
             ' '.join(figure.name for figure in definition.metrics
                      if figure.primary)) for definition in listed]
    sys.stdout.write(text_table.draw(
        ('Name', 'What', 'From', 'Variants', 'Figure'), rows,
        width=terminal.width()))
    return 0


def _plain(definition: definitions.Definition) -> dict[str, object]:
    return {
        'name': definition.name, 'title': definition.title,
        'aliases': definition.aliases,
        'obtain': [source.by for source in definition.obtain],
        'licence': definition.licence,
        'variants': [variant.name for variant in definition.variants],
        'metrics': {figure.name: {
            'unit': figure.unit, 'direction': figure.direction,
            'primary': figure.primary, 'per_size': figure.per_size}
            for figure in definition.metrics},
    }


def _from(definition: definitions.Definition) -> str:
    return ' '.join(dict.fromkeys(source.by for source in definition.obtain))

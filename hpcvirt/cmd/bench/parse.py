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

"""``hpcvirt bench parse``."""

import argparse
import json
import sys

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.parsers import parser
from hpcvirt.bench.parsers import text
from hpcvirt.bench.results import output_files
from hpcvirt.cmd import terminal

_ABOUT = """\
Read the output of a benchmark: its figures if it counts, the reason if it
does not.
"""

_EPILOG = """\
Status 0: the output counts, 1: it does not, 2: the question cannot be
answered (an unknown benchmark, no such file, nothing to expect by that name).
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    verb = verbs.add_parser('parse', help='read the output of a benchmark',
                            description=_ABOUT, epilog=_EPILOG)
    verb.add_argument(
        'name', metavar='NAME',
        help='the benchmark, as in "bench list", or npb, osu, qe, namd, wrf')
    verb.add_argument('file', metavar='FILE',
                      help='its output; - for standard input')
    verb.add_argument(
        '--expect', metavar='KEY=VALUE', action='append', default=[],
        help='what was asked for (N=1000, ranks=4, class=C, rc=2, ...): an '
        'output that says otherwise does not count; "bench describe" lists '
        'the keys; may be repeated')
    verb.add_argument(
        '--exit-status', metavar='N', type=int,
        help='what the program ended with, if it is known')
    verb.add_argument('--format', choices=('table', 'json'),
                      default='table', help='table (the default) or json')
    verb.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read one output."""
    known = catalogue.output_source(args.name)
    expect = {**known.expect, **expectations(args.expect)}
    if args.file == '-':
        raw = sys.stdin.buffer.read(text.LIMIT_BYTES + 1)
    else:
        raw = output_files.read_raw(args.file)
    found = parser.parse(known.parser, raw, expect, args.exit_status,
                         known.name)
    said = output_files.parsed_output(known.name, found)
    if args.format == 'json':
        print(json.dumps(serialization.to_plain(said), indent=2,
                         allow_nan=False))
    else:
        _print(said)
    return 0 if found.valid else 1


def expectations(words: list[str]) -> dict[str, str]:
    """Take ``KEY=VALUE`` apart.

    :raises InvalidInput: for what is not that
    """
    told = {}
    for word in words:
        key, equals, value = word.partition('=')
        if not equals or not key.strip() or not value.strip():
            raise exception.InvalidInput(f'--expect {word}', 'not KEY=VALUE')
        told[key.strip()] = value.strip()
    return told


def _print(said: output_files.ParsedOutput) -> None:
    if not said.valid:
        print(f'{said.benchmark}: INVALID: {said.reason}')
        return
    echoed = ' '.join(f'{key}={value}'
                      for key, value in said.parameters.items())
    print(f'{said.benchmark}: valid ({echoed})')
    rows = [(name, f'{metric.value:.10g}', metric.unit, metric.direction)
            for name, metric in said.metrics.items()]
    sys.stdout.write(text_table.draw(
        ('Metric', 'Value', 'Unit', 'Better'), rows, {'Value'},
        terminal.width()))
    for remark in said.remarks:
        print(f'Note: {remark}.')

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
from hpcvirt import printable
from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.parsers import parser
from hpcvirt.bench.results import output_files
from hpcvirt.cmd import terminal

_ABOUT = """\
Read the output of a benchmark: show its figures if it is valid, or the reason
if it is not.
"""

_EPILOG = """\
Status 0: the output is valid, 1: it is not, 2: it cannot be read (an unknown
benchmark, a missing file, an unknown key of --expect).
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
        help='how the benchmark was run (N=1000, ranks=4, class=C, rc=2): an '
        'output that says otherwise is invalid; "bench describe" lists the '
        'keys; may be repeated')
    verb.add_argument(
        '--exit-status', metavar='N', type=int,
        help='exit status of the program, if known')
    verb.add_argument('--format', choices=('table', 'json'),
                      default='table', help='table (the default) or json')
    verb.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read one output."""
    source = catalogue.output_source(args.name)
    expect = {**source.expect, **expectations(args.expect)}
    raw = output_files.read_raw(args.file)
    outcome = parser.parse(source.parser, raw, expect, args.exit_status,
                           source.name)
    output = output_files.parsed_output(source.name, outcome)
    if args.format == 'json':
        print(json.dumps(serialization.to_plain(output), indent=2,
                         allow_nan=False))
    else:
        _print(output)
    return 0 if outcome.valid else 1


def expectations(words: list[str]) -> dict[str, str]:
    """Read the values of --expect.

    :raises InvalidInput: for a word that is not ``KEY=VALUE``
    """
    expect = {}
    for word in words:
        key, equals, value = word.partition('=')
        if not equals or not key.strip() or not value.strip():
            raise exception.InvalidInput(f'--expect {word}', 'not KEY=VALUE')
        expect[key.strip()] = value.strip()
    return expect


def _print(output: output_files.ParsedOutput) -> None:
    if not output.valid:
        sys.stdout.write(printable.lines(
            [f'{output.benchmark}: INVALID: {output.reason}']))
        return
    echoed = ' '.join(f'{key}={value}'
                      for key, value in output.parameters.items())
    sys.stdout.write(printable.lines(
        [f'{output.benchmark}: valid ({echoed})']))
    rows = [(name, f'{metric.value:.10g}', metric.unit, metric.direction)
            for name, metric in output.metrics.items()]
    sys.stdout.write(text_table.draw(
        ('Metric', 'Value', 'Unit', 'Better'), rows, {'Value'},
        terminal.width()))
    sys.stdout.write(printable.lines(
        f'Note: {remark}.' for remark in output.remarks))

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

"""``hpcvirt bench compare``."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.results import json_format
from hpcvirt.bench.results import output_files
from hpcvirt.cmd import terminal
from hpcvirt.cmd.bench import parse

_ABOUT = """\
Judge guest against native. The ratio is always guest / native; whether that
is a loss follows from the direction of the metric.
"""

_EPILOG = """\
NATIVE and GUEST are directories of raw outputs (the files in natural order
make the pairs), quoted shell patterns, or JSON: results of "bench run",
answers of "bench parse" as a list or one to a line. A result that holds both
arms stands alone. Status 0: PASS, 1: FAIL, INCONCLUSIVE or INVALID (the word
is printed), 2: the question cannot be answered.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        'compare', help='judge guest against native from outputs',
        description=_ABOUT, epilog=_EPILOG)
    verb.add_argument('native', metavar='NATIVE', help='native outputs, or '
                      'a result that holds both arms')
    verb.add_argument('guest', metavar='GUEST', nargs='?',
                      help="the guest's outputs, in the order of the pairs")
    verb.add_argument('--aa', metavar='NATIVE2', help='native outputs once '
                      'more, in pairs with NATIVE: what the machine does to '
                      'itself')
    verb.add_argument('--benchmark', metavar='NAME',
                      help='whose raw outputs these are')
    verb.add_argument('--expect', metavar='KEY=VALUE', action='append',
                      default=[], help='as in "bench parse"')
    verb.add_argument('--bound', metavar='METRIC=RATIO', action='append',
                      default=[], help='the worst ratio that passes, instead '
                      "of the benchmark's own bounds; may be repeated")
    verb.add_argument('--overhead', metavar='PERCENT',
                      help='the same bound for every primary metric: the '
                      'guest may be so much slower')
    verb.add_argument('--pages', choices=('small', 'large'),
                      default='small', help='page size of the guest and the '
                      'application, which selects the default bounds '
                      '(default: small)')
    verb.add_argument('--shape', default='', metavar='IxC',
                      help='instances x cores, 4x8 for example; selects '
                      'default bounds')
    verb.add_argument('--nodes', choices=('one', 'several'), default='one',
                      help='hosts that the run spans; selects default '
                      'bounds (default: one)')
    verb.add_argument('--warm-up', type=int, default=0, metavar='N',
                      help='outputs at the beginning of each arm that do not '
                      'count (default: 0)')
    verb.add_argument('--unpaired', action='store_true',
                      help='the arms were not measured in turn on one host')
    verb.add_argument('--all', action='store_true',
                      help='show the figures without a bound as well; they '
                      'do not count')
    verb.add_argument('--format', choices=('table', 'json'),
                      default='table', help='table (the default) or json')
    verb.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Judge and print."""
    if args.warm_up < 0:
        raise exception.InvalidInput('--warm-up', 'below 0')
    runs = [_bounded(run, args) for run in _runs(args)]
    judged = [run for run in runs if run.purpose is not record.Purpose.AA]
    if not any(run.bounds for run in judged):
        raise exception.InvalidInput(
            ', '.join(run.benchmark for run in judged) or args.native,
            'no figure has a bound: give --bound METRIC=RATIO or --overhead '
            'PERCENT')
    made = verdict.judge(runs)
    others = tuple(_others(judged)) if args.all else ()
    if args.format == 'json':
        document = {'schema_version': record.SCHEMA_VERSION,
                    'verdict': made.word, **serialization.to_plain(made)}
        del document['word']
        if args.all:
            document['others'] = serialization.to_plain(others)
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        _print(made, others)
    return 0 if made.word is judgement.Word.PASS else 1


def _runs(args: argparse.Namespace) -> Iterable[record.Run]:
    expect = parse.expectations(args.expect)
    if args.guest is None:
        raw = output_files.read_raw(args.native)
        result = json_format.loads(raw.decode('utf-8', 'replace'),
                                   args.native)
        return result.runs
    native = output_files.collect(args.native, record.Arm.NATIVE,
                                  args.benchmark, expect)
    guest = output_files.collect(args.guest, record.Arm.GUEST, args.benchmark,
                                 expect)
    runs = list(_matched(native, guest, args))
    if args.aa is not None:
        again = output_files.collect(args.aa, record.Arm.NATIVE,
                                     args.benchmark, expect)
        runs += [dataclasses.replace(run, purpose=record.Purpose.AA)
                 for run in _matched(native, again, args)]
    return runs


def _matched(native: Iterable[output_files.ArmOutputs],
             guest: Iterable[output_files.ArmOutputs],
             args: argparse.Namespace) -> Iterable[record.Run]:
    others = {(side.benchmark, side.variant): side for side in guest}
    for side in native:
        other = others.pop((side.benchmark, side.variant), None)
        if other is None:
            raise exception.InvalidInput(
                side.benchmark, 'there are native outputs only')
        run = output_files.run_of(side, other, unpaired=args.unpaired,
                                  warm_ups=args.warm_up)
        yield dataclasses.replace(run, shape=args.shape)
    for name, _ in others:
        raise exception.InvalidInput(name, "there are the guest's outputs "
                                     'only')


def _bounded(run: record.Run, args: argparse.Namespace) -> record.Run:
    """Give a run its bounds: the user's, its own, or the definition's."""
    there = sample_pairs.metrics(run)
    found = dict(run.bounds) or _defaults(run, there, args)
    own = dict(bounds.parse(text) for text in args.bound)
    if args.overhead is not None:
        found = _overhead(run, args.overhead)
    if own:
        found = own if args.overhead is None else {**found, **own}
    return dataclasses.replace(run, bounds=found)


def _defaults(run: record.Run, there: Iterable[str],
              args: argparse.Namespace) -> dict[str, judgement.Bound]:
    made = catalogue.member(catalogue.output_source(run.benchmark),
                            _parameters(run))
    if made is None:
        return {}
    context = {'pages': args.pages, 'shape': run.shape, 'nodes': args.nodes}
    names = there or [figure.name for figure in made.metrics
                      if not figure.per_size]
    return bounds.of_definition(made, names, context)


def _overhead(run: record.Run, percent: str) -> dict[str, judgement.Bound]:
    known = catalogue.output_source(run.benchmark)
    made = catalogue.member(known, _parameters(run))
    primary = None if made is None else {
        figure.name for figure in made.metrics if figure.primary}
    figures = {name: metric for sample in run.samples
               for name, metric in sample.outcome.metrics.items()}
    return {name: bounds.of_overhead(percent, metric.direction)
            for name, metric in figures.items()
            if primary is None or bounds.split(name)[0] in primary}


def _parameters(run: record.Run) -> Mapping[str, str]:
    return next((sample.outcome.parameters for sample in run.samples
                 if sample.outcome.parameters), {})


def _others(judged: Iterable[record.Run]) -> Iterable[judgement.Judgement]:
    for run in judged:
        for one in verdict.describe(run):
            if one.metric not in run.bounds:
                yield one


def _print(made: judgement.Verdict,
           others: tuple[judgement.Judgement, ...]) -> None:
    rows = [_row(one) for one in made.judgements]
    rows += [(*_row(one)[:-1], '-') for one in others]
    sys.stdout.write(text_table.draw(
        ('Figure', 'Native', 'Guest', 'Unit', 'Ratio', '90 % interval',
         'Bound', 'Pairs', 'Verdict'), rows,
        {'Native', 'Guest', 'Ratio', 'Pairs'}, terminal.width()))
    said = dict.fromkeys(
        f'{one.label} {one.metric}: {text}.'
        for one in made.judgements
        for text in (one.reason, *one.remarks) if text)
    for line in said:
        print(line)
    print(f'{made.word}: {made.method}.')


def _row(one: judgement.Judgement) -> tuple[str, ...]:
    worse = '>=' if one.direction == 'up' else '<='
    interval = one.interval
    return (
        f'{one.label} {one.metric}',
        '-' if one.native is None else f'{one.native:.6g}',
        '-' if one.guest is None else f'{one.guest:.6g}',
        one.unit or '-',
        '-' if interval is None else f'{interval.ratio:.4f}',
        '-' if interval is None else
        f'{interval.low:.4f}..{interval.high:.4f}',
        '-' if one.limit is None else f'{worse} {one.limit:.4f}',
        str(one.pairs) if one.paired else 'unpaired',
        one.word + (' (suspect)' if one.suspect else ''),
    )

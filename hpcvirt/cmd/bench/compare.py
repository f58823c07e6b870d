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

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt.bench.analysis import bound_choice
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import looks
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.report import text as reports
from hpcvirt.bench.results import json_format
from hpcvirt.bench.results import output_files
from hpcvirt.cmd import terminal
from hpcvirt.cmd.bench import parse

_ABOUT = """\
Judge the outputs of a guest against native outputs. The ratio is always
guest / native; the direction of the metric says whether it is a loss.
"""

_EPILOG = """\
NATIVE and GUEST are directories of raw outputs (paired in natural order of the
file names), quoted shell patterns, or JSON: results of "bench run", or answers
of "bench parse" as a list or one on each line; one of them may be - for
standard input. A result that holds both arms is given alone. Answers of guests
may say "launch": ID, which launch of the guest wrote them. Status 0: PASS,
1: FAIL, INCONCLUSIVE or INVALID (the word is printed), 2: the outputs cannot
be compared.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        'compare', help='judge guest against native from outputs',
        description=_ABOUT, epilog=_EPILOG)
    verb.add_argument('native', metavar='NATIVE', help='native outputs, or '
                      'a result that holds both arms')
    verb.add_argument('guest', metavar='GUEST', nargs='?',
                      help='outputs of the guest, in the order of the pairs')
    verb.add_argument('--aa', metavar='NATIVE2', help='more native outputs, '
                      'in pairs with NATIVE: they show how noisy the machine '
                      'is')
    verb.add_argument('--benchmark', metavar='NAME',
                      help='the benchmark that wrote the raw outputs')
    verb.add_argument('--expect', metavar='KEY=VALUE', action='append',
                      default=[], help='as in "bench parse"')
    verb.add_argument('--bound', metavar='METRIC=RATIO', action='append',
                      default=[], help='the worst ratio that passes, instead '
                      'of the bounds of the benchmark; may be repeated')
    verb.add_argument('--overhead', metavar='PERCENT',
                      help='how much slower the guest may be in every '
                      'primary metric')
    verb.add_argument('--pages', choices=('small', 'large'),
                      help='page size of the guest and the application, which '
                      'selects the default bounds (default: that of the '
                      'result, or small)')
    verb.add_argument('--shape', default='', metavar='IxC',
                      help='instances x cores, 4x8 for example; selects '
                      'default bounds')
    verb.add_argument('--nodes', choices=('one', 'several'),
                      help='hosts that the run spans; selects default '
                      'bounds (default: those of the result, or one)')
    verb.add_argument('--warm-up', type=int, default=0, metavar='N',
                      help='outputs at the beginning of each arm that do not '
                      'count (default: 0)')
    verb.add_argument('--max-pairs', type=int, metavar='N',
                      help='judge growing outputs as often as you like, until '
                      'there are N pairs; say the same N each time')
    verb.add_argument('--this-launch', action='store_true',
                      help='judge the launch of the guest that was measured, '
                      'not its flavor')
    verb.add_argument('--unpaired', action='store_true',
                      help='the arms were not measured in turn on one host')
    verb.add_argument('--all', action='store_true',
                      help='also show the figures without a bound, which '
                      'do not count')
    verb.add_argument('--format', choices=('table', 'json'),
                      default='table', help='table (the default) or json')
    verb.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Judge and print."""
    if args.warm_up < 0:
        raise exception.InvalidInput('--warm-up', 'is below 0')
    if args.max_pairs is not None and (
            args.unpaired or args.max_pairs < sample_pairs.LEAST_PAIRS):
        raise exception.InvalidInput(
            '--max-pairs', 'must be at least '
            f'{sample_pairs.LEAST_PAIRS}, and is for pairs only')
    given = dict(bounds.parse(word) for word in args.bound)
    stated = {name: value for name in ('pages', 'shape', 'nodes')
              if (value := getattr(args, name))}
    runs = [bound_choice.with_bounds(run, given, args.overhead, stated)
            for run in _runs(args)]
    judged = [run for run in runs if run.purpose is not record.Purpose.AA]
    if not any(run.bounds for run in judged):
        raise exception.InvalidInput(
            ', '.join(run.benchmark for run in judged) or args.native,
            'no figure has a bound: give --bound METRIC=RATIO or --overhead '
            'PERCENT')
    found = verdict.judge(runs)
    others = tuple(_without_bound(judged)) if args.all else ()
    if args.format == 'json':
        document = {'schema_version': record.SCHEMA_VERSION,
                    'verdict': found.word, **serialization.to_plain(found),
                    'bounds': {run.label: serialization.to_plain(run.bounds)
                               for run in judged}}
        del document['word']
        if args.all:
            document['others'] = serialization.to_plain(others)
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        _print(found, others, judged)
    return 0 if found.word is judgement.Word.PASS else 1


def _runs(args: argparse.Namespace) -> Iterable[record.Run]:
    expect = parse.expectations(args.expect)
    if args.guest is None:
        raw = output_files.read_raw(args.native)
        result = json_format.loads(raw.decode('utf-8', 'replace'),
                                   args.native)
        return [dataclasses.replace(run, of_launch=args.this_launch)
                for run in result.runs]
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
    guest_outputs = {(outputs.benchmark, outputs.variant): outputs
                     for outputs in guest}
    for outputs in native:
        others = guest_outputs.pop((outputs.benchmark, outputs.variant), None)
        if others is None:
            raise exception.InvalidInput(
                outputs.benchmark, 'there are native outputs only')
        run = output_files.run_of(outputs, others, unpaired=args.unpaired,
                                  warm_ups=args.warm_up)
        run = dataclasses.replace(run, shape=args.shape,
                                  of_launch=args.this_launch)
        if args.max_pairs is not None:
            run = dataclasses.replace(run, planned_pairs=args.max_pairs,
                                      looks=looks.plan(args.max_pairs))
        yield run
    for name, _ in guest_outputs:
        raise exception.InvalidInput(
            name, 'there are outputs of the guest only')


def _without_bound(runs: Iterable[record.Run],
                   ) -> Iterable[judgement.Judgement]:
    for run in runs:
        for figure in verdict.describe(run):
            if figure.metric not in run.bounds:
                yield figure


def _print(found: judgement.Verdict,
           others: tuple[judgement.Judgement, ...],
           runs: Iterable[record.Run]) -> None:
    rows = [_row(figure) for figure in (*found.judgements, *others)]
    sys.stdout.write(text_table.draw(
        ('Figure', 'Native', 'Guest', 'Unit', 'Ratio', 'Interval',
         'Bound', 'Pairs', 'Verdict'), rows,
        {'Native', 'Guest', 'Ratio', 'Pairs'}, terminal.width()))
    notes = dict.fromkeys(
        f'{figure.label} {figure.metric}: {text}.'
        for figure in found.judgements
        for text in (figure.reason, *figure.remarks) if text)
    notes |= dict.fromkeys(
        f'{names}: bound {source}.' for names, source in reports.sources(
            (f'{run.label} {metric}', bound) for run in runs
            for metric, bound in run.bounds.items() if bound.kind))
    notes |= dict.fromkeys(f'Differs between the arms: {clause}.'
                           for clause in found.differences)
    said = found.method, found.scope
    sys.stdout.write(printable.lines(
        [*notes, f'{found.word}: {"; ".join(filter(None, said))}.']))


def _row(figure: judgement.Judgement) -> tuple[str, ...]:
    worse = '>=' if figure.direction == 'up' else '<='
    interval = figure.interval
    return (
        f'{figure.label} {figure.metric}',
        '-' if figure.native is None else f'{figure.native:.6g}',
        '-' if figure.guest is None else f'{figure.guest:.6g}',
        figure.unit or '-',
        '-' if interval is None else f'{interval.ratio:.4f}',
        '-' if interval is None else
        f'{interval.low:.4f}..{interval.high:.4f}',
        '-' if figure.limit is None else f'{worse} {figure.limit:.4f}',
        str(figure.pairs) if figure.paired else 'unpaired',
        (figure.word or '-') + (' (suspect)' if figure.suspect else ''),
    )

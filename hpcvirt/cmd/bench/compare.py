# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench parse`` and ``compare``: read and judge outputs."""

import argparse
import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.parsers import parser as parsers
from hpcvirt.bench.report import text as reports
from hpcvirt.bench.results import json_format
from hpcvirt.bench.results import output_files
from hpcvirt.bench.run import run_request as requests
from hpcvirt.cmd import command
from hpcvirt.cmd import output
from hpcvirt.cmd.bench import catalogue_arguments

_COMPARE_EPILOG = """\
NATIVE and GUEST are directories or quoted patterns of raw outputs, or JSON of
"bench run", of "bench parse" or of ReFrame; - is standard input. Status 0:
PASS, 1: FAIL, INCONCLUSIVE, INVALID or COMPARED, 2: they cannot be compared.
"""


_PARSE_EPILOG = """\
Status 0: the output is valid, 1: it is not, 2: it cannot be read (an unknown
benchmark, a missing file, an unknown key of --expect).
"""


class ParseOutput(command.Report):
    """Parse the output of a benchmark.

    Print its figures if it is valid, or else the reason why it is not.
    """

    epilog = _PARSE_EPILOG
    fields = ('benchmark', 'valid', 'reason', 'parameters', 'metrics')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'name', metavar='NAME',
            help='a benchmark of "bench list", or npb, osu, qe, namd or wrf')
        parser.add_argument(
            'file', metavar='FILE',
            help='the output, or - for standard input')
        parser.add_argument(
            '--expect', metavar='KEY=VALUE', action='append', default=[],
            help='a parameter of the run (N=1000, ranks=4, class=C, rc=2): an '
            'output with another value is invalid; "bench list" lists the '
            'keys; may be repeated')
        parser.add_argument(
            '--exit-status', metavar='N', type=int,
            help='exit status of the program, if known')
        catalogue_arguments.add(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Parse the output."""
        catalogue_arguments.choose(args)
        source = catalogue.output_source(args.name)
        expect = {**source.expect, **_read_expectations(args.expect)}
        raw = output_files.read_raw(args.file)
        outcome = parsers.parse(source.output_format, raw, expect,
                                args.exit_status)
        parsed = output_files.make_output(source.name, outcome)
        return command.CommandResult(serialization.dump(parsed),
                                     lambda: _draw_output(parsed),
                                     status=int(not outcome.valid))


def _read_expectations(words: Iterable[str]) -> dict[str, str]:
    return {setting.key: setting.value for setting
            in requests.read_settings(words, '--expect')}


def _draw_output(parsed: output_files.ParsedOutput) -> str:
    if not parsed.valid:
        return printable.lines(
            [f'{parsed.benchmark}: INVALID: {parsed.reason}'])
    echoed = ' '.join(f'{key}={value}'
                      for key, value in parsed.parameters.items())
    rows = [(name, f'{metric.value:.10g}', metric.unit, metric.direction)
            for name, metric in parsed.metrics.items()]
    return printable.lines([
        f'{parsed.benchmark}: valid ({echoed})']) + text_table.draw(
            ('Metric', 'Value', 'Unit', 'Better'), rows, {'Value'},
            output.width()) + printable.lines(
                f'Note: {remark}.' for remark in parsed.remarks)


class CompareOutputs(command.Report):
    """Judge the outputs of a guest against native outputs.

    The ratio is always guest / native. The direction of the metric says
    whether a ratio below 1 is a loss.
    """

    epilog = _COMPARE_EPILOG
    rows = 'judgements'
    fields = ('label', 'metric', 'native', 'guest', 'unit', 'limit', 'pairs',
              'result')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'native', metavar='NATIVE',
            help='native outputs, or a result with both sides')
        parser.add_argument(
            'guest', metavar='GUEST', nargs='?',
            help='outputs of the guest, in the order of the pairs')
        parser.add_argument(
            '--aa', metavar='NATIVE2',
            help='further native outputs, which show the noise')
        parser.add_argument(
            '--benchmark', metavar='NAME',
            help='the benchmark that wrote the raw outputs')
        parser.add_argument(
            '--expect', metavar='KEY=VALUE', action='append', default=[],
            help='as in "bench parse"')
        parser.add_argument(
            '--bound', metavar='METRIC=RATIO', action='append', default=[],
            help='the worst ratio that passes; may be repeated')
        parser.add_argument(
            '--overhead', metavar='PERCENT',
            help='how much slower the guest may be')
        parser.add_argument(
            '--page-class', choices=('small', 'large'), dest='pages',
            metavar='CLASS', help='small or large pages, which select default '
            'bounds (default: as the result says)')
        parser.add_argument(
            '--shape', default='', metavar='IxC',
            help='instances x cores, such as 4x8, which selects bounds')
        parser.add_argument(
            '--warm-up', type=int, default=0, metavar='N',
            help='the warm-ups at the beginning of each side (default: 0)')
        parser.add_argument(
            '--all', action='store_true',
            help='also print the figures without a bound')
        parser.add_argument(
            '--this-launch', action='store_true',
            help='judge only this launch of the guest, not its flavor')
        parser.add_argument(
            '--in-turn', action='store_true',
            help='the pairs were measured in turn on one host; without it, '
            'they are COMPARED, without PASS or FAIL')
        catalogue_arguments.add(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Judge the outputs."""
        catalogue_arguments.choose(args)
        if args.warm_up < 0:
            raise exception.InvalidInput('--warm-up', 'is below 0')
        given = dict(bounds.parse(word) for word in args.bound)
        stated = {name: value for name in ('pages', 'shape')
                  if (value := getattr(args, name))}
        runs = [bounds.set_bounds(run, given, args.overhead, stated)
                for run in _runs(args)]
        judged = [run for run in runs if run.purpose is not record.Purpose.AA]
        if not any(run.bounds for run in judged):
            raise exception.InvalidInput(
                ', '.join(run.benchmark for run in judged) or args.native,
                'no figure has a bound; give --bound METRIC=RATIO or '
                '--overhead PERCENT')
        found = verdict.judge(runs)
        others = tuple(_describe_others(judged)) if args.all else ()
        document = {'schema_version': record.SCHEMA_VERSION,
                    'verdict': found.result, **serialization.dump(found),
                    'bounds': {run.label: serialization.dump(run.bounds)
                               for run in judged}}
        del document['result']
        if args.all:
            document['others'] = serialization.dump(others)
        return command.CommandResult(
            document, lambda: _draw(found, others, judged),
            status=found.result.exit_status)


def _runs(args: argparse.Namespace) -> Iterable[record.Run]:
    expect = _read_expectations(args.expect)
    if args.guest is None:
        raw = output_files.read_raw(args.native)
        result = json_format.loads(raw.decode('utf-8', 'replace'),
                                   args.native)
        return [dataclasses.replace(run, of_launch=args.this_launch)
                for run in result.runs]
    native = output_files.collect(args.native, record.Side.NATIVE,
                                  args.benchmark, expect)
    guest = output_files.collect(args.guest, record.Side.GUEST, args.benchmark,
                                 expect)
    runs = list(_match_sides(native, guest, args, in_turn=args.in_turn))
    if args.aa is not None:
        again = output_files.collect(args.aa, record.Side.NATIVE,
                                     args.benchmark, expect)
        runs += [dataclasses.replace(run, purpose=record.Purpose.AA)
                 for run in _match_sides(native, again, args, in_turn=True)]
    return runs


def _match_sides(native: Iterable[output_files.SideOutputs],
                 guest: Iterable[output_files.SideOutputs],
                 args: argparse.Namespace, *,
                 in_turn: bool) -> Iterable[record.Run]:
    guest_outputs = {(outputs.benchmark, outputs.variant): outputs
                     for outputs in guest}
    for outputs in native:
        others = guest_outputs.pop((outputs.benchmark, outputs.variant), None)
        if others is None:
            raise exception.InvalidInput(
                outputs.benchmark, 'there are only native outputs')
        run = output_files.run_of(outputs, others, in_turn=in_turn,
                                  warm_ups=args.warm_up)
        run = dataclasses.replace(run, shape=args.shape,
                                  of_launch=args.this_launch)
        yield run
    for name, _ in guest_outputs:
        raise exception.InvalidInput(
            name, 'there are only outputs of the guest')


def _describe_others(runs: Iterable[record.Run],
                     ) -> Iterator[judgement.Judgement]:
    """Describe the figures without a bound."""
    for run in runs:
        for figure in verdict.describe(run):
            if figure.metric not in run.bounds:
                yield figure


def _list_bounds(runs: Iterable[record.Run],
                 ) -> Iterator[tuple[str, judgement.Bound]]:
    """List the bounds of a known kind, each with the name of its figure."""
    for run in runs:
        for metric, bound in run.bounds.items():
            if bound.kind:
                yield f'{run.label} {metric}', bound


def _list_remarks(runs: Iterable[record.Run]) -> Iterator[str]:
    for run in runs:
        for sample in run.samples:
            for remark in sample.outcome.remarks:
                yield f'{run.label}: {remark}.'


def _draw(found: judgement.Verdict,
          others: tuple[judgement.Judgement, ...],
          runs: Iterable[record.Run]) -> str:
    table = reports.draw_figures((*found.judgements, *others),
                                 width=output.width())
    pairs = max((figure.pairs for figure in found.judgements), default=0)
    notes = [f'{figures}: {note}.'
             for figures, note in reports.notes(found.judgements)]
    notes += [f'{names}: bound {source}.'
              for names, source in reports.sources(_list_bounds(runs))]
    notes += dict.fromkeys(_list_remarks(runs))
    notes += [f'Differs between the sides: {clause}.'
              for clause in found.differences]
    counted = f'{pairs} pairs; ' if pairs else ''
    notes += [f'Method: {counted}{found.method}.']
    if found.scope:
        notes.append(f'Scope: {found.scope}.')
    return table + printable.lines([*notes, f'{verdict.name_result(found)}.'])

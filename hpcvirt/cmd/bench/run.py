# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench run``: the one command that measures.

It takes benchmarks by their names, for guests that exist, or a document, whose
``kind`` says what is measured: :mod:`hpcvirt.cmd.bench.acceptance`,
:mod:`hpcvirt.cmd.bench.study`, :mod:`hpcvirt.cmd.bench.experiment`.
"""

import argparse
import dataclasses
import types

from hpcvirt import exception
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.model import record
from hpcvirt.bench.run import decidable
from hpcvirt.bench.run import run_request as requests
from hpcvirt.cmd import command
from hpcvirt.cmd import store_arguments
from hpcvirt.cmd.bench import catalogue_arguments
from hpcvirt.cmd.bench import documents
from hpcvirt.cmd.bench import guests
from hpcvirt.cmd.bench import runs
from hpcvirt.cmd.bench import targets

_EPILOG = f"""\
A TARGET is {targets.FORMS}.
Equal targets show the noise of the machine. Status 0: PASS (or valid without a
verdict), or the steps can be taken; 1: another verdict; 2: no measurement.
"""

_OTHERWISE = 'or --no-verdict to measure without a verdict'
_ADVICE = decidable.Advice(
    f'give --pairs {{}}, {_OTHERWISE}',
    f'give --bound METRIC=RATIO or --overhead PERCENT, {_OTHERWISE}')


@dataclasses.dataclass(frozen=True)
class _Form:
    """One of the ways in which the command is called.

    :ivar named: what is given, for errors
    :ivar options: the options that it takes, besides those of all forms
    :ivar rows: as :attr:`hpcvirt.cmd.command.Report.rows`
    :ivar formats: the formats that only it has
    """

    named: str
    options: tuple[str, ...]
    rows: str = 'runs'
    fields: tuple[str, ...] = ('id', 'benchmark', 'variant', 'host', 'shape',
                               'launch')
    formats: tuple[str, ...] = ()


_NAMES = _Form('benchmarks by name', (
    '--where', '--native', '--native-cpus', '--launch', '--this-launch',
    '--pairs', '--warm-ups', targets.SET, '--bound', '--overhead',
    '--no-verdict', '--shape'))
_STOP = _Form('--stop', ('--stop',))
#: Each kind of document, with the options that say what one call does with it.
_KINDS = {
    'acceptance': _Form(
        'an acceptance document', ('--apply', '--quick', '--repaired'),
        'parts', ('flavor', 'instances', 'result'), ('junit',)),
    'experiment': _Form(
        'an experiment document', ('--apply', '--check', '--restore'),
        'steps', ('stage', 'host', 'values')),
    'study': _Form('a study document', ('--apply',)),
}
_FORMS = (_NAMES, _STOP, *_KINDS.values())


class RunBenchmarks(command.Report):
    """Measure benchmarks, a host to accept, a case of a study, an experiment.

    Run benchmarks in a guest and natively, in interleaved pairs, and judge the
    guest; or do what a DOCUMENT says. If the run is interrupted, the same
    command continues it.
    """

    epilog = _EPILOG
    more_formats = _KINDS['acceptance'].formats

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        if isinstance(parser, command.CommandParser):
            parser.intermixed = True
        parser.add_argument(
            'what', nargs='*', metavar='NAME|DOCUMENT',
            help='benchmarks, or a .yaml and, to accept it, a HOST')
        parser.add_argument(
            '--where', action='append', metavar='TARGET',
            help='the guest; several are measured together')
        parser.add_argument(
            '--native', action='append', metavar='TARGET',
            help='the host, once or for each (without: no verdict)')
        parser.add_argument(
            '--native-cpus', action='append', metavar='LIST',
            help='the CPUs of native runs (default: as the guest)')
        parser.add_argument(
            '--launch', choices=('warm', 'cold', 'both'), metavar='STATE',
            help='warm (default), cold (a reboot before each), or both')
        parser.add_argument(
            '--this-launch', action='store_true',
            help='judge only this launch of the guest, not its flavor')
        parser.add_argument(
            '--pairs', type=command.whole_number(1, 1000), metavar='N',
            help='the pairs (default: as the bounds need, at least '
            f'{sample_pairs.MIN_PASS_PAIRS})')
        parser.add_argument(
            '--warm-ups', type=command.whole_number(0, 100), metavar='N',
            help='runs to discard first and after reboots (default: 1)')
        parser.add_argument(
            targets.SET, action='append', metavar='KEY=VALUE',
            help='a size, ranks, threads or a path of the benchmark')
        parser.add_argument(
            '--bound', action='append', metavar='METRIC=RATIO',
            help='the worst ratio guest / native that passes')
        parser.add_argument(
            '--overhead', metavar='PERCENT',
            help='how much slower the guest may be')
        parser.add_argument(
            '--no-verdict', action='store_true',
            help='measure although no verdict can follow')
        parser.add_argument(
            '--shape', metavar='IxC',
            help='instances x cores, such as 4x8, which selects bounds')
        parser.add_argument(
            '--stop', metavar='RESULT',
            help='stop a run of "bench report --unfinished"')
        parser.add_argument(
            '--apply', action='store_true',
            help='take the steps of a document; else they are printed')
        parser.add_argument(
            '--quick', action='store_true',
            help='only the quick gate of an acceptance, without a cloud')
        parser.add_argument(
            '--repaired', metavar='TEXT',
            help='what was repaired since the last acceptance')
        parser.add_argument(
            '--check', metavar='PROFILE',
            help='only compare a profile in the boots of an experiment')
        parser.add_argument(
            '--restore', action='store_true',
            help='only restore what a killed experiment left')
        targets.add_options(parser)
        store_arguments.add(parser)
        catalogue_arguments.add(parser)

    def choose(self, args: argparse.Namespace) -> None:
        """Find out what is given, and refuse the options of other forms."""
        self._document = None
        form = _NAMES
        if args.stop is not None:
            form = _STOP
        elif args.what and documents.is_document(args.what[0]):
            self._document = documents.read(args.what[0])
            form = _KINDS[self._document.kind]
        for word in args.what[1:]:
            if documents.is_document(word):
                raise exception.InvalidInput(
                    word, 'must be the first argument; it takes the place of '
                    'benchmarks')
        _check_options(args, form)
        self.rows, self.fields = form.rows, form.fields

    def answer(self, args: argparse.Namespace,
               ) -> command.CommandResult | None:
        """Measure, or stop a run."""
        catalogue_arguments.choose(args)
        if args.stop is not None:
            if args.what:
                raise exception.InvalidInput(args.what[0][:64],
                                             'contradicts --stop')
            return command.CommandResult([], str, runs.stop(args))
        if self._document is None:
            return _measure_names(args)
        result: command.CommandResult = _load(self._document.kind).answer(
            args, self._document)
        return result


def _load(kind: str) -> types.ModuleType:
    """Import what carries out documents of a kind, which takes a while."""
    if kind == 'acceptance':
        from hpcvirt.cmd.bench import acceptance
        return acceptance
    if kind == 'study':
        from hpcvirt.cmd.bench import study
        return study
    from hpcvirt.cmd.bench import experiment
    return experiment


def _check_options(args: argparse.Namespace, form: _Form) -> None:
    """Check that no option is given that belongs to other forms only."""
    known: list[str] = []
    for each in _FORMS:
        known += each.options
    for option in dict.fromkeys(known):
        value = getattr(args, option.removeprefix('--').replace('-', '_'))
        if option not in form.options and not (value is None
                                               or value is False):
            raise exception.InvalidInput(option, _say_owners(
                [each.named for each in _FORMS if option in each.options],
                form))
    for each in _FORMS:
        if args.formatter in each.formats and each is not form:
            raise exception.InvalidInput(f'--format {args.formatter}',
                                         _say_owners([each.named], form))


def _say_owners(owners: list[str], form: _Form) -> str:
    if form is _STOP:
        return 'contradicts --stop'
    if len(owners) == len(_KINDS):
        owners = ['documents']
    return f'is for {" or ".join(owners)}, not for {form.named}'


def _measure_names(args: argparse.Namespace) -> command.CommandResult:
    """Measure benchmarks that are given by their names."""
    if not args.what:
        raise exception.InvalidInput(
            'NAME', 'is missing; name benchmarks, or a document')
    if not args.where:
        raise exception.InvalidInput('--where', 'is missing')
    if args.no_verdict and (args.bound or args.overhead is not None):
        raise exception.InvalidInput(
            '--no-verdict', 'contradicts --bound and --overhead')
    own_bounds = dict(bounds.parse(word) for word in args.bound or ())
    settings = requests.read_settings(args.set or (), targets.SET)
    wanted = requests.find(args.what, settings, record.Launch.WARM)
    definitions = [request.definition for request in wanted]
    requests.check_used(definitions, settings, targets.SET)
    requests.check_bounds(definitions, own_bounds, '--bound')
    return guests.measure(args, guests.GuestRun(
        definitions=definitions, make_requests=lambda _: wanted,
        where=args.where, native=args.native or (),
        native_cpus=args.native_cpus or (), pairs=args.pairs,
        warm_ups=1 if args.warm_ups is None else args.warm_ups,
        launch=args.launch or '', of_launch=args.this_launch,
        shape=args.shape or '', bounds=own_bounds,
        overhead_percent=None if args.overhead is None
        else bounds.read_overhead(args.overhead),
        is_judged=not args.no_verdict, advice=_ADVICE,
        name=lambda key: '--' + key.replace('_', '-')))

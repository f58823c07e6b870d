# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench run``: measure a guest against native."""

import argparse
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import record
from hpcvirt.bench.report import prospects
from hpcvirt.bench.report import text
from hpcvirt.bench.run import decidable
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import sides
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.cmd.bench import catalogue_arguments
from hpcvirt.cmd.bench import progress
from hpcvirt.cmd.bench import runs
from hpcvirt.cmd.bench import store_arguments
from hpcvirt.cmd.bench import study_case
from hpcvirt.cmd.bench import targets
from hpcvirt.model import cpuset

_EPILOG = f"""\
A TARGET is {targets.FORMS}.
Equal targets show the noise of the machine. Without --native there is no
verdict. Status 0: PASS (or valid without a verdict), 1: FAIL, INCONCLUSIVE or
INVALID, 2: the measurement failed.
"""

_WHERE = '--where'
_NATIVE = '--native'
_STOP = '--stop'
_NATIVE_CPUS = '--native-cpus'
_NO_VERDICT = '--no-verdict'
_OTHERWISE = f'or {_NO_VERDICT} to measure without a verdict'
_ADVICE = decidable.Advice(
    f'give --pairs {{}}, {_OTHERWISE}',
    f'give --bound METRIC=RATIO or --overhead PERCENT, {_OTHERWISE}')


class RunBenchmarks(command.Report):
    """Measure a guest against native.

    Run benchmarks in a guest and natively, in interleaved pairs, and judge the
    guest. If the run is interrupted, the same command continues it.
    """

    epilog = _EPILOG
    rows = 'runs'
    fields = ('id', 'benchmark', 'variant', 'host', 'shape', 'launch')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'benchmarks', nargs='*', metavar='NAME[/VARIANT]',
            help='a benchmark of "hpcvirt bench list"')
        parser.add_argument(
            '--study', metavar='ID/CASE',
            help='take benchmarks, sizes and launch of a case')
        parser.add_argument(
            '--instead', metavar='NAME',
            help='a free benchmark in place of one of the case')
        parser.add_argument(
            _WHERE, action='append', default=[], metavar='TARGET',
            help='the guest; several guests are measured together')
        parser.add_argument(
            _NATIVE, action='append', metavar='TARGET',
            help='the host of the guest; once, or once for each guest')
        parser.add_argument(
            _NATIVE_CPUS, action='append', metavar='LIST',
            help='the CPUs of native runs (default: as the guest)')
        parser.add_argument(
            '--launch', choices=('warm', 'cold', 'both'),
            metavar='STATE', help='warm, in several boots with a warm-up '
            '(default); cold, rebooted before each sample; or both')
        parser.add_argument(
            '--this-launch', action='store_true',
            help='judge only this launch of the guest, not its flavor')
        parser.add_argument(
            '--pairs', type=command.whole_number(1, 1000), metavar='N',
            help='the pairs (default: as the bounds need, at least '
            f'{sample_pairs.MIN_PASS_PAIRS})')
        parser.add_argument(
            '--warm-ups', type=command.whole_number(0, 100), default=1,
            metavar='N',
            help='the runs to discard first and after each reboot (default: '
            '%(default)s)')
        parser.add_argument(
            targets.SET, action='append', default=[], metavar='KEY=VALUE',
            dest='settings',
            help='a size, ranks, threads or a path of the benchmark')
        parser.add_argument(
            '--bound', action='append', default=[], metavar='METRIC=RATIO',
            dest='bounds',
            help='the worst ratio guest / native that passes')
        parser.add_argument(
            '--overhead', metavar='PERCENT',
            help='how much slower the guest may be')
        parser.add_argument(
            _NO_VERDICT, action='store_true',
            help='measure although no verdict can follow')
        parser.add_argument(
            '--shape', default='', metavar='IxC',
            help='instances x cores, such as 4x8, which selects bounds')
        parser.add_argument(
            _STOP, metavar='RESULT',
            help='stop an unfinished run of "bench report --unfinished"')
        targets.add_options(parser)
        store_arguments.add(parser)
        catalogue_arguments.add(parser)

    def answer(self, args: argparse.Namespace,
               ) -> command.CommandResult | None:
        """Measure and judge the guest, or stop a run."""
        catalogue_arguments.choose(args)
        if args.stop is not None:
            return _stop(args)
        if not args.where:
            raise exception.InvalidInput(_WHERE, 'is missing')
        own_bounds = dict(bounds.parse(word) for word in args.bounds)
        settings = requests.read_settings(args.settings, targets.SET)
        case = study_case.read(args)
        wanted = () if case else requests.find(args.benchmarks, settings,
                                               record.Launch.WARM)
        definitions = case.definitions if case else [
            request.definition for request in wanted]
        requests.check_used(definitions, settings, targets.SET)
        requests.check_bounds(definitions, own_bounds)
        overhead = None
        if args.overhead is not None:
            overhead = bounds.read_overhead(args.overhead)
        is_judged = _needs_bounds(args)
        if is_judged and overhead is None:
            decidable.check_bounded(
                decidable.find_unbounded(definitions, own_bounds), _ADVICE)
        pairs = _pairs(args)
        if case:
            wanted = case.requests(sides.whole(pairs), settings)
        plan = plans.make(wanted, pairs, _purpose(args), args.pairs,
                          warm_ups=args.warm_ups, shape=args.shape,
                          launch=args.launch or '', of_launch=args.this_launch,
                          bounds=own_bounds, overhead_percent=overhead)
        if is_judged:
            decidable.check([planned.run for planned in plan.runs], _ADVICE)
        judged = verdict.judge_result(_measure(args, plan, pairs))
        status = verdict.exit_status(judged)
        if args.no_verdict and verdict.is_unbounded(judged):
            status = 0
        return command.CommandResult(
            serialization.dump(judged),
            lambda: text.table(judged, output.width() or 100),
            status=status)


def _stop(args: argparse.Namespace) -> command.CommandResult:
    for option, given in (('NAME', args.benchmarks), (_WHERE, args.where),
                          (_NATIVE, args.native), ('--study', args.study)):
        if given:
            raise exception.InvalidInput(option, f'contradicts {_STOP}')
    return command.CommandResult([], str, runs.stop(args))


def _needs_bounds(args: argparse.Namespace) -> bool:
    """Whether the run is to end in a verdict.

    :raises InvalidInput: if there is to be none, but a bound is given
    """
    if args.no_verdict and (args.bounds or args.overhead is not None):
        raise exception.InvalidInput(
            _NO_VERDICT, 'contradicts --bound and --overhead')
    return bool(args.native) and not args.no_verdict


def _purpose(args: argparse.Namespace) -> record.Purpose:
    if not args.native:
        return record.Purpose.UNPAIRED
    return (record.Purpose.AA if args.native == args.where
            else record.Purpose.COMPARE)


def _pairs(args: argparse.Namespace) -> tuple[sides.Pair, ...]:
    count = len(args.where)
    natives = _spread(_NATIVE, args.native or [], count)
    lists = _spread(_NATIVE_CPUS, args.native_cpus or [], count)
    if lists and not natives:
        raise exception.InvalidInput(_NATIVE_CPUS, f'needs {_NATIVE}')
    cpus = [cpuset.parse(words, _NATIVE_CPUS) for words in lists]
    guests, hosts = ([targets.find_named(args, word) for word in words]
                     for words in (args.where, natives))
    return sides.pair(guests, hosts, cpus)


def _spread(option: str, values: Sequence[str], count: int) -> list[str]:
    """Return a value for each guest; a single value is for all guests."""
    if len(values) == 1:
        return list(values) * count
    if values and len(values) != count:
        raise exception.InvalidInput(
            option, f'is given {len(values)} times; give it once, or once '
            f'for each --where ({count})')
    return list(values)


def _measure(args: argparse.Namespace, plan: plans.RunPlan,
             pairs: Sequence[sides.Pair]) -> record.Result:
    with extras.bench():
        from hpcvirt.bench.run import runner
    store = store_arguments.open_store(args)
    shown = progress.Terminal(args.data)
    for line in prospects.describe(plan):
        shown.planned(line)
    try:
        return store.result(runner.execute(
            plan, store, runner.read_versions('hpcvirt'), shown))
    except KeyboardInterrupt:
        shown.stop()
        where = ''
        if shown.result:
            where = ('; "hpcvirt bench report --unfinished" lists it, '
                     f'"hpcvirt bench run --stop {shown.result}" ends it')
        output.complain(
            'hpcvirt: interrupted; finished samples are kept, the current '
            'sample continues on its target unless that is a node of Slurm, '
            f'and the same command continues the run{where}')
        raise
    except exception.Unreachable as exc:
        raise exception.Unreachable(
            f'{exc}; finished samples are kept, and the same command '
            'continues the run') from exc
    finally:
        shown.stop()
        for pair in pairs:
            pair.close()
        store.close()

# SPDX-License-Identifier: Apache-2.0

"""Measure guests that exist, for benchmarks by name and cases of studies."""

import argparse
import dataclasses
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.model import judgement
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
from hpcvirt.cmd import store_arguments
from hpcvirt.cmd.bench import progress
from hpcvirt.cmd.bench import targets
from hpcvirt.model import cpuset


@dataclasses.dataclass(frozen=True, kw_only=True)
class GuestRun:
    """What is measured in guests that exist.

    :ivar definitions: the benchmarks
    :ivar make_requests: makes the requests for pairs of guests and natives
    :ivar where: the guests, as targets
    :ivar native: a target for all guests, or one for each; none for no
        comparison
    :ivar native_cpus: the CPUs of native runs, once or for each guest
    :ivar pairs: the number of pairs, None for as many as the bounds need
    :ivar is_judged: whether it is to end in a verdict
    :ivar advice: what to do if it cannot
    :ivar name: returns how the user gives ``where``, ``native`` or
        ``native_cpus``, for errors
    """

    definitions: Sequence[definitions.Definition]
    make_requests: Callable[[Sequence[sides.Pair]],
                            Sequence[requests.RunRequest]]
    where: Sequence[str]
    native: Sequence[str]
    native_cpus: Sequence[str]
    pairs: int | None
    warm_ups: int
    launch: str = ''
    of_launch: bool
    shape: str = ''
    bounds: Mapping[str, judgement.Bound]
    overhead_percent: float | None
    is_judged: bool
    advice: decidable.Advice
    name: Callable[[str], str]

    @property
    def needs_bounds(self) -> bool:
        """Whether it is to end in a verdict, and has a native side for it."""
        return bool(self.native) and self.is_judged


def check(wanted: GuestRun) -> None:
    """Check what can be checked before a machine is asked.

    :raises InvalidInput: if targets or CPUs do not belong together, or a
        bound is missing
    """
    if wanted.native_cpus and not wanted.native:
        raise exception.InvalidInput(wanted.name('native_cpus'),
                                     f'needs {wanted.name("native")}')
    for key in ('native', 'native_cpus'):
        _spread(wanted, key)
    for words in wanted.native_cpus:
        cpuset.parse(words, wanted.name('native_cpus'))
    if wanted.needs_bounds and wanted.overhead_percent is None:
        decidable.check_bounded(decidable.find_unbounded(
            wanted.definitions, wanted.bounds), wanted.advice)


def measure(args: argparse.Namespace, wanted: GuestRun,
            ) -> command.CommandResult:
    """Measure the guests, and judge them if there is a native side.

    :raises InvalidInput: before the first job, if no verdict can follow
    """
    check(wanted)
    pairs = _pair(args, wanted)
    plan = plans.make(
        wanted.make_requests(pairs), pairs, _find_purpose(wanted),
        wanted.pairs, warm_ups=wanted.warm_ups, shape=wanted.shape,
        launch=wanted.launch, of_launch=wanted.of_launch,
        bounds=wanted.bounds, overhead_percent=wanted.overhead_percent)
    if wanted.needs_bounds:
        decidable.check([planned.run for planned in plan.runs], wanted.advice)
    judged, status = judge(_execute(args, plan, pairs), wanted.is_judged)
    return command.CommandResult(
        serialization.dump(judged),
        lambda: text.table(judged, output.width() or 100), status=status)


def judge(measured: record.Result,
          is_judged: bool) -> tuple[record.Result, int]:
    """Judge what was measured, and return the exit status as well.

    :param is_judged: whether it was to end in a verdict
    """
    judged = verdict.judge_result(measured)
    if not is_judged and verdict.is_unbounded(judged):
        return judged, 0
    return judged, verdict.exit_status(judged)


def _find_purpose(wanted: GuestRun) -> record.Purpose:
    if not wanted.native:
        return record.Purpose.UNPAIRED
    return (record.Purpose.AA if [*wanted.native] == [*wanted.where]
            else record.Purpose.COMPARE)


def _pair(args: argparse.Namespace,
          wanted: GuestRun) -> tuple[sides.Pair, ...]:
    cpus = [cpuset.parse(words, wanted.name('native_cpus'))
            for words in _spread(wanted, 'native_cpus')]
    guests, hosts = ([targets.find_named(args, word) for word in words]
                     for words in (wanted.where, _spread(wanted, 'native')))
    return sides.pair(guests, hosts, cpus)


def _spread(wanted: GuestRun, key: str) -> list[str]:
    """Return a value for each guest; a single value is for all guests."""
    count, values = len(wanted.where), getattr(wanted, key)
    if len(values) == 1:
        return list(values) * count
    if values and len(values) != count:
        raise exception.InvalidInput(
            wanted.name(key), f'is given {len(values)} times; give it once, '
            f'or once for each guest ({count})')
    return list(values)


def _execute(args: argparse.Namespace, plan: plans.RunPlan,
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

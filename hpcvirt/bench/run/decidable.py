# SPDX-License-Identifier: Apache-2.0

"""Refuse to begin a measurement that can pass nothing.

All commands that measure for a verdict ask here before their first job, and
before they start instances.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.analysis import bounds as all_bounds
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import record
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import run_request as requests


@dataclasses.dataclass(frozen=True)
class Advice:
    """What to do about a refusal, in the words of the command.

    :ivar pairs: gives enough pairs, whose number replaces ``{}``
    :ivar bound: gives a bound to a benchmark without one
    :ivar launch: asks about the current launch alone
    """

    pairs: str
    bound: str
    launch: str = 'give --this-launch'


@dataclasses.dataclass(frozen=True)
class Instances:
    """Equal instances that are measured together, before they exist.

    :ivar hosts: the host of each
    :ivar cpus: VCPUs of each
    """

    flavor: str
    cpus: int
    hosts: Sequence[str]


def foresee(wanted: Sequence[requests.RunRequest],
            groups: Iterable[Instances], purpose: record.Purpose, pairs: int,
            bounds: Mapping[str, judgement.Bound] | None = None,
            overhead_percent: float | None = None,
            ) -> tuple[record.Run, ...]:
    """Foresee the runs in instances, as far as a verdict depends on them.

    :param groups: all that are judged together, measured one after the other
    :param pairs: number of pairs, or of samples of an unpaired run
    :param bounds: bounds of the user
    :param overhead_percent: how much slower guests may be in other metrics
    :raises InvalidInput: if more pairs are needed than are usual
    """
    runs = []
    for group in groups:
        for request in wanted:
            definition = request.definition
            fixed = {name: size.value for name, size in definition.size.items()
                     if size.rule is sizing.SizeRule.FIXED}
            runs.append(record.Run(
                id='', benchmark=definition.name,
                variant=request.variant.name,
                samples=(), purpose=purpose,
                host=', '.join(dict.fromkeys(group.hosts)),
                shape=plans.name_shape(
                    request, len(group.hosts),
                    f'{len(group.hosts)}x{group.cpus}', group.flavor),
                parameters={**fixed, **request.settings},
                bounds=bounds or {}, overhead_percent=overhead_percent,
                launch=request.launch,
                relaunched=request.launch is not record.Launch.COLD))
    return plans.set_counts(runs, pairs)


def check(runs: Sequence[record.Run], advice: Advice) -> None:
    """Check that each run can pass.

    :param runs: all that are judged together, without samples; an unpaired run
        is judged against the class of its host
    :raises InvalidInput: if one cannot
    """
    # A default bound may be for other conditions.
    check_bounded([run.benchmark for run in runs
                   if not all_bounds.foresee(run)], advice)
    for run in runs:
        if run.purpose is record.Purpose.COMPARE:
            _check_compared(run, advice)
        elif run.purpose is record.Purpose.UNPAIRED:
            _check_count(run, 'samples pass no host', sample_pairs.MIN_PAIRS,
                         advice)


def _check_compared(run: record.Run, advice: Advice) -> None:
    has_boots = run.relaunched or run.launch is record.Launch.COLD
    if not has_boots and not run.of_launch:
        raise exception.InvalidInput(
            run.label, 'the guest cannot be rebooted, and one boot says '
            'nothing about the next one; name the guest as server:NAME, '
            f'or {advice.launch} to ask about this boot alone')
    _check_count(run, 'pairs pass no guest', plans.find_least(run), advice)


def _check_count(run: record.Run, what: str, least: int,
                 advice: Advice) -> None:
    if run.planned_pairs < least:
        raise exception.InvalidInput(
            run.label, f'{run.planned_pairs} {what}; '
            + advice.pairs.format(least))


def check_bounded(unbounded: Iterable[str], advice: Advice) -> None:
    """Check that no benchmark lacks a bound.

    :param unbounded: the names of those without one
    :raises InvalidInput: if there is any
    """
    names = ', '.join(dict.fromkeys(unbounded))
    if names:
        raise exception.InvalidInput(
            names, f'no figure has a bound; {advice.bound}')


def find_unbounded(benchmarks: Iterable[definitions.Definition],
                   metrics: Iterable[str]) -> list[str]:
    """Find the benchmarks that have no default bound, nor one of the user.

    :param metrics: the metrics that the user gives bounds for
    """
    given = {metric_definition.split(metric)[0] for metric in metrics}
    return [definition.name for definition in benchmarks
            if not definition.bounds and given.isdisjoint(
                figure.name for figure in definition.metrics)]

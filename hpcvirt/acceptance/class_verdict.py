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

"""Judge a host against its class, from the results in a store.

The fellows of a host are the other hosts on which the same was measured: the
same benchmark with the same settings and binaries, in as many guests of the
same flavor, with the same CPU model and the same software. Of each fellow the
last run counts, with its guest samples. A fellow that was not accepted does
not count.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.acceptance import host_class
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import figures
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import trends
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

Word = judgement.Word

#: How much slower than its class a host may be, unless the user says
#: otherwise: less is not called behind in reports either.
_ALLOWED = f'{trends.LEAST_CHANGE:%}'

METHOD = ("Ratio host / class; prediction intervals of Student's t from the "
          'levels of the fellows, at most 5 % false PASS and 5 % false FAIL, '
          'Holm over all figures')

#: What fellows may differ in: what their firmware brings.
_MAY_DIFFER = ('cpu.microcode', 'mitigation.')


@dataclasses.dataclass(frozen=True)
class _Figure:
    """A figure with its judgement, or with what decides it."""

    judgement: judgement.Judgement
    comparison: host_class.Comparison | None = None
    limit: float = 0.0


def judge(runs: Iterable[record.Run], stored: Sequence[record.Run],
          refused: Collection[str] = ()) -> judgement.Verdict:
    """Judge the runs on a host against those on its fellows.

    :param runs: those on the host, unpaired
    :param stored: all runs of the store
    :param refused: hosts that do not count
    """
    pending = [figure for run in runs
               for figure in _figures(run, fellows(run, stored, refused))]
    compared = [(figure.comparison.estimate, figure.limit)
                for figure in pending if figure.comparison is not None]
    adjusted = zip(
        stats.holm([estimate.p_beyond(limit)
                    for estimate, limit in compared]),
        stats.holm([estimate.p_within(limit)
                    for estimate, limit in compared]), strict=True)
    found = verdict.verdict_of(tuple(
        figure.judgement if figure.comparison is None
        else _decide(figure.judgement, *next(adjusted))
        for figure in pending))
    return dataclasses.replace(found, method=METHOD, scope='')


def fellows(run: record.Run, stored: Iterable[record.Run],
            refused: Collection[str] = ()) -> tuple[record.Run, ...]:
    """Find the last run on each fellow of a host."""
    wanted = _alike(run)
    found: dict[str, record.Run] = {}
    for other in stored:
        if (other.host in (run.host, '') or other.host in refused
                or other.purpose is record.Purpose.AA
                or _alike(other) != wanted
                or sample_pairs.invalid(other) is not None
                or len(_counted(other)) < sample_pairs.LEAST_PAIRS):
            continue
        before = found.get(other.host)
        if before is None or before.started_at <= other.started_at:
            found[other.host] = other
    return tuple(found[host] for host in sorted(found))


def _alike(run: record.Run) -> tuple[object, ...]:
    """What is equal for the runs on all hosts of a class."""
    identity = {
        name: value for name, value in run.identity.items()
        if not name.startswith(f'{record.Arm.NATIVE} ')
        and not name.partition(' ')[2].startswith(_MAY_DIFFER)}
    return (run.benchmark, run.variant, run.shape, run.launch,
            dict(run.parameters), identity)


def _counted(run: record.Run) -> list[record.Sample]:
    return [sample for sample in run.samples
            if sample.arm is record.Arm.GUEST and not sample.warm_up]


def _figures(run: record.Run,
             others: Sequence[record.Run]) -> list[_Figure]:
    wanted = _bounds(run)
    why, word = sample_pairs.invalid(run), Word.INVALID
    count = len(_counted(run))
    if why is None and count < run.planned_pairs:
        why = f'only {count} of the {run.planned_pairs} planned samples exist'
        word = Word.INCONCLUSIVE
    if why is None and count < sample_pairs.LEAST_PAIRS:
        why = (f'{count} samples, at least {sample_pairs.LEAST_PAIRS} are '
               'needed')
        word = Word.INCONCLUSIVE
    if why is not None:
        return [_Figure(_judgement(run, metric, word, why))
                for metric in wanted or ('all figures',)]
    measured = sample_pairs.metrics(run)
    return [_figure(run, metric, bound, others) if metric in measured
            else _Figure(_judgement(run, metric, Word.INCONCLUSIVE,
                                    'not measured in every sample'))
            for metric, bound in wanted.items()]


def _bounds(run: record.Run) -> Mapping[str, judgement.Bound]:
    """Find the bounds: the user's, else the same for all primary figures."""
    directions = {name: figure.direction for sample in run.samples
                  for name, figure in sample.outcome.metrics.items()}
    return {**{metric: bounds.of_overhead(_ALLOWED, directions[metric])
               for metric in bounds.of_run(run)}, **run.bounds}


def _figure(run: record.Run, metric: str, bound: judgement.Bound,
            others: Sequence[record.Run]) -> _Figure:
    known = [other for other in others
             if metric in sample_pairs.metrics(other)]
    blank = _judgement(run, metric, Word.INCONCLUSIVE, None)
    direction = blank.direction
    own = _level(run, metric, direction)
    limit = bound.limit(direction)
    blank = dataclasses.replace(
        blank, limit=limit, pairs=len(_counted(run)),
        guest=stats.ratio_of_loss(own.loss, direction))
    compared = host_class.compare(
        own, [_level(other, metric, direction) for other in known])
    if compared is None:
        return _Figure(dataclasses.replace(
            blank, reason=f'{len(known)} fellows are known, at least '
            f'{host_class.LEAST_FELLOWS} are needed: measure more hosts of '
            'its class, or measure against native'))
    remark = f'against {", ".join(compared.fellows)}'
    if compared.left_out:
        remark += (f', without {", ".join(compared.left_out)}, far from the '
                   'others')
    return _Figure(dataclasses.replace(
        blank, native=stats.ratio_of_loss(compared.class_loss, direction),
        interval=figures.interval(compared.estimate, direction),
        remarks=(remark,)), compared,
        stats.loss_of_ratio(limit, direction))


def _level(run: record.Run, metric: str,
           direction: outcome.Direction) -> host_class.Level:
    return host_class.level(run.host, [
        stats.loss_of_ratio(sample.outcome.metrics[metric].value, direction)
        for sample in _counted(run)])


def _judgement(run: record.Run, metric: str, word: Word,
               reason: str | None) -> judgement.Judgement:
    figure = next((sample.outcome.metrics[metric] for sample in run.samples
                   if metric in sample.outcome.metrics), None)
    return judgement.Judgement(
        label=run.label, metric=metric, unit=figure.unit if figure else '',
        direction=figure.direction if figure else outcome.Direction.UP,
        word=word, reason=reason, limit=None, interval=None, pairs=0,
        paired=False)


def _decide(figure: judgement.Judgement, p_pass: float,
            p_fail: float) -> judgement.Judgement:
    word, reason = Word.INCONCLUSIVE, (
        'the interval includes the bound: the hosts of the class differ too '
        'much, or are too few')
    if p_pass <= stats.ALPHA:
        word, reason = Word.PASS, ''
    elif p_fail <= stats.ALPHA:
        word = Word.FAIL
        reason = 'the host is slower than its class, beyond the bound'
    return dataclasses.replace(figure, word=word, reason=reason or None,
                               p_pass=p_pass, p_fail=p_fail)

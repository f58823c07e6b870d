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

"""PASS, FAIL, INCONCLUSIVE or INVALID, and nothing in between.

PASS: the worse end of the interval of the ratio is within the bound. FAIL:
its better end is beyond it. INCONCLUSIVE: neither, or too few pairs, or a
machine that cannot tell. INVALID: a run failed its own check.

What is judged together is judged by Holm, each way by itself: the chance of
even one false PASS among all figures is at most 5 %, and so is the chance of
even one false FAIL. With a single figure that is the rule above.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

#: The largest chance of a false PASS, and of a false FAIL.
ALPHA = 1 - stats.LEVEL

METHOD = ('Ratio guest / native; log ratios of pairs, one-sided 95 % t '
          'intervals (90 % two-sided), Holm over all figures, each way')
UNPAIRED = ("; unpaired: Welch's intervals, the arms were not measured in "
            'turn on one host')

Word = judgement.Word


@dataclasses.dataclass(frozen=True)
class _Case:
    """One figure on its way to a judgement."""

    judgement: judgement.Judgement
    estimate: stats.Estimate | None = None
    limit: float = 0.0
    machine: stats.Estimate | None = None


def judge(runs: Sequence[record.Run]) -> judgement.Verdict:
    """Judge everything that was run, together.

    :param runs: A/A runs among them say what the machine can decide for the
        runs of the same benchmark, variant and host
    :returns: one judgement per run and metric that has a bound
    :raises InvalidInput: for a run that has a sample twice
    """
    machines = [run for run in runs if run.purpose is record.Purpose.AA]
    cases: list[_Case] = []
    for run in runs:
        if run.purpose is not record.Purpose.AA:
            cases.extend(_cases(run, machines))
    return verdict_of(tuple(_settle(cases)))


def verdict_of(judgements: tuple[judgement.Judgement, ...]
               ) -> judgement.Verdict:
    """Sum up judgements in one word."""
    words = [made.word for made in judgements]
    method = METHOD
    if not all(made.paired for made in judgements):
        method += UNPAIRED
    for word in (Word.INVALID, Word.FAIL, Word.INCONCLUSIVE):
        if word in words:
            first = judgements[words.index(word)]
            reason = f'{first.label} {first.metric}: {first.reason}'
            return judgement.Verdict(word, reason, judgements, method)
    if not words:
        return judgement.Verdict(Word.INCONCLUSIVE, 'no figure has a bound',
                                 (), method)
    return judgement.Verdict(Word.PASS, _doubt(judgements), judgements,
                             method)


def _doubt(judgements: Iterable[judgement.Judgement]) -> str | None:
    for made in judgements:
        if made.suspect:
            return f'{made.label} {made.metric}: {made.reason}'
    return None


def describe(run: record.Run) -> tuple[judgement.Judgement, ...]:
    """Every metric of a run with its interval, judged or not.

    What has a bound is judged by itself, without Holm; what has none is
    INCONCLUSIVE for that reason.
    """
    if sample_pairs.invalid(run) is not None:
        return ()
    made: list[judgement.Judgement] = []
    for metric in sample_pairs.metrics(run):
        case = _case(run, metric, run.bounds.get(metric), ())
        made.extend(_settle([case]))
    return tuple(made)


def _cases(run: record.Run,
           machines: Iterable[record.Run]) -> list[_Case]:
    why = sample_pairs.invalid(run)
    if why is not None:
        return [_Case(_blank(run, metric, Word.INVALID, why))
                for metric in run.bounds or ('all figures',)]
    there = sample_pairs.metrics(run)
    return [_case(run, metric, bound, machines) if metric in there
            else _Case(_blank(run, metric, Word.INCONCLUSIVE,
                              'not measured in every sample'))
            for metric, bound in run.bounds.items()]


def _case(run: record.Run, metric: str, bound: judgement.Bound | None,
          machines: Iterable[record.Run]) -> _Case:
    found = sample_pairs.values(run, metric)
    blank = _blank(run, metric, Word.INCONCLUSIVE, None)
    few = sample_pairs.too_few(run, found)
    if few is not None:
        return _Case(dataclasses.replace(
            blank, reason=few, pairs=len(found.pairs),
            native=_middle(found.native), guest=_middle(found.guest)))
    direction = blank.direction
    dropped: tuple[int, ...] = ()
    kept = found
    if found.pairs:
        losses = _losses(found, direction)
        out = stats.disturbed(losses)
        dropped = tuple(found.pairs[index] for index in out)
        kept = _without(found, out)
        estimate = stats.paired(_losses(kept, direction))
    else:
        estimate = stats.unpaired(found.native, found.guest, direction)
    limit = None if bound is None else bound.limit(direction)
    made = dataclasses.replace(
        blank, limit=limit, pairs=len(kept.pairs), dropped=dropped,
        interval=_interval(estimate, direction),
        native=_middle(kept.native), guest=_middle(kept.guest),
        native_cv=_cv(kept.native), guest_cv=_cv(kept.guest),
        remarks=tuple(_remarks(kept, dropped, estimate)))
    if limit is None:
        return _Case(dataclasses.replace(made, reason='no bound'))
    return _Case(made, estimate, stats.loss_of_ratio(limit, direction),
                 _machine(run, metric, machines, direction))


def _settle(cases: Sequence[_Case]) -> list[judgement.Judgement]:
    """Give every case its word; the open ones by Holm, each way."""
    open_cases = [case for case in cases if case.estimate is not None]
    alone = [stats.p_beyond(case.estimate, case.limit)
             for case in open_cases if case.estimate is not None]
    together = zip(stats.holm(alone), stats.holm([1 - p for p in alone]),
                   alone, strict=True)
    settled = []
    for case in cases:
        if case.estimate is None:
            settled.append(case.judgement)
        else:
            p_pass, p_fail, p_alone = next(together)
            settled.append(_word(case, case.estimate, p_pass, p_fail,
                                 p_alone))
    return settled


def _word(case: _Case, estimate: stats.Estimate, p_pass: float,
          p_fail: float, p_alone: float) -> judgement.Judgement:
    low, high = stats.ends(estimate)
    suspect = high < -stats.EQUAL
    word = Word.INCONCLUSIVE
    reason: str | None = 'the interval reaches across the bound'
    if p_pass <= ALPHA:
        word, reason = Word.PASS, None
        if suspect:
            reason = ('suspect: the guest is faster than native beyond the '
                      'interval; look for what slowed native down')
    elif p_fail <= ALPHA:
        word, reason = Word.FAIL, 'the loss is beyond the bound'
    elif min(p_alone, 1 - p_alone) <= ALPHA:
        reason = ('decided if it stood alone, not among all the figures '
                  'judged together (Holm)')
    made = dataclasses.replace(case.judgement, word=word, reason=reason,
                               suspect=suspect, p_pass=p_pass, p_fail=p_fail)
    if case.machine is None:
        return made
    return _as_machine_allows(made, case.machine, case.limit, low)


def _as_machine_allows(made: judgement.Judgement, machine: stats.Estimate,
                       limit: float, low: float) -> judgement.Judgement:
    """Take a word back that native against native would have got as well.

    :param low: the better end of the guest's loss
    """
    least, most = stats.ends(machine)
    noise = max(abs(least), abs(most))
    made = dataclasses.replace(
        made, machine=_interval(machine, made.direction))
    if noise <= abs(limit) + stats.EQUAL:
        return made
    if made.word is Word.FAIL and low > noise:
        return made
    if made.word is Word.INCONCLUSIVE:
        return dataclasses.replace(
            made, reason=f'{made.reason}; native against native reaches '
            'beyond it too: this machine cannot decide')
    return dataclasses.replace(
        made, word=Word.INCONCLUSIVE,
        reason='native against native reaches beyond the bound: this '
        'machine cannot decide')


def _machine(run: record.Run, metric: str, machines: Iterable[record.Run],
             direction: outcome.Direction) -> stats.Estimate | None:
    """What the machine does to itself, if that was measured well enough."""
    for machine in machines:
        if (machine.benchmark, machine.variant, machine.host) != (
                run.benchmark, run.variant, run.host):
            continue
        if sample_pairs.invalid(machine) or metric not in sample_pairs.metrics(machine):
            continue
        found = sample_pairs.values(machine, metric)
        if sample_pairs.too_few(machine, found) is None:
            return stats.paired(_losses(found, direction))
    return None


def _blank(run: record.Run, metric: str, word: Word,
           reason: str | None) -> judgement.Judgement:
    figure = next((sample.outcome.metrics[metric] for sample in run.samples
                   if metric in sample.outcome.metrics), None)
    return judgement.Judgement(
        label=run.label, metric=metric,
        unit=figure.unit if figure else '',
        direction=figure.direction if figure else outcome.Direction.UP,
        word=word, reason=reason, limit=None, interval=None, pairs=0,
        paired=run.purpose is not record.Purpose.UNPAIRED)


def _remarks(kept: sample_pairs.Values, dropped: tuple[int, ...],
             estimate: stats.Estimate) -> Iterable[str]:
    if dropped:
        yield (f'{len(dropped)} of {len(kept.pairs) + len(dropped)} pairs set '
               'aside: native was disturbed')
    for name, arm in (('native', kept.native), ('guest', kept.guest)):
        if len(set(arm)) == 1:
            yield (f'all {name} values are equal: a coarse clock, or one '
                   'output many times')
    if estimate.error == 0:
        yield 'no variation at all: the interval is a point'


def _losses(found: sample_pairs.Values,
            direction: outcome.Direction) -> list[float]:
    return [stats.loss(native, guest, direction) for native, guest
            in zip(found.native, found.guest, strict=True)]


def _without(found: sample_pairs.Values, out: Sequence[int]) -> sample_pairs.Values:
    stay = [index for index in range(len(found.pairs)) if index not in out]
    return sample_pairs.Values(tuple(found.native[index] for index in stay),
                               tuple(found.guest[index] for index in stay),
                               tuple(found.pairs[index] for index in stay))


def _interval(estimate: stats.Estimate,
              direction: outcome.Direction) -> judgement.Interval:
    low, high = sorted(stats.ratio_of_loss(end, direction)
                       for end in stats.ends(estimate))
    return judgement.Interval(stats.ratio_of_loss(estimate.mean, direction),
                              low, high, stats.LEVEL)


def _middle(arm: Sequence[float]) -> float | None:
    """Geometric mean, None of nothing."""
    if not arm:
        return None
    return math.exp(statistics.fmean(math.log(value) for value in arm))


def _cv(arm: Sequence[float]) -> float:
    """Coefficient of variation, from logarithms."""
    return statistics.stdev(math.log(value) for value in arm)

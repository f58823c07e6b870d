# SPDX-License-Identifier: Apache-2.0

"""Decide PASS, FAIL, INCONCLUSIVE or INVALID.

PASS
    The worse end of the interval of the ratio is within the bound, for a
    typical run and for the mean time, and the guest has no more stragglers
    than native.
FAIL
    The better end of the interval is beyond the bound, or the guest clearly
    has more stragglers.
INCONCLUSIVE
    Neither holds, there are too few pairs or launches, or the machine cannot
    resolve the difference.
INVALID
    A sample failed its own check, or the figures are no evidence.
COMPARED
    The sides were not measured in turn. Two sessions of one machine may differ
    by as much as a bound, so that nothing is promised about the guest.

:mod:`hpcvirt.bench.analysis.figure_verdict` decides a single figure. Figures
that are judged together are corrected by Holm's method, separately for PASS
and FAIL: the chance of even one false PASS among all figures is at most 5 %,
and so is the chance of even one false FAIL.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import confounders
from hpcvirt.bench.analysis import figure_verdict
from hpcvirt.bench.analysis import figures
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record

METHOD = ('signed-rank intervals of the log ratios of pairs, at most 5 % '
          'false PASS and 5 % false FAIL (Holm over all figures)')
UNPAIRED = "Welch's intervals of unpaired runs, without a promise"

Decide = Callable[[figures.Figure, stats.Estimate, float, float, float],
                  judgement.Judgement]


def judge_result(result: record.Result) -> record.Result:
    """Add its bounds and its verdict to a stored result.

    Bounds of the user take precedence over those of the definition. If all
    runs are A/A runs, their second side is judged like a guest, which shows
    what differences the machine can resolve.

    :raises InvalidInput: if a run has a sample twice or an unknown benchmark
    """
    runs = tuple(
        dataclasses.replace(run,
                            bounds={**bounds.find_bounds(run), **run.bounds})
        for run in result.runs)
    judged = runs
    if all(run.purpose is record.Purpose.AA for run in runs):
        judged = tuple(dataclasses.replace(
            run, purpose=record.Purpose.COMPARE) for run in runs)
    found = judge(judged)
    if judged is not runs:
        found = dataclasses.replace(found, scope='')
    return dataclasses.replace(result, runs=runs, verdict=found)


def exit_status(result: record.Result) -> int:
    """Return the exit status of a judged result.

    :returns: 0 for PASS, and for unpaired samples without a verdict if all
        are valid; otherwise 1
    """
    if result.runs and all(run.purpose is record.Purpose.UNPAIRED
                           for run in result.runs):
        return 0 if _is_valid(result) else 1
    return result.verdict.result.exit_status if result.verdict else 1


def is_unbounded(result: record.Result) -> bool:
    """Whether a judged result is good, but no figure of it has a bound."""
    is_bounded = any(run.bounds for run in result.runs)
    is_invalid = result.verdict is not None and (
        result.verdict.result is judgement.VerdictResult.INVALID)
    return _is_valid(result) and not is_bounded and not is_invalid


def _is_valid(result: record.Result) -> bool:
    samples = itertools.chain.from_iterable(
        run.samples for run in result.runs)
    return all(sample.outcome.valid for sample in samples)


def judge(runs: Sequence[record.Run], *,
          tell: bool = True) -> judgement.Verdict:
    """Judge all runs together.

    :param runs: A/A runs among them show what the machine can resolve for runs
        of the same benchmark, variant and host
    :param tell: whether to remark how earlier attempts on each subject ended
    :returns: one judgement per run and metric that has a bound
    :raises InvalidInput: if a run has a sample twice
    """
    machines = [run for run in runs if run.purpose is record.Purpose.AA]
    judged = [run for run in runs if run.purpose is not record.Purpose.AA]
    together = figures.count(judged)
    pending = [figures.estimate_run(run, machines, together)
               for run in judged]
    settled = iter(settle(itertools.chain.from_iterable(pending)))
    judgements: list[judgement.Judgement] = []
    for run, found in zip(judged, pending, strict=True):
        of_run = list(itertools.islice(settled, len(found)))
        judgements += _after_attempts(run, of_run, tell=tell)
    return dataclasses.replace(
        verdict_of(tuple(judgements)),
        differences=confounders.format_differences(judged))


def verdict_of(judgements: tuple[judgement.Judgement, ...]
               ) -> judgement.Verdict:
    """Summarize judgements in one verdict."""
    method = METHOD
    if not all(figure.paired for figure in judgements):
        method = UNPAIRED
    scope = _scope(judgements)
    for word in (judgement.VerdictResult.INVALID,
                 judgement.VerdictResult.FAIL,
                 judgement.VerdictResult.INCONCLUSIVE,
                 judgement.VerdictResult.COMPARED):
        for figure in judgements:
            if figure.result is word:
                return judgement.Verdict(word, _reason(figure), judgements,
                                         method, scope)
    if not judgements:
        return judgement.Verdict(judgement.VerdictResult.INCONCLUSIVE,
                                 'no figure has a bound', (), method)
    doubt = next((_reason(figure) for figure in judgements if figure.suspect),
                 None)
    return judgement.Verdict(judgement.VerdictResult.PASS, doubt, judgements,
                             method, scope)


def _scope(judgements: Sequence[judgement.Judgement]) -> str:
    """Describe which launches of the guest the verdict is about."""
    estimated = [figure for figure in judgements
                 if figure.interval and figure.paired]
    if not estimated:
        return ''
    launches = min(figure.launches for figure in estimated)
    if launches:
        scope = ('it speaks of the launches of the guest; '
                 f'{launches} were measured')
    elif all(figure.boots == 1 for figure in estimated):
        scope = ('it speaks of this boot of the guest alone, and the next '
                 'boot may differ')
    else:
        scope = ('it speaks of the launches of the guest that were measured, '
                 'and not of the next one')
    return scope


def name_result(found: judgement.Verdict) -> str:
    """Name a verdict; a PASS says for which part of all runs it holds.

    The runs that were measured do not show that no run is a straggler, so
    that the mean time of all runs is not promised.
    """
    if found.result is not judgement.VerdictResult.PASS:
        return found.result.value
    most = max((figure.tail.most for figure in found.judgements
                if figure.tail), default=1.0)
    return f'PASS for at least {math.floor(100 * (1 - most))} % of the runs'


def describe(run: record.Run) -> tuple[judgement.Judgement, ...]:
    """Judge every metric of a run by itself, with its interval.

    Holm's correction is not applied. A metric without a bound gets no result.
    """
    found = attempts.gather(run)
    if sample_pairs.explain_invalid(found.run) is not None:
        return ()
    judged: list[judgement.Judgement] = []
    for metric in sample_pairs.metrics(found.run):
        judged += settle([figures.estimate_metric(
            found, metric, run.bounds.get(metric), ())])
    return tuple(judged)


def _after_attempts(run: record.Run, judged: list[judgement.Judgement], *,
                    tell: bool) -> list[judgement.Judgement]:
    """Withdraw verdicts that this attempt alone contradicts."""
    if not run.earlier:
        return judged
    alone = _words(dataclasses.replace(run, earlier=()))
    found = [_unless_contradicted(figure, alone.get(figure.metric))
             for figure in judged]
    if not tell:
        return found
    before = [_words(attempt) for attempt in attempts.list_attempts(run)]
    words = {figure.metric: tuple(
        each.get(figure.metric, judgement.VerdictResult.INCONCLUSIVE)
        for each in before) for figure in found}
    omitted = run.attempts_before - len(before)
    told = []
    for figure in found:
        earlier = words[figure.metric]
        told.append(dataclasses.replace(figure, earlier=earlier, remarks=(
            *figure.remarks, attempts.describe_attempt(earlier, omitted))))
    return told


def _unless_contradicted(
        figure: judgement.Judgement,
        alone: judgement.VerdictResult | None) -> judgement.Judgement:
    if {alone, figure.result} != {judgement.VerdictResult.PASS,
                                  judgement.VerdictResult.FAIL}:
        return figure
    return dataclasses.replace(
        figure, result=judgement.VerdictResult.INCONCLUSIVE,
        reason='this attempt alone is '
        f'{alone} and all attempts together are {figure.result}: find out '
        'what changed between them', remedy=judgement.Remedy.MEASURE_AGAIN)


def _words(run: record.Run) -> dict[str, judgement.VerdictResult]:
    """Judge the figures of a run, without checking its earlier attempts."""
    return {figure.metric: figure.result
            for figure in settle(figures.estimate_run(run, ()))
            if figure.result}


def _reason(figure: judgement.Judgement) -> str:
    return f'{figure.label} {figure.metric}: {figure.reason}'


def settle(pending: Iterable[figures.Figure],
           decide: Decide = figure_verdict.decide,
           ) -> list[judgement.Judgement]:
    """Judge every figure, those with an estimate together by Holm's method.

    :param decide: see :func:`hpcvirt.bench.analysis.figure_verdict.decide`
    """
    pending = figure_verdict.judge_tails(pending)
    judged = [(figure.estimate, figure.limit, figure.step)
              for figure in pending if figure.estimate is not None]
    p_pass = [estimate.p_beyond(limit - step)
              for estimate, limit, step in judged]
    p_fail = [estimate.p_within(limit + step)
              for estimate, limit, step in judged]
    adjusted = zip(stats.holm(p_pass), stats.holm(p_fail),
                   map(min, p_pass, p_fail), strict=True)
    return [figure.judgement if figure.estimate is None
            else decide(dataclasses.replace(figure, together=len(judged)),
                        figure.estimate, *next(adjusted))
            for figure in pending]

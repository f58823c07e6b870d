# SPDX-License-Identifier: Apache-2.0

"""Decide one figure by both losses, the tail, and native against native."""

import dataclasses
import math
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.bench.analysis import figures
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import stragglers
from hpcvirt.bench.model import judgement

#: Why a comparison that is not of pairs has no PASS and no FAIL.
NOT_IN_TURN = ('the sides were not measured in turn, and two sessions of one '
               'machine may differ by more than the interval shows')
#: If the guest is faster than native by more than this even at the end of the
#: interval, the comparison is invalid.
IMPLAUSIBLE_GAIN = math.log(1.2)


def judge_tails(pending: Iterable[figures.Figure]) -> list[figures.Figure]:
    """Judge the stragglers of all figures together."""
    found = list(pending)
    together = [figure.slow for figure in found if figure.slow]
    return [_judge_tail(figure, together) for figure in found]


def _judge_tail(figure: figures.Figure,
                together: Sequence[stragglers.Stragglers]) -> figures.Figure:
    """Judge the stragglers of a figure, if it has a bound.

    :param together: the stragglers of all figures that are judged together
    """
    slow = figure.slow
    if slow is None:
        return figure
    ratio = None
    if slow.mean_loss != math.inf:
        ratio = stats.ratio_of_loss(slow.mean_loss,
                                    figure.judgement.direction)
    tail = judgement.Tail(slow.word(figure.limit, figure.share, together),
                          slow.native, slow.guest, ratio, slow.most)
    return dataclasses.replace(figure, judgement=dataclasses.replace(
        figure.judgement, tail=tail))


def decide(figure: figures.Figure, estimate: stats.Estimate, p_pass: float,
           p_fail: float, p_alone: float) -> judgement.Judgement:
    """Judge a figure.

    :param p_pass: adjusted chance that a guest exactly at the bound passes
    :param p_fail: adjusted chance that it fails
    :param p_alone: the smaller of both for the figure alone, not adjusted
    """
    low, high = estimate.ends()
    suspect = high < -stats.EQUAL
    word = judgement.VerdictResult.INCONCLUSIVE
    remedy: judgement.Remedy | None = judgement.Remedy.PAIRS
    reason: str | None = _explain_open(figure, low, high)
    if not figure.judgement.paired:
        word, remedy = (judgement.VerdictResult.COMPARED,
                        judgement.Remedy.IN_TURN)
        reason = NOT_IN_TURN
    elif p_pass <= stats.ALPHA and figure.judgement.pairs < (
            sample_pairs.MIN_PASS_PAIRS):
        reason = (f'{figure.judgement.pairs} pairs do not pass a guest that '
                  'may change after its first runs; at least '
                  f'{sample_pairs.MIN_PASS_PAIRS} do')
    elif p_pass <= stats.ALPHA and figure.few_boots:
        remedy = judgement.Remedy.LAUNCHES
        reason = (f'the samples are of {figure.few_boots} '
                  f'{"boot" if figure.few_boots == 1 else "boots"} of the '
                  f'guest, at least {sample_pairs.MIN_PAIRS} are needed')
    elif p_pass <= stats.ALPHA:
        word, remedy, reason = judgement.VerdictResult.PASS, None, None
        if suspect:
            reason = ('suspect: the guest is faster than native beyond the '
                      'interval; find out what slowed native down')
    elif p_fail <= stats.ALPHA:
        word, remedy = judgement.VerdictResult.FAIL, None
        reason = _compare_losses(figure) or 'the loss is beyond the bound'
    elif p_alone <= stats.ALPHA:
        reason = _too_many(figure) or (
            'decided if it were judged alone, but not among all figures '
            'that are judged together (Holm)')
    elif figure.step:
        remedy = judgement.Remedy.LONGER_RUNS
        reason = (f'figures that differ by less than {figure.step:.1%} cannot '
                  'be told apart: measure for longer')
    if high < -IMPLAUSIBLE_GAIN:
        word = judgement.VerdictResult.INVALID
        remedy = judgement.Remedy.BASELINE
        reason = ('the guest is faster than native by more than a fifth: the '
                  'sides did not run the same, or native was disturbed')
    judged = dataclasses.replace(figure.judgement, result=word, reason=reason,
                                 remedy=remedy, suspect=suspect)
    if not judged.paired:
        return judged
    judged = dataclasses.replace(judged, p_pass=p_pass, p_fail=p_fail)
    return _as_native_allows(_with_tail(judged), figure, low)


def _compare_losses(figure: figures.Figure) -> str | None:
    """Describe where both losses are, None if there is only one."""
    judged = figure.judgement
    if judged.mean is None or judged.interval is None:
        return None
    typical, mean = (_place(each, figure)
                     for each in (judged.interval, judged.mean))
    return f'a typical run {typical}, and the mean time {mean}'


def _place(ratio: judgement.Interval, figure: figures.Figure) -> str:
    """Describe on which side of the bound a ratio is."""
    low, high = sorted(
        stats.loss_of_ratio(end, figure.judgement.direction)
        for end in (ratio.low, ratio.high))
    if high < figure.limit:
        return 'is within the bound'
    return ('is beyond the bound' if low > figure.limit
            else 'may be on either side of the bound')


def _explain_open(figure: figures.Figure, low: float, high: float) -> str:
    """Explain why neither side of the bound is excluded."""
    judged = figure.judgement
    places = {_place(each, figure)
              for each in (judged.interval, judged.mean) if each}
    if low <= figure.limit <= high or len(places) > 1:
        return _compare_losses(figure) or 'the interval includes the bound'
    return ('the ratio is nearer to the bound than '
            f'{judged.launches or judged.pairs} '
            f'{"boots" if judged.launches else "pairs"} can tell')


def _too_many(figure: figures.Figure) -> str | None:
    """Explain that too many figures are judged together, None if not."""
    judged = figure.judgement
    least = signed_rank.find_least(1 / figure.together)
    count = judged.launches or judged.pairs
    if not judged.paired or count >= least:
        return None
    return (f'{count} {"boots" if judged.launches else "pairs"} cannot decide '
            f'among {figure.together} figures that are judged together, at '
            f'least {least} are needed')


def _with_tail(judged: judgement.Judgement) -> judgement.Judgement:
    """Withdraw a PASS that the stragglers of the guest do not allow."""
    tail = judged.tail
    if (tail and tail.result is judgement.VerdictResult.FAIL
            and judged.result in (judgement.VerdictResult.PASS,
                                  judgement.VerdictResult.INCONCLUSIVE)):
        return dataclasses.replace(
            judged, result=judgement.VerdictResult.FAIL, remedy=None,
            reason='the guest has more or longer runs that are much slower '
            'than the others')
    if (not tail or tail.result is judgement.VerdictResult.PASS
            or judged.result is not judgement.VerdictResult.PASS):
        return judged
    return dataclasses.replace(
        judged, result=judgement.VerdictResult.INCONCLUSIVE,
        remedy=judgement.Remedy.PAIRS,
        reason='a typical run is within the bound, but with the runs of the '
        'guest that are much slower or failed the mean is not; more pairs '
        'show whether native has them as well')


def _as_native_allows(judged: judgement.Judgement, figure: figures.Figure,
                      low: float) -> judgement.Judgement:
    """Withdraw a decision that noise of the machine may have caused.

    :param low: the better end of the interval of the guest's loss
    """
    native = figure.machine or figure.control
    if native is None:
        return judged
    judged = dataclasses.replace(judged, machine=figures.interval(
        native.loss, native.ends(), judged.direction))
    noise = max(abs(end) for end in native.ends())
    limit = abs(figure.limit)
    if figure.machine:
        is_noisy = noise > limit + stats.EQUAL
        reason = ('native against native differs by more than the bound: this '
                  'machine cannot decide')
    else:
        limit += figure.step
        is_noisy = min(native.p_within(limit),
                       native.p_beyond(-limit)) <= stats.ALPHA
        reason = ('the second of two native runs differs from the first by '
                  'more than the bound: what runs before it decides, and not '
                  'the guest')
    if not is_noisy or judged.result is judgement.VerdictResult.INVALID or (
            judged.result is judgement.VerdictResult.FAIL and low > noise):
        return judged
    if judged.result is judgement.VerdictResult.INCONCLUSIVE:
        reason = f'{judged.reason}; {reason}'
    return dataclasses.replace(
        judged, result=judgement.VerdictResult.INCONCLUSIVE, reason=reason,
        remedy=judgement.Remedy.QUIETER_MACHINE)

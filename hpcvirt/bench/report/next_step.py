# SPDX-License-Identifier: Apache-2.0

"""Recommend what to do about INCONCLUSIVE and INVALID figures."""

import posixpath
import shlex

from hpcvirt.bench.analysis import power
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record

#: If a larger fraction of the samples is slow, the slowness is noise.
_FEW_SLOW = 0.25
_UNDECIDED = (judgement.VerdictResult.INCONCLUSIVE,
              judgement.VerdictResult.INVALID,
              judgement.VerdictResult.COMPARED)


def find_steps(result: record.Result,
               ) -> dict[str, list[judgement.Judgement]]:
    """Return the recommended steps for a judged result.

    :returns: step, a sentence or two, to the judgements that it is for
    """
    judgements = result.verdict.judgements if result.verdict else ()
    if not judgements:
        return {}
    # An A/A run may have the same label; it is the last, and sorted first.
    runs = {run.label: run for run in sorted(
        result.runs, key=lambda run: run.purpose is not record.Purpose.AA)}
    needed = {
        judged: power.estimate_pairs(judged, runs[judged.label],
                                     len(judgements))
        for judged in judgements if judged.remedy is judgement.Remedy.PAIRS}
    found: dict[str, list[judgement.Judgement]] = {}
    for judged in judgements:
        if judged.result in _UNDECIDED:
            # A run measures all of its figures with the same number of pairs.
            most = max((pairs for other, pairs in needed.items() if pairs
                        and other.label == judged.label), default=None)
            pairs = most if needed.get(judged) else None
            found.setdefault(_step(judged, runs[judged.label], pairs),
                             []).append(judged)
    return found


def _step(judged: judgement.Judgement, run: record.Run,
          pairs: int | None) -> str:
    command = _again(run)
    if judged.remedy is judgement.Remedy.PAIRS:
        return _more_pairs(judged, run, pairs)
    if judged.remedy is judgement.Remedy.LAUNCHES:
        if run.relaunched or run.launch is record.Launch.COLD:
            return (f'More launches: {command}, with the same settings as '
                    'before, adds them.')
        return _relaunch(run)
    if judged.remedy is judgement.Remedy.LONGER_RUNS:
        sizes = ' '.join(f'--set {name}=...' for name in
                         catalogue.get(run.benchmark).size)
        return (f'Longer runs: {_again(run, sizes, "settings")} with a larger '
                'problem.')
    if judged.remedy is judgement.Remedy.QUIETER_MACHINE:
        return ('A quieter machine: fix the frequency, stop other guests, '
                f'bind ranks; then {command} again, with the same settings '
                'as before.')
    if judged.remedy is judgement.Remedy.WARM_UPS:
        warm_ups = run.planned_warm_ups + judged.transient
        again = _again(run, f'--warm-ups {warm_ups}', f'warm_ups: {warm_ups}')
        return (f'More warm-ups: {again}, with the same settings as before, '
                'discards them.')
    if judged.remedy is judgement.Remedy.IN_TURN:
        return f'Pairs: {command} measures both sides in turn on one host.'
    if judged.remedy is judgement.Remedy.BASELINE:
        return ('A sound baseline: find out what slowed native down; then '
                + _again(run, '--native-cpus LIST', 'native_cpus')
                + ' on the CPUs of the guest.')
    return (f'Measure again: look at {_outputs(run)}, fix the cause, then '
            f'{command}, with the same settings as before.')


def _more_pairs(judged: judgement.Judgement, run: record.Run,
                pairs: int | None) -> str:
    if not judged.paired:
        return f'Pairs: {_again(run)} measures both sides in turn on one host.'
    if judged.interval is None:
        if judged.pairs < run.planned_pairs:
            return ('The missing pairs: the command that began the run '
                    'continues it.')
        return (f'More pairs: {_again(run)} without '
                + ('"pairs".' if run.study else '--pairs.'))
    tail = judged.tail
    if pairs is None and tail and tail.result is (
            judgement.VerdictResult.INCONCLUSIVE) and (
                tail.guest <= judged.pairs * _FEW_SLOW):
        runs = '1 run' if tail.guest == 1 else f'{tail.guest} runs'
        return (f'The slow runs: find out what made {runs} of the guest much '
                f'slower than the others, or hang; then {_again(run)} again, '
                'with the same settings as before.')
    if pairs is None and judged.limit is not None and (
            judged.interval.low <= judged.limit <= judged.interval.high):
        return (
            f'Less noise: even {power.MAX_PAIRS} pairs would hardly decide '
            'with this noise; fix the frequency, stop other guests, bind '
            'ranks.')
    if pairs is None:
        again = _again(run, '--bound METRIC=RATIO', 'bounds')
        return (
            f'Another bound: even {power.MAX_PAIRS} pairs would hardly decide '
            f'so near to this one; {again}, with the same settings as before, '
            'judges by one of your own.')
    more = f'{pairs} more' if run.subject else f'{pairs}'
    again = _again(run, f'--pairs {pairs}', f'pairs: {pairs}')
    return (f'More pairs: about {more} decide in 4 of 5 cases: '
            f'{again}, with the same settings as before'
            + (', adds them.' if run.subject else '.'))


def _relaunch(run: record.Run) -> str:
    """Say how the guest can be relaunched."""
    if run.study:
        return ('More launches: with the guest as server:NAME, '
                f'{_again(run)} relaunches it.')
    return (f'More launches: "hpcvirt bench run {run.benchmark}/{run.variant} '
            '--where server:NAME --native TARGET" relaunches the guest'
            + ('.' if run.of_launch else
               '; --this-launch judges this launch alone.'))


def _again(run: record.Run, option: str = '', key: str = '') -> str:
    """Write the command that measures again, in quotes.

    :param option: another option for it
    :param key: the key that stands for it in the document of a study
    """
    if run.study:
        more = f' and "{key}"' if key else ''
        return ('"hpcvirt bench run" with the document of '
                f'{run.study}/{run.case}{more}')
    launch = ' --this-launch' if run.of_launch else ''
    more = f' {option}' if option else ''
    return (f'"hpcvirt bench run {run.benchmark}/{run.variant}{_where(run)}'
            f'{launch}{more}"')


def _where(run: record.Run) -> str:
    """Return the options for the targets, with their names if unambiguous."""
    targets = [shlex.quote(target) for target in run.targets]
    if run.purpose is record.Purpose.COMPARE and len(targets) == 2:
        return f' --where {targets[1]} --native {targets[0]}'
    if run.purpose is record.Purpose.AA and len(targets) == 1:
        return f' --where {targets[0]} --native {targets[0]}'
    return ' --where TARGET --native TARGET'


def _outputs(run: record.Run) -> str:
    """Return the directory of the first invalid sample, for a message."""
    for sample in run.samples:
        if not sample.outcome.valid and sample.outputs:
            return posixpath.dirname(sample.outputs[0].path)
    return f'the outputs of run {run.id}' if run.id else 'the outputs'

# SPDX-License-Identifier: Apache-2.0

"""What to do about figures that are INCONCLUSIVE or INVALID."""

import math
import posixpath
import shlex

from hpcvirt.bench.analysis import interim_analyses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record

#: A guest is about as a study measured it within this loss.
_NEAR = 0.02
#: If a larger part of the runs is much slower than the others, it is noise.
_FEW_SLOW = 0.25
_REMEDY = judgement.Remedy
_UNDECIDED = (judgement.VerdictResult.INCONCLUSIVE,
              judgement.VerdictResult.INVALID)


def find_steps(result: record.Result,
               ) -> dict[str, list[judgement.Judgement]]:
    """Say what to do about a judged result: steps, each with its figures."""
    judgements = result.verdict.judgements if result.verdict else ()
    if not judgements:
        return {}
    # One that shows how noisy the machine is may have the same label.
    runs = {run.label: run for run in sorted(
        result.runs, key=lambda run: run.purpose is not record.Purpose.AA)}
    needed = {
        judged: interim_analyses.estimate_pairs(judged, runs[judged.label],
                                                len(judgements))
        for judged in judgements if judged.remedy is _REMEDY.PAIRS}
    found: dict[str, list[judgement.Judgement]] = {}
    for judged in judgements:
        if judged.result in _UNDECIDED:
            # One run measures all of its figures: the largest number counts.
            most = max((pairs for other, pairs in needed.items() if pairs
                        and other.label == judged.label), default=None)
            pairs = most if needed.get(judged) else None
            found.setdefault(_step(judged, runs[judged.label], pairs),
                             []).append(judged)
    return found


def _step(judged: judgement.Judgement, run: record.Run,
          pairs: int | None) -> str:
    command = f'"hpcvirt bench run {_what(run)}{_where(run)}' + (
        ' --this-launch' if run.of_launch else '')
    if judged.remedy is _REMEDY.PAIRS:
        return _more_pairs(judged, run, pairs, command)
    if judged.remedy is _REMEDY.LAUNCHES:
        if run.relaunched or run.launch is record.Launch.COLD:
            return (f'More launches: {command} --pairs '
                    f'{sample_pairs.USUAL_PAIRS}", with the settings of '
                    'before, adds them.')
        return (f'More launches: "hpcvirt bench run {_what(run)} --where '
                'server:NAME --native TARGET" relaunches the guest'
                + ('.' if run.of_launch else
                   '; --this-launch judges this launch alone.'))
    if judged.remedy is _REMEDY.LONGER_RUNS:
        sizes = ''.join(f' --set {name}=...' for name in
                        catalogue.get(run.benchmark).size)
        return f'Longer runs: {command}{sizes}" with a larger problem.'
    if judged.remedy is _REMEDY.QUIETER_MACHINE:
        return ('A quieter machine: fix the frequency, stop other guests, '
                f'bind ranks; then {command}" again, with the settings of '
                'before.')
    if judged.remedy is _REMEDY.BASELINE:
        return ('A sound baseline: find out what slowed native down; then '
                f'{command} --native-cpus LIST" on the CPUs of the guest.')
    return (f'Measure again: look at {_outputs(run)}, mend the cause, then '
            f'{command}", with the settings of before.')


def _more_pairs(judged: judgement.Judgement, run: record.Run,
                pairs: int | None, command: str) -> str:
    if not judged.paired:
        return f'Pairs: {command}" measures both sides in turn on one host.'
    if judged.interval is None:
        if judged.pairs < run.planned_pairs:
            return ('The missing pairs: the command that began the run '
                    'continues it.')
        return f'More pairs: {command} --pairs {sample_pairs.USUAL_PAIRS}".'
    bound = run.bounds.get(judged.metric)
    near = judged.limit and abs(
        math.log(judged.interval.ratio / judged.limit)) <= _NEAR
    if pairs is None and near and bound and bound.is_measured:
        return (f'A margin: {interim_analyses.MAX_PAIRS} pairs would hardly '
                'tell the guest from the ratio of the study; '
                f'{command} --bound METRIC=RATIO", with the settings of '
                'before, judges by a ratio of your own.')
    tail = judged.tail
    if pairs is None and tail and tail.result is (
            judgement.VerdictResult.INCONCLUSIVE) and (
                tail.guest <= judged.pairs * _FEW_SLOW):
        runs = '1 run' if tail.guest == 1 else f'{tail.guest} runs'
        return (f'The slow runs: find out what made {runs} of the guest much '
                f'slower than the others, or hang; then {command}" again, '
                'with the settings of before.')
    if pairs is None:
        return (
            'Less noise: with this one even '
            f'{interim_analyses.MAX_PAIRS} pairs would hardly decide at this '
            'distance from the bound; fix the frequency, stop other guests, '
            'bind ranks.')
    more = f'{pairs} more' if run.subject else f'{pairs}'
    stop = '' if run.study else ' --until-decided'
    return (f'More pairs: about {more} decide 4 times of 5: {command}{stop} '
            f'--pairs {pairs}", with the settings of before'
            + (', adds them.' if run.subject else '.'))


def _what(run: record.Run) -> str:
    if run.study and run.case:
        return f'--study {run.study}/{run.case}'
    return f'{run.benchmark}/{run.variant}'


def _where(run: record.Run) -> str:
    """Name the targets, if it is clear which is which."""
    targets = [shlex.quote(target) for target in run.targets]
    if run.purpose is record.Purpose.COMPARE and len(targets) == 2:
        return f' --where {targets[1]} --native {targets[0]}'
    if run.purpose is record.Purpose.AA and len(targets) == 1:
        return f' --where {targets[0]} --native {targets[0]}'
    return ' --where TARGET --native TARGET'


def _outputs(run: record.Run) -> str:
    """Name the directory of the first sample that failed its check."""
    for sample in run.samples:
        if not sample.outcome.valid and sample.outputs:
            return posixpath.dirname(sample.outputs[0].path)
    return f'the outputs of run {run.id}' if run.id else 'the outputs'

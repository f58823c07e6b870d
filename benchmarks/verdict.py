# SPDX-License-Identifier: Apache-2.0

"""Simulate how often verdicts are wrong, for many kinds of noise.

For each kind of noise there are guests exactly at the bound, for which PASS
and FAIL are both wrong; guests that are as good as native, for which FAIL is
wrong; and guests that lose twice as much as allowed. The program computes the
verdicts. With ``--csv`` the table is also written to
benchmarks/results/verdict_rates.csv. The exit status is 1 if a rate that the
page promises is above 5 % by more than three standard errors.
"""

import argparse
import contextlib
import csv
import dataclasses
import itertools
import math
import pathlib
import random
import statistics
import sys
from collections.abc import Callable
from collections.abc import Iterator
from concurrent import futures
from typing import Any
from unittest import mock

from hpcvirt import text_table
from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import boots
from hpcvirt.bench.analysis import figures
from hpcvirt.bench.analysis import losses
from hpcvirt.bench.analysis import mean_time
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stragglers
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.run import schedule

#: The metric is a time; the guest may take this much more.
BOUND = 1.05
LOSSES = {'bound': math.log(BOUND), 'equal': 0.0,
          'slow': math.log(2 * BOUND - 1)}
SAMPLES_OF_A_LAUNCH = 2
#: Standard deviation of a single run.
SD = 0.02
PROMISED = 0.05

#: Yields the logarithms of the values of each pair: native, guest.
Noise = Callable[[random.Random, int], Iterator[tuple[float, float]]]


def _independent(native: Callable[[random.Random], float],
                 guest: Callable[[random.Random], float] | None = None,
                 ) -> Noise:
    def noise(dice: random.Random,
              pairs: int) -> Iterator[tuple[float, float]]:
        for _ in range(pairs):
            yield native(dice), (guest or native)(dice)
    return noise


def _on_one_time_line(step: Callable[[random.Random, int, float], float],
                      ) -> Noise:
    """Return the noise of a machine that changes from run to run.

    :param step: returns the noise of a run from its number and the noise of
        the previous run
    """
    def noise(dice: random.Random,
              pairs: int) -> Iterator[tuple[float, float]]:
        values: dict[int, dict[record.Side, float]] = {}
        last = dice.gauss(0, SD)
        for planned in schedule.order(pairs, 0, seed=str(dice.random())):
            last = step(dice, planned.position, last)
            values.setdefault(planned.pair, {})[planned.side] = last
        for pair in values.values():
            yield pair[record.Side.NATIVE], pair[record.Side.GUEST]
    return noise


def _of_each_side(correlation: float) -> Noise:
    def noise(dice: random.Random,
              pairs: int) -> Iterator[tuple[float, float]]:
        last = [dice.gauss(0, SD) / math.sqrt(1 - correlation ** 2)
                for _ in range(2)]
        for _ in range(pairs):
            last = [correlation * value + dice.gauss(0, SD) for value in last]
            yield last[0], last[1]
    return noise


def _changing(of_pair: Callable[[int], float]) -> Noise:
    """Return the noise of a guest whose level depends on the pair."""
    def noise(dice: random.Random,
              pairs: int) -> Iterator[tuple[float, float]]:
        for pair in range(pairs):
            yield dice.gauss(0, 0.01), of_pair(pair) + dice.gauss(0, 0.01)
    return noise


def _launches(level_of: Callable[[random.Random, float], float]) -> Noise:
    """Return the noise of launches.

    :param level_of: returns the level of a launch from that of the previous
        one
    """
    def noise(dice: random.Random,
              pairs: int) -> Iterator[tuple[float, float]]:
        level = level_of(dice, dice.gauss(0, SD))
        for pair in range(pairs):
            if pair and pair % SAMPLES_OF_A_LAUNCH == 0:
                level = level_of(dice, level)
            yield dice.gauss(0, 0.01), level + dice.gauss(0, 0.01)
    return noise


def _resembling(correlation: float, deviation: float = SD,
                ) -> Callable[[random.Random, float], float]:
    """Return a function for levels that depend on the previous one."""
    return lambda dice, last: correlation * last + math.sqrt(
        1 - correlation ** 2) * dice.gauss(0, deviation)


def _guest_resembling(correlation: float, deviation: float = SD,
                      native: float = 0.003) -> Noise:
    """Return noise in which the runs of the guest are autocorrelated."""
    step = _resembling(correlation, deviation)

    def noise(dice: random.Random,
              pairs: int) -> Iterator[tuple[float, float]]:
        last = dice.gauss(0, deviation)
        for _ in range(pairs):
            last = step(dice, last)
            yield dice.gauss(0, native), last
    return noise


def _misplaced(dice: random.Random, _: float) -> float:
    """Return the level of a boot; one boot in five is misplaced."""
    return dice.gauss(0, 0.01) + (math.log(1.1) if dice.random() < 0.2
                                  else 0.0)


def _sometimes(chance: float, factor: float, deviation: float = SD,
               ) -> Callable[[random.Random], float]:
    def value(dice: random.Random) -> float:
        found = dice.gauss(0, deviation)
        return found + (math.log(factor) if dice.random() < chance else 0.0)
    return value


def _normal(deviation: float) -> Callable[[random.Random], float]:
    return lambda dice: dice.gauss(0, deviation)


def _two_levels(dice: random.Random) -> float:
    """Return one of two equally frequent speeds."""
    return dice.gauss(0, 0.003) + dice.choice((-0.015, 0.015))


def _unequal_levels(dice: random.Random) -> float:
    """Return one of two speeds, the slower one in 30 % of all runs."""
    return dice.gauss(0, 0.003) + (0.03 if dice.random() < 0.3 else 0.0)


@dataclasses.dataclass(frozen=True)
class Case:
    """A way of measuring guests, with its noise.

    :ivar spread: deviation between boots, if a pilot chooses their number
    :ivar figures: number of figures with this noise, judged together
    :ivar attempts: number of runs; every word that any of them gets counts
    :ivar launches: the guest is measured in launches of two pairs each
    :ivar clock: the times are rounded to hundredths of a second
    :ivar hangs: fraction of the guest runs that do not end; words count from
        the first of these on
    :ivar is_skewed: PASS is counted with the mean time at the bound, FAIL with
        the typical run at the bound
    :ivar is_promised: whether the promise holds for this noise
    :ivar after_guest: how much slower a native run is if the run before it
        was the guest's, with the controls of a usual run
    :ivar is_bad: a typical run is as fast as native, but the tail is not
        acceptable: PASS is wrong, and FAIL is right
    """

    noise: Noise
    pairs: tuple[int, ...] = (5, 10, 20, 40)
    spread: float | None = None
    figures: int = 1
    attempts: int = 1
    launches: bool = False
    clock: bool = False
    hangs: float = 0.0
    is_bad: bool = False
    is_skewed: bool = False
    is_promised: bool = True
    after_guest: float = 0.0


_LOG_NORMAL = _independent(_normal(SD))
_GUEST_OF_TWO_LEVELS = _independent(_normal(0.003), _two_levels)
_SEVERAL = (10, 20)

CASES: dict[str, Case] = {
    'log-normal, CV 2 %': Case(_LOG_NORMAL),
    'log-normal, CV 10 %': Case(_independent(_normal(0.10)), (5, 10, 40)),
    'native CV 1 %, guest CV 5 %': Case(
        _independent(_normal(0.01), _normal(0.05)), _SEVERAL),
    '10 % of runs 1.25 times slower': Case(
        _independent(_sometimes(0.10, 1.25)), (5, 10)),
    '5 % of runs 3 times slower': Case(_independent(_sometimes(0.05, 3.0)),
                                       (5, 10, 40)),
    'exponential tail': Case(
        _independent(lambda dice: dice.expovariate(20)), (5, 10, 40)),
    'guest with two levels': Case(_GUEST_OF_TWO_LEVELS, (5, 7, 8, 10)),
    'drift of 0.5 % a run': Case(_on_one_time_line(
        lambda dice, number, _: 0.005 * number + dice.gauss(0, SD)), (10, 40)),
    'AR(1) 0.5 on one time line': Case(_on_one_time_line(
        lambda dice, _, last: 0.5 * last + dice.gauss(0, SD)), (10, 40)),
    'AR(1) 0.5, each side by itself': Case(
        _of_each_side(0.5), (10, 20, 40), is_promised=False),
    '23 figures, guest with two levels': Case(
        _GUEST_OF_TWO_LEVELS, (5, 7, 10), figures=23),
    '23 figures, log-normal, CV 2 %': Case(
        _LOG_NORMAL, _SEVERAL, figures=23),
    'launches differ by 5 %': Case(_launches(
        lambda dice, _: dice.gauss(0, 0.05)), _SEVERAL, launches=True),
    'clock of 10 ms, runs of 0.05 to 0.5 s': Case(
        _independent(_normal(0.01)), _SEVERAL, clock=True),
    'log-normal, CV 2 %, 3 attempts': Case(_LOG_NORMAL, (10,), attempts=3),
    'log-normal, CV 10 %, 3 attempts': Case(
        _independent(_normal(0.10)), (10,), attempts=3),
    '5 % of runs 3 times slower, 3 attempts': Case(
        _independent(_sometimes(0.05, 3.0)), (10,), attempts=3),
    'guest: 10 % of runs hang, one has, 3 attempts': Case(
        _LOG_NORMAL, (10,), attempts=3, hangs=0.1, is_bad=True),
    'guest: 10 % of runs hang, one has, 5 attempts': Case(
        _LOG_NORMAL, (10,), attempts=5, hangs=0.1, is_bad=True),
    'native 5 % twice, guest 5 % ten times slower': Case(_independent(
        _sometimes(0.05, 2.0), _sometimes(0.05, 10.0)), (60,),
        is_bad=True),
    **{f'guest, AR(1) {correlation} in a boot': Case(
        _guest_resembling(correlation)) for correlation in (0.3, 0.5, 0.9)},
    **{f'native CV {100 * native:g} %, guest, AR(1) 0.5 in a boot': Case(
        _guest_resembling(0.5, native=native), (10, 20, 40))
       for native in (0.005, 0.01, 0.02)},
    **{f'native CV {100 * native:g} %, guest, AR(1) 0.9 in a boot': Case(
        _guest_resembling(0.9, native=native), (10, 20, 40),
        is_promised=native < 0.01) for native in (0.005, 0.01, 0.02)},
    **{f'guest of CV 5 %, AR(1) {correlation} in a boot': Case(
        _guest_resembling(correlation, 0.05),
        is_promised=False) for correlation in (0.5, 0.9)},
    '23 figures, guest, AR(1) 0.5 in a boot': Case(
        _guest_resembling(0.5), _SEVERAL, figures=23),
    **{f'boots, AR(1) {correlation}': Case(
        _launches(_resembling(correlation)), (10, 20, 40), launches=True)
       for correlation in (0.5, 0.8)},
    'guest with a tail, 3 % in the mean': Case(
        _independent(_normal(SD), lambda dice: dice.gauss(0, SD)
                     + dice.expovariate(1 / 0.03)), is_skewed=True),
    'guest with two levels, 70:30': Case(
        _independent(_normal(0.003), _unequal_levels), is_skewed=True),
    'guest: 10 % of runs 15 % slower': Case(
        _independent(_normal(SD), _sometimes(0.10, 1.15)), is_skewed=True),
    '20 % of boots misplaced, by 10 %': Case(
        _launches(_misplaced), (10, 20, 40), launches=True, is_skewed=True),
    '23 figures, 5 % of runs 3 times slower': Case(
        _independent(_sometimes(0.05, 3.0)), (20, 40), figures=23),
    'guest: 4 % of runs twice as long': Case(
        _independent(_normal(0.01), _sometimes(0.04, 2.0, 0.01)),
        (10, 16, 40), is_skewed=True, is_promised=False),
    'guest 8 % faster at first, decaying over 4 pairs': Case(_changing(
        lambda pair: -0.08 * math.exp(-pair / 4)), (5, 10, 16, 20),
        is_promised=False),
    'native 10 % slower after the guest': Case(
        _LOG_NORMAL, (10, 16), after_guest=0.1, is_promised=False),
    'native 10 % faster after the guest': Case(
        _LOG_NORMAL, (10, 16), after_guest=-0.1, is_promised=False),
    'boots differ by 1 %, pilot': Case(_LOG_NORMAL, _SEVERAL, spread=0.01),
    'boots differ by 5 %, pilot': Case(_LOG_NORMAL, _SEVERAL, spread=0.05),
    'log-normal, CV 4 %': Case(_independent(_normal(0.04)), (10,)),
    'log-normal, CV 8.5 %': Case(_independent(_normal(0.085)), (40,)),
}
COLUMNS = ('Noise', 'Pairs', 'False PASS, %', 'False FAIL, %',
           'FAIL of equal, %', 'PASS of equal, %', 'FAIL of slow, %')
CSV = pathlib.Path(__file__).parent / 'results' / 'verdict_rates.csv'
RULES_CSV = CSV.with_name('verdict_rules.csv')
RULE_COLUMNS = ('Rule', 'Guest at its bound', 'False PASS / FAIL, %',
                'PASS of equal, %', 'False without the rule, %',
                'PASS of equal without it, %')


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule, and guests that are judged wrongly without it.

    :ivar off: what replaces a part of the program: its holder, name and value
    """

    name: str
    noise: str
    pairs: int
    off: tuple[Any, str, Any]


_NO_DISTANCE = losses, 'DISTANCE', 0.0
_NO_CORRELATION = losses, 'explain_correlation', lambda *_: None
_NO_WIDENING = losses, '_widen', lambda _: 1.0
_NO_SPREAD = losses, 'varies_more', lambda *_: False
_NO_MEAN = mean_time, 'estimate', lambda *_: None
_NO_CONTROLS = figures, '_control', lambda *_: None
_NO_STRAGGLERS = (stragglers.Stragglers, 'word',
                  lambda *_: judgement.VerdictResult.PASS)
RULES = (
    Rule('Ten pairs', 'guest 8 % faster at first, decaying over 4 pairs', 5,
         (sample_pairs, 'MIN_PASS_PAIRS', 5)),
    Rule('Distance', 'guest: 10 % of runs 15 % slower', 10, _NO_DISTANCE),
    Rule('Distance', 'boots, AR(1) 0.8', 10, _NO_DISTANCE),
    Rule('Correlation, no decision', 'guest, AR(1) 0.9 in a boot', 40,
         _NO_CORRELATION),
    Rule('Correlation, wider interval',
         'guest of CV 5 %, AR(1) 0.5 in a boot', 40, _NO_WIDENING),
    Rule('Spread', 'guest of CV 5 %, AR(1) 0.9 in a boot', 10, _NO_SPREAD),
    Rule('Mean time', 'guest: 10 % of runs 15 % slower', 40, _NO_MEAN),
    Rule('Mean time', '20 % of boots misplaced, by 10 %', 40, _NO_MEAN),
    Rule('Stragglers', 'native 5 % twice, guest 5 % ten times slower', 60,
         _NO_STRAGGLERS),
    Rule('Stragglers', 'guest: 10 % of runs hang, one has, 3 attempts', 10,
         _NO_STRAGGLERS),
    Rule('Controls', 'native 10 % slower after the guest', 10, _NO_CONTROLS),
    Rule('Controls', 'native 10 % faster after the guest', 10, _NO_CONTROLS),
    Rule('Share of attempts', 'log-normal, CV 10 %, 3 attempts', 10,
         (attempts, 'share', lambda _: 1.0)),
)
#: Pairs with a control.
CONTROLS = 5
#: Time to relaunch a guest, if each run takes 1.
RELAUNCH_S = 15


def main() -> int:
    """Print the table.

    :returns: 1 if a rate is too high
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--trials', type=int, default=400,
                        help='guests of each kind (default: 400)')
    parser.add_argument('--csv', action='store_true',
                        help='write the table of the documentation')
    parser.add_argument('--only', default='', metavar='TEXT',
                        help='only noise with this in its name')
    parser.add_argument('--seed', default='', metavar='TEXT',
                        help='draw other random numbers')
    parser.add_argument('--rules', action='store_true',
                        help='print what each rule is worth instead; with '
                        '--csv to verdict_rules.csv')
    args = parser.parse_args()
    if args.rules:
        _compare_rules(args.trials, args.seed, write=args.csv)
        return 0
    cases = []
    for name, case in CASES.items():
        # Several figures take longer.
        trials = args.trials if case.figures == 1 else args.trials // 4
        if args.only in name:
            cases += [(name, pairs, trials, args.seed)
                      for pairs in case.pairs]
    with futures.ProcessPoolExecutor() as pool:
        found = list(pool.map(rates, *zip(*cases, strict=True)))
    failed = False
    rows = []
    for (name, pairs, trials, _), (at_bound, equal, slow) in zip(
            cases, found, strict=True):
        errors = [at_bound[judgement.VerdictResult.PASS],
                  at_bound[judgement.VerdictResult.FAIL],
                  equal[judgement.VerdictResult.FAIL]]
        passed = f'{100 * equal[judgement.VerdictResult.PASS]:.0f}'
        if CASES[name].is_bad:
            errors, passed = [equal[judgement.VerdictResult.PASS]], ''
        error = math.sqrt(PROMISED * (1 - PROMISED) / trials)
        if CASES[name].is_promised and max(errors) > PROMISED + 3 * error:
            failed = True
        shown = [f'{100 * rate:.1f}' for rate in errors]
        failing = slow[judgement.VerdictResult.FAIL]
        rows.append((name, str(pairs), *shown, *[''] * (3 - len(shown)),
                     passed, f'{100 * failing:.0f}'))
    sys.stdout.write(text_table.draw(COLUMNS, rows, set(COLUMNS[1:]), 200))
    if args.csv:
        with CSV.open('w', newline='') as file:
            csv.writer(file, lineterminator='\n').writerows((COLUMNS, *rows))
    if failed:
        print('a rate of error is above 5 % by more than three standard '
              'errors', file=sys.stderr)
    return int(failed)


def _compare_rules(trials: int, seed: str, *, write: bool) -> None:
    """Print the rates of guests with and without each rule."""
    rows = []
    for rule in RULES:
        found = []
        for holder, name, value in ((None, '', None), rule.off):
            with contextlib.ExitStack() as stack:
                if holder is not None:
                    stack.enter_context(mock.patch.object(holder, name, value))
                at_bound, equal, _ = rates(rule.noise, rule.pairs, trials,
                                           seed)
            found += _show_false(rule.noise, at_bound, equal)
        rows.append((rule.name, f'{rule.noise}; {rule.pairs} pairs', *found))
    sys.stdout.write(text_table.draw(RULE_COLUMNS, rows,
                                     set(RULE_COLUMNS[2:]), 200))
    if write:
        with RULES_CSV.open('w', newline='') as file:
            csv.writer(file, lineterminator='\n').writerows(
                (RULE_COLUMNS, *rows))


def _show_false(
        noise: str, at_bound: dict[judgement.VerdictResult, float],
        equal: dict[judgement.VerdictResult, float]) -> tuple[str, str]:
    """Return the false PASS and FAIL, and the PASS of equal guests."""
    passed = equal[judgement.VerdictResult.PASS]
    if CASES[noise].is_bad:
        return f'{100 * passed:.1f} / -', '-'
    false = (f'{100 * at_bound[judgement.VerdictResult.PASS]:.1f} / '
             f'{100 * at_bound[judgement.VerdictResult.FAIL]:.1f}')
    return false, f'{100 * passed:.0f}'


def rates(name: str, pairs: int, trials: int,
          seed: str = '') -> list[dict[judgement.VerdictResult, float]]:
    """Simulate one kind of noise.

    :param seed: guests with another seed are others
    :returns: the rate of each word for guests at the bound, as good as native,
        and twice as far as the bound. With several figures, a word counts for
        the first two kinds if any figure has it; only PASS of an equal guest
        needs all figures.
    """
    case = CASES[name]
    typical, mean = _centres(case) if case.is_skewed else (0.0, 0.0)

    def count(kind: str,
              centre: float) -> dict[judgement.VerdictResult, float]:
        dice = random.Random(f'{seed}{name} {pairs} {kind}')
        words = [_words(dice, case, pairs, LOSSES[kind] - centre)
                 for _ in range(trials)]
        return {word: sum(word in each for each in words) / trials
                for word in judgement.VerdictResult}
    found = [count(kind, mean) for kind in LOSSES]
    if case.is_skewed:
        at_typical = count('bound', typical)
        failed = judgement.VerdictResult.FAIL
        found[0][failed] = at_typical[failed]
    return found


def _centres(case: Case) -> tuple[float, float]:
    """Return the losses of a typical pair and of the mean time."""
    dice = random.Random('centres')
    drawn = list(case.noise(dice, 100_000))
    means = [statistics.fmean(math.exp(pair[side]) for pair in drawn)
             for side in (0, 1)]
    return (statistics.median(guest - native for native, guest in drawn),
            math.log(means[1] / means[0]))


def _words(dice: random.Random, case: Case, pairs: int,
           loss: float) -> set[judgement.VerdictResult]:
    """Return the words of all attempts on a guest."""
    earlier: tuple[record.Attempt, ...] = ()
    words: set[judgement.VerdictResult] = set()
    base = 10 ** dice.uniform(math.log10(0.05), math.log10(0.5))
    for _ in range(case.attempts):
        if case.after_guest:
            attempt = in_turn(dice, case.after_guest, pairs, loss)
        elif case.spread is not None:
            attempt = relaunched(dice, case.spread, pairs, loss)
        else:
            attempt = run(dice, case, pairs, loss, base)
        attempt = dataclasses.replace(attempt, earlier=earlier)
        found = _judge(dice, case, attempt, loss, base)
        earlier += (record.Attempt('r', '', pairs, attempt.samples),)
        samples = itertools.chain.from_iterable(
            each.samples for each in earlier)
        if not case.hangs or not all(
                sample.outcome.valid for sample in samples):
            words |= found
    return words


def _judge(dice: random.Random, case: Case, first: record.Run, loss: float,
           base: float) -> set[judgement.VerdictResult]:
    runs = [first, *(
        dataclasses.replace(run(dice, case, first.planned_pairs, loss, base),
                            id=str(number), case=str(number))
        for number in range(1, case.figures))]
    found = verdict.judge(runs, tell=False)
    if case.figures == 1 or loss == LOSSES['equal']:
        return {found.result}
    # Each PASS and FAIL of a guest at the bound is wrong.
    return {figure.result for figure in found.judgements if figure.result}


def run(dice: random.Random, case: Case, pairs: int, loss: float,
        base: float) -> record.Run:
    """Return a run of a guest with this loss.

    :param base: time of a native run in seconds
    """
    samples = []
    for pair, values in enumerate(case.noise(dice, pairs)):
        for side, value in zip((record.Side.NATIVE, record.Side.GUEST), values,
                               strict=True):
            guest = side is record.Side.GUEST
            time = base * math.exp(value + (loss if guest else 0.0))
            if case.clock:
                time = max(math.floor(time * 100), 1) / 100
            done = outcome.Outcome(True, None, {'wall_s': outcome.Metric(
                time, 's', outcome.Direction.DOWN)})
            if case.hangs and guest and dice.random() < case.hangs:
                done = outcome.Outcome(False, 'stopped at its time limit')
            samples.append(record.Sample(
                side, pair, 2 * pair + guest, done,
                launch_id=str(pair // SAMPLES_OF_A_LAUNCH)
                if guest and case.launches else ''))
    return record.Run(
        'r', 'b', 'v', tuple(samples), planned_pairs=pairs,
        bounds={'wall_s': judgement.Bound(BOUND)})


def in_turn(dice: random.Random, after_guest: float, pairs: int,
            loss: float) -> record.Run:
    """Return a run with controls, whose native runs depend on those before.

    :param after_guest: how much slower a native run after one of the guest is
    """
    samples = []
    last = record.Side.NATIVE
    for planned in schedule.order(pairs, 1, seed=str(dice.random()),
                                  controls=CONTROLS):
        value = dice.gauss(0, SD)
        if planned.side is record.Side.GUEST:
            value += loss
        elif last is record.Side.GUEST:
            value += after_guest
        last = planned.side
        samples.append(record.Sample(
            planned.side, planned.pair, planned.position,
            outcome.Outcome(True, None, {'wall_s': outcome.Metric(
                math.exp(value), 's', outcome.Direction.DOWN)}),
            warm_up=planned.warm_up, control=planned.control))
    return record.Run('r', 'b', 'v', tuple(samples), planned_pairs=pairs,
                      planned_controls=CONTROLS,
                      bounds={'wall_s': judgement.Bound(BOUND)})


def relaunched(dice: random.Random, spread: float, pairs: int,
               loss: float) -> record.Run:
    """Return a run in several boots, whose number the first boots decide."""
    found = record.Run('r', 'hs06', 'v', (), planned_pairs=pairs,
                       relaunched=True,
                       bounds={'wall_s': judgement.Bound(BOUND)})
    boot = first = 0
    while first < pairs:
        level = loss + dice.gauss(0, spread)
        samples = [record.Sample(
            record.Side.GUEST, boot, len(found.samples),
            outcome.Outcome(True, None), warm_up=True, elapsed_s=1,
            environment={boots.RELAUNCH_S: str(RELAUNCH_S)})]
        last = first + boots.sizes(found)[boot]
        for pair in range(first, last):
            for side, mean in ((record.Side.NATIVE, 0.0),
                               (record.Side.GUEST, level)):
                samples.append(record.Sample(
                    side, pair, len(found.samples) + len(samples),
                    outcome.Outcome(True, None, {'wall_s': outcome.Metric(
                        math.exp(mean + dice.gauss(0, 0.01)), 's',
                        outcome.Direction.DOWN)}),
                    elapsed_s=1, launch_id=str(boot)))
        found = dataclasses.replace(found, samples=(*found.samples, *samples))
        boot, first = boot + 1, last
    return found


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0

"""Simulate how often verdicts are wrong, for many kinds of noise.

Each kind of noise gets guests exactly at the bound, where PASS and FAIL are
both wrong, guests that are as good as native, where FAIL is wrong, and guests
that lose twice as much as allowed. The verdicts are those of the program. With
``--csv`` the table goes to docs/source/verdict_rates.csv as well, which is
shown in docs/source/benchmarks.rst. Beside it are the rates of the previous
rules, by which Student's t decided where signed ranks could not, failed runs
did not count, stragglers had no length, and several numbers of pairs divided
the errors. The exit status is 1 if a rate is
above 5 % by more than three standard errors.
"""

import argparse
import csv
import dataclasses
import math
import pathlib
import random
import sys
from collections.abc import Callable
from collections.abc import Iterator
from concurrent import futures

from hpcvirt import text_table
from hpcvirt.bench.analysis import boots
from hpcvirt.bench.analysis import interim_analyses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.run import schedule

Word = judgement.VerdictResult
#: The metric is a time; the guest may take this much more.
BOUND = 1.05
LOSSES = {'bound': math.log(BOUND), 'equal': 0.0,
          'slow': math.log(2 * BOUND - 1)}
SAMPLES_OF_A_LAUNCH = 2
#: Standard deviation of a single run.
SD = 0.02
PROMISED = 0.05

#: Gives the logarithms of a pair of values for each pair: native, guest.
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
    """Noise of a machine that changes from run to run.

    :param step: the noise of a run, from its number and the noise before it
    """
    def noise(dice: random.Random,
              pairs: int) -> Iterator[tuple[float, float]]:
        values: dict[int, dict[record.Side, float]] = {}
        last = dice.gauss(0, SD)
        for planned in schedule.order(pairs, 0, lot=str(dice.random())):
            last = step(dice, planned.position, last)
            values.setdefault(planned.pair, {})[planned.side] = last
        for pair in values.values():
            yield pair[record.Side.NATIVE], pair[record.Side.GUEST]
    return noise


def _of_each_arm(correlation: float) -> Noise:
    def noise(dice: random.Random,
              pairs: int) -> Iterator[tuple[float, float]]:
        last = [dice.gauss(0, SD) / math.sqrt(1 - correlation ** 2)
                for _ in range(2)]
        for _ in range(pairs):
            last = [correlation * value + dice.gauss(0, SD) for value in last]
            yield last[0], last[1]
    return noise


def _launches(spread: float) -> Noise:
    def noise(dice: random.Random,
              pairs: int) -> Iterator[tuple[float, float]]:
        level = 0.0
        for pair in range(pairs):
            if pair % SAMPLES_OF_A_LAUNCH == 0:
                level = dice.gauss(0, spread)
            yield dice.gauss(0, 0.01), level + dice.gauss(0, 0.01)
    return noise


def _sometimes(chance: float, factor: float) -> Callable[[random.Random],
                                                         float]:
    def value(dice: random.Random) -> float:
        found = dice.gauss(0, SD)
        return found + (math.log(factor) if dice.random() < chance else 0.0)
    return value


def _normal(deviation: float) -> Callable[[random.Random], float]:
    return lambda dice: dice.gauss(0, deviation)


def _two_levels(dice: random.Random) -> float:
    """Return one of two speeds that are as frequent."""
    return dice.gauss(0, 0.003) + dice.choice((-0.015, 0.015))


@dataclasses.dataclass(frozen=True)
class Case:
    """How guests are measured, and what disturbs it.

    :ivar spread: how much boots differ, if a pilot chooses their number
    :ivar figures: number of figures with this noise, judged together
    :ivar attempts: how often the run is repeated; every word that it ever
        gets counts
    :ivar until_decided: the run stops as soon as its pairs decide
    :ivar launches: of the guest, of two pairs each
    :ivar clock: the times are full hundredths of a second
    :ivar hangs: part of the runs of the guest that do not end; words count
        from the first of these on
    :ivar is_bad: a typical run is as fast as native, but the tail is not
        acceptable: PASS is wrong, and FAIL is not
    """

    noise: Noise
    pairs: tuple[int, ...] = (5, 10, 20, 40)
    spread: float | None = None
    figures: int = 1
    attempts: int = 1
    until_decided: bool = False
    launches: bool = False
    clock: bool = False
    hangs: float = 0.0
    is_bad: bool = False
    purpose: record.Purpose = record.Purpose.COMPARE


def _louder_later(dice: random.Random,
                  pairs: int) -> Iterator[tuple[float, float]]:
    for pair in range(pairs):
        deviation = SD * (1 if pair < pairs / 2 else 3)
        yield dice.gauss(0, deviation), dice.gauss(0, deviation)


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
        _of_each_arm(0.5), (5, 10, 40),
        purpose=record.Purpose.UNPAIRED),
    '23 figures, guest with two levels': Case(
        _GUEST_OF_TWO_LEVELS, (5, 7, 10), figures=23),
    '23 figures, guest with two levels, unpaired': Case(
        _GUEST_OF_TWO_LEVELS, (5, 10), figures=23,
        purpose=record.Purpose.UNPAIRED),
    '23 figures, log-normal, CV 2 %': Case(
        _LOG_NORMAL, _SEVERAL, figures=23),
    'launches differ by 5 %': Case(_launches(0.05), _SEVERAL, launches=True),
    'clock of 10 ms, runs of 0.05 to 0.5 s': Case(
        _independent(_normal(0.01)), _SEVERAL, clock=True),
    'log-normal, CV 2 %, 3 attempts': Case(_LOG_NORMAL, (10,), attempts=3),
    '5 % of runs 3 times slower, 3 attempts': Case(
        _independent(_sometimes(0.05, 3.0)), (10,), attempts=3),
    'log-normal, CV 5 %, until decided': Case(
        _independent(_normal(0.05)), (40,), until_decided=True),
    'guest with two levels, until decided': Case(
        _GUEST_OF_TWO_LEVELS, (40,), until_decided=True),
    'guest: 10 % of runs hang, one has, 3 attempts': Case(
        _LOG_NORMAL, (10,), attempts=3, hangs=0.1, is_bad=True),
    'guest: 10 % of runs hang, one has, 5 attempts': Case(
        _LOG_NORMAL, (10,), attempts=5, hangs=0.1, is_bad=True),
    'native 5 % twice, guest 5 % ten times slower': Case(_independent(
        _sometimes(0.05, 2.0), _sometimes(0.05, 10.0)), (60,),
        is_bad=True),
    'boots differ by 1 %, pilot': Case(_LOG_NORMAL, _SEVERAL, spread=0.01),
    'boots differ by 5 %, pilot': Case(_LOG_NORMAL, _SEVERAL, spread=0.05),
    'log-normal, CV 4 %': Case(_independent(_normal(0.04)), (10,)),
    'log-normal, CV 4 %, until decided': Case(
        _independent(_normal(0.04)), (10,), until_decided=True),
    'log-normal, CV 8.5 %': Case(_independent(_normal(0.085)), (40,)),
    'log-normal, CV 8.5 %, until decided': Case(
        _independent(_normal(0.085)), (40,), until_decided=True),
    '5 % of runs 3 times slower, until decided': Case(
        _independent(_sometimes(0.05, 3.0)), (40,), until_decided=True),
    'noise three times larger later, until decided': Case(
        _louder_later, (40,), until_decided=True),
    '5 figures, log-normal, CV 5 %, until decided': Case(
        _independent(_normal(0.05)), (40,), figures=5, until_decided=True),
    'boots differ by 5 %, pilot, until decided': Case(
        _LOG_NORMAL, (40,), spread=0.05, until_decided=True),
}
#: The same simulated with the previous rules: false PASS, false FAIL
#: and PASS of equal guests, in percent.
BEFORE: dict[tuple[str, int], str] = {
    ('log-normal, CV 2 %', 5): '5.8 / 3.2 / 91',
    ('log-normal, CV 2 %', 10): '4.5 / 3.5 / 100',
    ('log-normal, CV 2 %', 20): '3.8 / 5.0 / 100',
    ('log-normal, CV 2 %', 40): '4.5 / 4.5 / 100',
    ('log-normal, CV 10 %', 5): '5.0 / 4.8 / 13',
    ('log-normal, CV 10 %', 10): '5.2 / 3.5 / 23',
    ('log-normal, CV 10 %', 40): '4.8 / 3.5 / 59',
    ('native CV 1 %, guest CV 5 %', 10): '2.5 / 4.5 / 81',
    ('native CV 1 %, guest CV 5 %', 20): '4.0 / 2.8 / 99',
    ('10 % of runs 1.25 times slower', 5): '3.5 / 2.0 / 46',
    ('10 % of runs 1.25 times slower', 10): '4.0 / 4.8 / 72',
    ('5 % of runs 3 times slower', 5): '2.5 / 4.5 / 55',
    ('5 % of runs 3 times slower', 10): '2.8 / 4.5 / 70',
    ('5 % of runs 3 times slower', 40): '5.2 / 6.2 / 88',
    ('exponential tail', 5): '3.0 / 5.0 / 39',
    ('exponential tail', 10): '7.8 / 5.0 / 68',
    ('exponential tail', 40): '4.5 / 3.8 / 100',
    ('guest with two levels', 5): '3.0 / 3.8 / 100',
    ('guest with two levels', 7): '5.2 / 4.2 / 100',
    ('guest with two levels', 8): '2.5 / 3.0 / 100',
    ('guest with two levels', 10): '6.8 / 4.8 / 100',
    ('drift of 0.5 % a run', 10): '5.0 / 4.5 / 100',
    ('drift of 0.5 % a run', 40): '3.8 / 4.8 / 100',
    ('AR(1) 0.5 on one time line', 10): '3.8 / 3.5 / 100',
    ('AR(1) 0.5 on one time line', 40): '4.5 / 5.0 / 100',
    ('AR(1) 0.5, each side by itself', 5): '3.5 / 7.0 / 40',
    ('AR(1) 0.5, each side by itself', 10): '3.5 / 3.2 / 57',
    ('AR(1) 0.5, each side by itself', 40): '4.5 / 3.8 / 100',
    ('23 figures, guest with two levels', 5): '40.0 / 52.0 / 100',
    ('23 figures, guest with two levels', 7): '12.0 / 16.0 / 100',
    ('23 figures, guest with two levels', 10): '2.0 / 2.0 / 100',
    ('23 figures, guest with two levels, unpaired', 5): '25.0 / 36.0 / 0',
    ('23 figures, guest with two levels, unpaired', 10): '6.0 / 4.0 / 63',
    ('23 figures, log-normal, CV 2 %', 10): '2.0 / 1.0 / 96',
    ('23 figures, log-normal, CV 2 %', 20): '6.0 / 6.0 / 100',
    ('launches differ by 5 %', 10): '6.0 / 3.2 / 49',
    ('launches differ by 5 %', 20): '6.0 / 4.5 / 86',
    ('clock of 10 ms, runs of 0.05 to 0.5 s', 10): '0.0 / 0.0 / 28',
    ('clock of 10 ms, runs of 0.05 to 0.5 s', 20): '0.0 / 0.0 / 32',
    ('log-normal, CV 2 %, 3 attempts', 10): '4.8 / 5.5 / 100',
    ('5 % of runs 3 times slower, 3 attempts', 10): '3.8 / 3.8 / 88',
    ('log-normal, CV 5 %, until decided', 40): '2.2 / 1.2 / 97',
    ('guest with two levels, until decided', 40): '2.8 / 3.2 / 100',
    ('boots differ by 1 %, pilot', 10): '4.5 / 5.5 / 100',
    ('boots differ by 1 %, pilot', 20): '4.0 / 5.5 / 100',
    ('boots differ by 5 %, pilot', 10): '6.0 / 2.5 / 64',
    ('boots differ by 5 %, pilot', 20): '5.8 / 4.0 / 93',
    ('guest: 10 % of runs hang, one has, 3 attempts', 10): '31.0 / - / -',
    ('guest: 10 % of runs hang, one has, 5 attempts', 10): '77.0 / - / -',
    ('native 5 % twice, guest 5 % ten times slower', 60): '87.8 / - / -',
    ('log-normal, CV 4 %', 10): '4.8 / 5.0 / 76',
    ('log-normal, CV 4 %, until decided', 10): '2.2 / 3.2 / 52',
    ('log-normal, CV 8.5 %', 40): '4.2 / 3.2 / 79',
    ('log-normal, CV 8.5 %, until decided', 40): '3.0 / 1.8 / 62',
    ('5 % of runs 3 times slower, until decided', 40): '4.0 / 2.5 / 95',
    ('noise three times larger later, until decided', 40): '4.0 / 2.2 / 100',
    ('5 figures, log-normal, CV 5 %, until decided', 40): '5.0 / 3.0 / 89',
    ('boots differ by 5 %, pilot, until decided', 40): '1.0 / 3.2 / 97',
}
COLUMNS = ('Noise', 'Pairs', 'False PASS, %', 'False FAIL, %',
           'FAIL of equal, %', 'PASS of equal, %', 'FAIL of slow, %',
           'Before: false PASS / false FAIL / PASS of equal, %')
CSV = (pathlib.Path(__file__).parents[1] / 'docs' / 'source'
       / 'verdict_rates.csv')
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
    args = parser.parse_args()
    cases = [(name, pairs, args.trials // (1 if case.figures == 1 else 4))
             for name, case in CASES.items()
             for pairs in case.pairs if args.only in name]
    with futures.ProcessPoolExecutor() as pool:
        found = list(pool.map(rates, *zip(*cases, strict=True)))
    failed = False
    rows = []
    for (name, pairs, trials), (at_bound, equal, slow) in zip(cases, found,
                                                         strict=True):
        errors = [at_bound[Word.PASS], at_bound[Word.FAIL], equal[Word.FAIL]]
        passed = f'{100 * equal[Word.PASS]:.0f}'
        if CASES[name].is_bad:
            errors, passed = [equal[Word.PASS]], ''
        failed |= max(errors) > PROMISED + 3 * math.sqrt(
            PROMISED * (1 - PROMISED) / trials)
        shown = [f'{100 * rate:.1f}' for rate in errors]
        rows.append((name, str(pairs), *shown, *[''] * (3 - len(shown)),
                     passed, f'{100 * slow[Word.FAIL]:.0f}',
                     BEFORE.get((name, pairs), '')))
    sys.stdout.write(text_table.draw(COLUMNS, rows, set(COLUMNS[1:]), 200))
    if args.csv:
        with CSV.open('w', newline='') as file:
            csv.writer(file, lineterminator='\n').writerows((COLUMNS, *rows))
    if failed:
        print('a rate of error is above 5 % by more than three standard '
              'errors', file=sys.stderr)
    return int(failed)


def rates(name: str, pairs: int, trials: int) -> list[dict[Word, float]]:
    """Simulate one kind of noise.

    :returns: the rate of each word: guests at the bound, as good as native,
        and twice as far as the bound. Of several figures, a word counts for
        the first two kinds if any figure has it, except PASS of an equal
        guest, which needs all.
    """
    found = []
    for kind, loss in LOSSES.items():
        dice = random.Random(f'{name} {pairs} {kind}')
        words = [_words(dice, CASES[name], pairs, loss)
                 for _ in range(trials)]
        found.append({word: sum(word in each for each in words) / trials
                      for word in Word})
    return found


def _words(dice: random.Random, case: Case, pairs: int,
           loss: float) -> set[Word]:
    """The words of all attempts on a guest, of a single one for most noise."""
    earlier: tuple[record.Attempt, ...] = ()
    words: set[Word] = set()
    base = 10 ** dice.uniform(math.log10(0.05), math.log10(0.5))
    for _ in range(case.attempts):
        if case.spread is not None:
            attempt = relaunched(dice, case.spread, pairs, loss)
        else:
            attempt = run(dice, case, pairs, loss, base)
        attempt = dataclasses.replace(attempt, earlier=earlier)
        found = _judge(dice, case, attempt, loss, base)
        earlier += (record.Attempt('r', '', pairs, attempt.samples),)
        if not case.hangs or not all(
                sample.outcome.valid for each in earlier
                for sample in each.samples):
            words |= found
    return words


def _judge(dice: random.Random, case: Case, first: record.Run, loss: float,
           base: float) -> set[Word]:
    runs = [first, *(
        dataclasses.replace(run(dice, case, first.planned_pairs, loss, base),
                            id=str(number), case=str(number))
        for number in range(1, case.figures))]
    found = (_until_decided(runs) if case.until_decided
             else verdict.judge(runs, tell=False))
    if case.figures == 1 or loss == LOSSES['equal']:
        return {found.result}
    # Each PASS and FAIL of a guest at the bound is wrong.
    return {figure.result for figure in found.judgements if figure.result}


def _until_decided(whole: list[record.Run]) -> judgement.Verdict:
    """Judge growing evidence as ``bench run --until-decided`` does."""
    looks = interim_analyses.plan(
        whole[0].planned_pairs, boots.MIN_PAIRS_WITH_PILOT
        if whole[0].relaunched else sample_pairs.MIN_PAIRS)
    for look in looks:
        found = verdict.judge([dataclasses.replace(
            each, interim_analyses=looks, samples=tuple(
                sample for sample in each.samples if sample.pair < look))
            for each in whole], tell=False)
        if found.result is not Word.INCONCLUSIVE:
            break
    return found


def run(dice: random.Random, case: Case, pairs: int, loss: float,
        base: float) -> record.Run:
    """A run of a guest with this loss.

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
        purpose=case.purpose, bounds={'wall_s': judgement.Bound(BOUND)})


def relaunched(dice: random.Random, spread: float, pairs: int,
               loss: float) -> record.Run:
    """A run in several boots, whose number the first boots decide."""
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

# SPDX-License-Identifier: Apache-2.0

"""Simulate how often verdicts are wrong, for many kinds of noise.

Each kind of noise gets guests exactly at the bound, where PASS and FAIL are
both wrong, guests that are as good as native, where FAIL is wrong, and guests
that lose twice as much as allowed. The verdicts are those of the program. The
table of docs/source/benchmarks.rst is printed by this script; the exit status
is 1 if a rate is above 5 % by more than three standard errors.
"""

import argparse
import dataclasses
import math
import random
import re
import sys
from collections.abc import Callable
from collections.abc import Iterator
from concurrent import futures

from hpcvirt import text_table
from hpcvirt.bench.analysis import boots
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


NOISE: dict[str, Noise] = {
    'log-normal, CV 2 %': _independent(_normal(SD)),
    'log-normal, CV 10 %': _independent(_normal(0.10)),
    'native CV 1 %, guest CV 5 %': _independent(_normal(0.01), _normal(0.05)),
    '10 % of runs 1.25 times slower': _independent(_sometimes(0.10, 1.25)),
    '5 % of runs 3 times slower': _independent(_sometimes(0.05, 3.0)),
    'exponential tail': _independent(lambda dice: dice.expovariate(20)),
    'drift of 0.5 % a run': _on_one_time_line(
        lambda dice, number, _: 0.005 * number + dice.gauss(0, SD)),
    'AR(1) 0.5 on one time line': _on_one_time_line(
        lambda dice, _, last: 0.5 * last + dice.gauss(0, SD)),
    'AR(1) 0.5, each side by itself': _of_each_arm(0.5),
    'launches differ by 1 %': _launches(0.01),
    'launches differ by 3 %': _launches(0.03),
    'launches differ by 5 %': _launches(0.05),
    'clock of 10 ms, runs of 0.05 to 0.5 s': _independent(_normal(0.01)),
    'log-normal, CV 2 %, 3 attempts': _independent(_normal(SD)),
    'log-normal, CV 2 %, 5 attempts': _independent(_normal(SD)),
    'log-normal, CV 2 %, 10 attempts': _independent(_normal(SD)),
    '5 % of runs 3 times slower, 10 attempts': _independent(
        _sometimes(0.05, 3.0)),
}
#: How much the boots of guests differ that are relaunched as a pilot shows.
BOOTS = {'boots differ by 1 %, pilot': 0.01,
         'boots differ by 3 %, pilot': 0.03,
         'boots differ by 5 %, pilot': 0.05}
#: Time to relaunch a guest, if each run takes 1.
RELAUNCH_S = 15
#: How the samples of some kinds of noise were taken.
UNPAIRED = 'AR(1) 0.5, each side by itself'
LAUNCHES = 'launches differ'
CLOCK = 'clock of 10 ms'
#: A case whose run is repeated; every word that it ever gets counts.
ATTEMPTS = re.compile(r', (\d+) attempts$')


def main() -> int:
    """Print the table.

    :returns: 1 if a rate is too high
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--trials', type=int, default=2000,
                        help='guests of each kind (default: 2000)')
    parser.add_argument('--pairs', type=int, nargs='+',
                        default=[5, 10, 20, 40],
                        help='numbers of pairs (default: 5 10 20 40)')
    args = parser.parse_args()
    cases = [(name, pairs, args.trials) for name in (*NOISE, *BOOTS)
             for pairs in args.pairs
             if not name.startswith((LAUNCHES, 'boots')) or pairs >= 10
             if not ATTEMPTS.search(name) or pairs <= 10]
    with futures.ProcessPoolExecutor() as pool:
        found = list(pool.map(rates, *zip(*cases, strict=True)))
    wrong = PROMISED + 3 * math.sqrt(PROMISED * (1 - PROMISED) / args.trials)
    failed = False
    rows = []
    for (name, pairs, _), (at_bound, equal, slow) in zip(cases, found,
                                                         strict=True):
        errors = at_bound[Word.PASS], at_bound[Word.FAIL], equal[Word.FAIL]
        failed |= max(errors) > wrong
        rows.append((name, str(pairs), *(
            f'{100 * rate:.1f}' for rate in errors), *(
            f'{100 * rate:.0f}' for rate in (equal[Word.PASS],
                                             slow[Word.FAIL]))))
    sys.stdout.write(text_table.draw(
        ('Noise', 'Pairs', 'False PASS', 'False FAIL', 'FAIL of equal',
         'PASS of equal', 'FAIL of slow'), rows,
        {'Pairs', 'False PASS', 'False FAIL', 'FAIL of equal',
         'PASS of equal', 'FAIL of slow'}, 200))
    if failed:
        print(f'a rate of error is above {wrong:.1%}', file=sys.stderr)
    return int(failed)


def rates(name: str, pairs: int, trials: int) -> list[dict[Word, float]]:
    """Simulate one kind of noise.

    :returns: the rate of each word: guests at the bound, as good as native,
        and twice as far as the bound
    """
    found = []
    for kind, loss in LOSSES.items():
        dice = random.Random(f'{name} {pairs} {kind}')
        words = [_words(dice, name, pairs, loss) for _ in range(trials)]
        found.append({word: sum(word in each for each in words) / trials
                      for word in Word})
    return found


def _words(dice: random.Random, name: str, pairs: int,
           loss: float) -> set[Word]:
    """The words of all attempts on a guest, of a single one for most noise."""
    repeated = ATTEMPTS.search(name)
    earlier: tuple[record.Attempt, ...] = ()
    words = set()
    base = 10 ** dice.uniform(math.log10(0.05), math.log10(0.5))
    for _ in range(int(repeated[1]) if repeated else 1):
        attempt = (relaunched(dice, BOOTS[name], pairs, loss)
                   if name in BOOTS else run(dice, name, pairs, loss, base))
        words.add(verdict.judge([
            dataclasses.replace(attempt, earlier=earlier)], tell=False).result)
        earlier += (record.Attempt('r', '', pairs, attempt.samples),)
    return words


def run(dice: random.Random, name: str, pairs: int, loss: float,
        base: float) -> record.Run:
    """A run of a guest with this loss.

    :param base: time of a native run in seconds
    """
    samples = []
    for pair, values in enumerate(NOISE[name](dice, pairs)):
        for side, value in zip((record.Side.NATIVE, record.Side.GUEST), values,
                              strict=True):
            guest = side is record.Side.GUEST
            time = base * math.exp(value + (loss if guest else 0.0))
            if name.startswith(CLOCK):
                time = max(math.floor(time * 100), 1) / 100
            samples.append(record.Sample(
                side, pair, 2 * pair + guest, outcome.Outcome(
                    True, None, {'wall_s': outcome.Metric(
                        time, 's', outcome.Direction.DOWN)}),
                launch_id=str(pair // SAMPLES_OF_A_LAUNCH)
                if guest and name.startswith(LAUNCHES) else ''))
    return record.Run(
        'r', 'b', 'v', tuple(samples), planned_pairs=pairs,
        purpose=record.Purpose.UNPAIRED if name == UNPAIRED
        else record.Purpose.COMPARE,
        bounds={'wall_s': judgement.Bound(BOUND)})


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

# SPDX-License-Identifier: Apache-2.0

"""Simulate how often honest outputs are taken for copies, and copies found.

Printed figures have few digits, so that honest figures repeat. Some machines
have two levels of speed, 10 % apart, as with and without turbo. The exit
status is 1 if significantly more than 5 % of honest runs are INVALID.
"""

import argparse
import math
import random
import sys

from hpcvirt import text_table
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

PROMISED = 0.05
PAIRS = (10, 20, 40)
#: Standard deviations of runs, in per cent.
DEVIATIONS = (0.1, 0.3, 1.0)
DIGITS = 4
#: How much slower a run without turbo is, and the share of such runs.
WITHOUT_TURBO, PART = math.log(1.1), 0.3
#: Numbers of outputs of which the guest has copies.
COPIED = (1, 3)


def main() -> int:
    """Print the table.

    :returns: 1 if a rate is too high
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--trials', type=int, default=300,
                        help='runs of each kind (default: 300)')
    trials = parser.parse_args().trials
    limit = PROMISED + 3 * math.sqrt(PROMISED * (1 - PROMISED) / trials)
    rows, worst = [], 0.0
    for deviation in DEVIATIONS:
        for pairs in PAIRS:
            honest, *copied = (rate(deviation / 100, pairs, outputs, trials)
                               for outputs in (0, *COPIED))
            worst = max(worst, honest)
            rows.append((f'{deviation} %', str(pairs), *(
                f'{100 * each:.1f}' for each in (honest, *copied))))
    headings = ('Runs vary by', 'Pairs', 'Honest, INVALID', *(
        f'Copies of {outputs}, INVALID' for outputs in COPIED))
    sys.stdout.write(text_table.draw(headings, rows, set(headings), 200))
    if worst > limit:
        print(f'more than {limit:.1%} of honest runs are INVALID',
              file=sys.stderr)
    return int(worst > limit)


def rate(deviation: float, pairs: int, outputs: int, trials: int) -> float:
    """Return the rate of INVALID.

    :param outputs: the number of outputs that the guest has copies of; 0 if
        its runs are honest
    """
    dice = random.Random(f'{deviation} {pairs} {outputs}')
    found = 0
    for _ in range(trials):
        typical = 10 ** dice.random()
        native = _times(dice, typical, deviation, pairs)
        guest = _times(dice, typical, deviation, outputs or pairs)
        if outputs:
            guest = dice.choices(guest, k=pairs)
        found += (verdict.judge([_run(native, guest)]).result
                  is judgement.VerdictResult.INVALID)
    return found / trials


def _times(dice: random.Random, typical: float, deviation: float,
           count: int) -> list[float]:
    return [float(f'{typical * math.exp(loss):.{DIGITS}g}') for loss in (
        dice.gauss(0, deviation) + (dice.random() < PART) * WITHOUT_TURBO
        for _ in range(count))]


def _run(native: list[float], guest: list[float]) -> record.Run:
    samples: list[record.Sample] = []
    for number, (side, values) in enumerate(
            ((record.Side.NATIVE, native), (record.Side.GUEST, guest))):
        for pair, value in enumerate(values):
            wall = outcome.Metric(value, 's', outcome.Direction.DOWN)
            samples.append(record.Sample(
                side, pair, 2 * pair + number,
                outcome.Outcome(True, None, {'wall_s': wall})))
    return record.Run(
        'r', 'npb-cg', 'mpi', host='n1', planned_pairs=len(native),
        bounds={'wall_s': judgement.Bound(100.0)}, samples=tuple(
            sorted(samples, key=lambda sample: sample.position)))


if __name__ == '__main__':
    sys.exit(main())

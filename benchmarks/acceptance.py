# SPDX-License-Identifier: Apache-2.0

"""Simulate how often the acceptance of a host against its class is wrong.

Levels vary between hosts and between the launches on a host, and runs vary
within a launch. The hosts of a class may become faster in the order of their
measurement, and the launches of the new host may vary more than those of its
peers. Hosts exactly at the bound must neither pass nor fail; typical hosts
must not fail, however much the class varies; hosts that are 15 % slower should
fail. The script prints benchmarks/results/acceptance_rates.csv.
The exit status is 1 if an error rate is above 5 % by more than three standard
errors.
"""

import argparse
import dataclasses
import math
import random
import sys
from concurrent import futures

from hpcvirt import text_table
from hpcvirt.acceptance import class_verdict
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

PROMISED = 0.05
#: The bound of the verdict, and a host that is clearly slower.
BOUND, SLOW = math.log(1.05), math.log(1.15)
#: The same for the quick gate.
GATE_BOUND, GATE_SLOW = math.log(1.10), math.log(1.25)
SAMPLES, LAUNCHES = 10, 5
#: How much slower a slow peer host is.
SLOW_PEER = 0.2


@dataclasses.dataclass(frozen=True)
class Class:
    """A class of hosts. Deviations are standard deviations of logarithms.

    :ivar hosts: deviation of the levels of hosts
    :ivar launches: deviation of the levels of launches on a host
    :ivar runs: deviation of the runs in a launch
    :ivar slow: the number of slow peer hosts
    :ivar skewed: the levels of hosts have an exponential tail
    :ivar own_launches: deviation of the levels of launches on the new host,
        None for that of its peers
    :ivar gain: by how much a typical new host is faster than the first host of
        the class
    :ivar once: the peer hosts were measured in one launch each
    """

    hosts: float
    launches: float
    runs: float
    slow: int = 0
    skewed: bool = False
    own_launches: float | None = None
    gain: float = 0.0
    once: bool = False


CLASSES = {
    'hosts 1 %, runs 1 %': Class(0.01, 0.0, 0.01),
    'hosts alike, launches 1 %': Class(0.0, 0.01, 0.01),
    'hosts alike, runs 2 %': Class(0.0, 0.0, 0.02),
    'hosts alike, runs 10 %': Class(0.0, 0.0, 0.1),
    'hosts 3 %, launches 1 %, runs 2 %': Class(0.03, 0.01, 0.02),
    'hosts 5 %, runs 2 %': Class(0.05, 0.0, 0.02),
    'hosts 3 %, with a tail': Class(0.03, 0.0, 0.01, skewed=True),
    'hosts 1 %, one slow peer host': Class(0.01, 0.0, 0.01, slow=1),
    'hosts 1 %, two slow peer hosts': Class(0.01, 0.0, 0.01, slow=2),
    'hosts 0.5 %, launches 0.5 %, of the new host 3 %':
        Class(0.005, 0.005, 0.005, own_launches=0.03),
    'hosts 0.5 %, launches 0.5 %, of the new host 3 %, peers in one launch':
        Class(0.005, 0.005, 0.005, own_launches=0.03, once=True),
    'hosts 0.5 %, the class gains 3 %': Class(0.005, 0.0, 0.005, gain=0.03),
    'hosts 1 %, the class gains 6 %': Class(0.01, 0.0, 0.01, gain=0.06),
}


def main() -> int:
    """Print the table.

    :returns: 1 if a rate is too high
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--trials', type=int, default=2000,
                        help='hosts of each kind (default: 2000)')
    parser.add_argument('--peers', type=int, nargs='+', default=[5, 8, 20],
                        help='numbers of peer hosts (default: 5 8 20)')
    parser.add_argument('--gate', action='store_true',
                        help='measure the hosts themselves, as the quick gate '
                        'does: in one launch, with its bound')
    args = parser.parse_args()
    cases: list[tuple[str, int, int, bool]] = []
    for name, kind in CLASSES.items():
        # The boots of a host cannot differ within one.
        if not args.gate or kind.own_launches is None:
            cases += [(name, count, args.trials, args.gate)
                      for count in args.peers]
    with futures.ProcessPoolExecutor() as pool:
        found = list(pool.map(rates, *zip(*cases, strict=True)))
    wrong = limit(args.trials)
    rows = [(name, str(count), *(f'{100 * rate:.1f}' for rate in each))
            for (name, count, *_), each in zip(cases, found, strict=True)]
    headings = ('Class', 'Peer hosts', 'False PASS', 'False FAIL',
                'FAIL of typical', 'PASS of typical', 'FAIL of slow')
    sys.stdout.write(text_table.draw(headings, rows, set(headings[1:]), 200))
    failed = max(max(each[:3]) for each in found) > wrong
    if failed:
        print(f'a rate of error is above {wrong:.1%}', file=sys.stderr)
    return int(failed)


def limit(trials: int) -> float:
    """Return the largest rate that is not significantly above 5 %."""
    return PROMISED + 3 * math.sqrt(PROMISED * (1 - PROMISED) / trials)


def rates(name: str, peers: int, trials: int, gate: bool = False,
          ) -> tuple[float, float, float, float, float]:
    """Simulate one kind of class.

    :returns: the rates of PASS and of FAIL at the bound, of FAIL and of PASS
        of typical hosts, of FAIL of slow hosts
    """
    dice = random.Random(f'{name} {peers}')
    kind = CLASSES[name]
    bound, slow = (GATE_BOUND, GATE_SLOW) if gate else (BOUND, SLOW)
    words = {loss: [_word(dice, kind, peers, loss, gate)
                    for _ in range(trials)] for loss in (bound, None, slow)}
    return tuple(words[loss].count(word) / trials for loss, word in (
        (bound, judgement.VerdictResult.PASS),
        (bound, judgement.VerdictResult.FAIL),
        (None, judgement.VerdictResult.FAIL),
        (None, judgement.VerdictResult.PASS),
        (slow, judgement.VerdictResult.FAIL)))


def _word(dice: random.Random, kind: Class, peers: int,
          loss: float | None, gate: bool) -> judgement.VerdictResult:
    """Judge a host.

    :param loss: None for a typical host
    """
    own = _run(dice, kind, 'new', _typical(dice, kind)
               if loss is None else loss, peers, gate)
    stored = [_run(dice, kind, f'n{number}', _typical(dice, kind) + (
        SLOW_PEER if number < kind.slow else 0)
        + kind.gain * (1 - number / peers), number, gate)
        for number in range(peers)]
    return class_verdict.judge([own], stored).result


def _typical(dice: random.Random, kind: Class) -> float:
    if kind.skewed:
        # Its median is that of the class.
        return kind.hosts * (dice.expovariate(1) - math.log(2))
    return dice.gauss(0, kind.hosts)


def _run(dice: random.Random, kind: Class, host: str, level: float,
         day: int, gate: bool) -> record.Run:
    is_new = host == 'new'
    launches = LAUNCHES if not gate and (is_new or not kind.once) else 1
    samples = sample_pairs.MIN_PAIRS if gate else SAMPLES
    deviation = kind.launches
    if is_new and kind.own_launches is not None:
        deviation = kind.own_launches
    levels = [level + dice.gauss(0, deviation) for _ in range(launches)]
    return record.Run(
        id=host, benchmark='hs06', variant='', host=host,
        purpose=record.Purpose.UNPAIRED,
        launch=None if gate else record.Launch.WARM, planned_pairs=samples,
        started_at=f'2026-11-{day + 1:02d}T00:00:00+00:00',
        samples=tuple(record.Sample(
            record.Side.GUEST, number, number, outcome.Outcome(True, None, {
                'score': outcome.Metric(
                    100 * math.exp(-levels[number * launches // samples]
                                   - dice.gauss(0, kind.runs)),
                    'HS06', outcome.Direction.UP)}),
            launch_id=f'{host} {number * launches // samples}')
            for number in range(samples)))


if __name__ == '__main__':
    sys.exit(main())

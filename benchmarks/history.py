# SPDX-License-Identifier: Apache-2.0

"""Simulate the false alarms and the detections in the history of hosts.

A host is measured repeatedly, and its history is judged after every run. A
history has a false alarm if any judgement of a steady host names a change, or
calls it slower than its peers. Of the hosts that become slower, the script
counts those that are detected, and after how many runs. It prints the tables
history_rates of benchmarks/results. The exit status is 1 if a rate of
false alarms is above 5 % by more than three standard errors.
"""

import argparse
import itertools
import math
import random
import statistics
import sys
from collections.abc import Callable
from collections.abc import Iterator
from concurrent import futures

from hpcvirt import text_table
from hpcvirt.bench.analysis import trends
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

PROMISED = 0.05
#: A host is judged after each run.
RUNS = 50
#: Before anything changes.
STEADY_RUNS = 10
#: A step is repaired after this number of runs.
REPAIRED_AFTER = 20
OUTLIERS = 0.05
TIMES_SLOWER = 3.0

#: Gives the logarithms of the times of a host.
Noise = Callable[[random.Random], Iterator[float]]


def _noise(deviation: float, correlation: float = 0.0,
           outliers: float = 0.0) -> Noise:
    """Yield normal noise in which each run may resemble the previous one."""
    def noise(dice: random.Random) -> Iterator[float]:
        last = dice.gauss(0, deviation)
        while True:
            yield last + (math.log(TIMES_SLOWER)
                          if dice.random() < outliers else 0.0)
            last = correlation * last + dice.gauss(
                0, deviation * math.sqrt(1 - correlation ** 2))
    return noise


NOISE: dict[str, Noise] = {
    'CV 1 %': _noise(0.01),
    'CV 5 %': _noise(0.05),
    'CV 10 %': _noise(0.10),
    'CV 1 %, AR(1) 0.5': _noise(0.01, 0.5),
    'CV 5 %, AR(1) 0.5': _noise(0.05, 0.5),
    'CV 10 %, AR(1) 0.5': _noise(0.10, 0.5),
    'CV 5 %, AR(1) 0.8': _noise(0.05, 0.8),
    'CV 5 %, AR(1) 0.9': _noise(0.05, 0.9),
    'CV 10 %, AR(1) 0.9': _noise(0.10, 0.9),
    'CV 1 %, 5 % of runs 3 times slower': _noise(0.01, 0.0, OUTLIERS),
    'CV 5 %, 5 % of runs 3 times slower': _noise(0.05, 0.0, OUTLIERS),
    'CV 5 %, AR(1) 0.5, 5 % of runs 3 times slower':
        _noise(0.05, 0.5, OUTLIERS),
}
#: The loss of a host after some runs since it began.
CHANGES: dict[str, Callable[[int], float]] = {
    'Creep 0.5 %': lambda runs: runs * math.log(1.005),
    'Creep 1 %': lambda runs: runs * math.log(1.01),
    'Creep 3 %': lambda runs: runs * math.log(1.03),
    'Step 10 %': lambda _: math.log(1.1),
    'Step 30 %': lambda _: math.log(1.3),
}
#: Hosts that are compared with each other, over half as many runs.
HOSTS = (4, 10)
AMONG_HOSTS = ('CV 5 %', 'CV 10 %, AR(1) 0.5', 'CV 5 %, AR(1) 0.9',
               'CV 5 %, AR(1) 0.5, 5 % of runs 3 times slower')
SLOW = math.log(1.3)


def main() -> int:
    """Print the tables.

    :returns: 1 if a rate is too high
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--trials', type=int, default=300,
                        help='histories of each kind (default: 300)')
    args = parser.parse_args()
    names = list(NOISE)
    with futures.ProcessPoolExecutor() as pool:
        alone = list(pool.map(of_a_host, names, [args.trials] * len(names)))
        groups = list(itertools.product(AMONG_HOSTS, HOSTS))
        among = list(pool.map(of_hosts, *zip(*groups, strict=True),
                              [args.trials // 2] * len(groups)))
    columns = ('False alarm', *CHANGES, 'Repaired')
    sys.stdout.write(text_table.draw(
        ('Noise', *columns), [
            (name, f'{100 * alarms:.1f}', *(
                f'{100 * part:.0f} ({runs:.0f})' if part else '0'
                for part, runs in found),
             f'{100 * cleared:.0f}')
            for name, (alarms, found, cleared) in zip(names, alone,
                                                      strict=True)],
        set(columns), 200))
    columns = ('Hosts', 'False alarm', 'Slow host found', 'Others named')
    sys.stdout.write(text_table.draw(
        ('Noise', *columns), [
            (name, str(hosts), *(f'{100 * rate:.1f}' for rate in rates))
            for (name, hosts), rates in zip(groups, among, strict=True)],
        set(columns), 200))
    wrong = [rate > limit(args.trials) for rate, _, _ in alone] + [
        rate > limit(args.trials // 2) for rate, _, _ in among]
    if any(wrong):
        print('there are more false alarms than promised', file=sys.stderr)
    return int(any(wrong))


def limit(trials: int) -> float:
    """Return the largest rate that is not significantly above 5 %."""
    return PROMISED + 3 * math.sqrt(PROMISED * (1 - PROMISED) / trials)


def of_a_host(name: str, trials: int) -> tuple[
        float, list[tuple[float, float]], float]:
    """Simulate a host alone.

    :returns: rate of histories with a false alarm; for each change the rate of
        detection and the median number of runs until then; rate of repaired
        hosts that are not named at the end
    """
    alarms = sum(first_alarm(series(f'{name} {trial}', name)) is not None
                 for trial in range(trials)) / trials
    found = []
    for what, loss in CHANGES.items():
        runs = [first_alarm(series(f'{name} {what} {trial}', name, loss))
                for trial in range(trials // 5)]
        after = [run - STEADY_RUNS for run in runs
                 if run is not None and run > STEADY_RUNS]
        found.append((len(after) / len(runs),
                      statistics.median(after) if after else math.inf))
    cleared = sum(
        drift(results({'n1': series(
            f'{name} repaired {trial}', name, lambda runs: math.log(1.3)
            if runs < REPAIRED_AFTER else 0.0)})) is None
        for trial in range(trials // 5)) / (trials // 5)
    return alarms, found, cleared


def series(seed: str, name: str,
           loss: Callable[[int], float] = lambda _: 0.0) -> list[float]:
    """Return the times of a host, which changes after STEADY_RUNS."""
    dice = random.Random(seed)
    return [math.exp(value + (loss(number - STEADY_RUNS)
                              if number >= STEADY_RUNS else 0.0))
            for number, value in zip(range(RUNS), NOISE[name](dice),
                                     strict=False)]


def drift(runs: list[record.Result]) -> float | None:
    """Return the drift that the program finds on a host."""
    found, = trends.time_series(runs)
    return found.drift


def first_alarm(times: list[float]) -> int | None:
    """Return the number of runs after which the program names a change."""
    found = results({'n1': times})
    return next((runs for runs in range(1, len(found) + 1)
                 if drift(found[:runs]) is not None), None)


def of_hosts(name: str, hosts: int, trials: int) -> tuple[float, float, float]:
    """Simulate several hosts that are measured in turn.

    :returns: rate of histories in which a host is falsely called slow; rate in
        which a slow host is called slow, and rate in which another one is
        called slow because of it
    """
    false, slow, wrong = 0, 0, 0
    for trial in range(trials):
        times = {f'n{host}': series(f'{name} {trial} {hosts} {host}', name)
                 for host in range(hosts)}
        false += bool(named(times))
        times['n0'] = [value * math.exp(SLOW) for value in times['n0']]
        found = named(times)
        slow += 'n0' in found
        wrong += bool(found - {'n0'})
    return false / trials, slow / trials, wrong / trials


def named(times: dict[str, list[float]]) -> set[str]:
    """Return the hosts that are called slow in any judgement."""
    found = results(times)
    slow: set[str] = set()
    for runs in range(1, RUNS // 2 + 1):
        series = trends.time_series(found[:runs * len(times)])
        slow.update(one_host.key.host for one_host in series
                    if one_host.behind is not None)
    return slow


def results(times: dict[str, list[float]]) -> list[record.Result]:
    """Yield the results in a store after each of these runs."""
    found: list[record.Result] = []
    for number, values in enumerate(zip(*times.values(), strict=True)):
        for host, value in zip(times, values, strict=True):
            wall = outcome.Metric(value, 's', outcome.Direction.DOWN)
            sample = record.Sample(
                record.Side.NATIVE, 0, 0,
                outcome.Outcome(True, None, {'wall_s': wall}))
            run = record.Run(
                f'{host}-{number}', 'b', 'v', host=host,
                started_at=f'{number:04d}', samples=(sample,))
            found.append(record.Result((run,)))
    return found


if __name__ == '__main__':
    sys.exit(main())

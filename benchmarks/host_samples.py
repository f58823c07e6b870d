# SPDX-License-Identifier: Apache-2.0

"""Samples of hosts that do not exist: healthy, with noise, and slow ones.

The noise is meant to be worse than that of a real host. Each quantity follows
a day, wanders (an autoregressive process of its logarithm), and has bursts
whose lengths and heights have heavy tails (Pareto distributions): the same
that make averages of a day useless on real hosts.
"""

import dataclasses
import itertools
import math
import random
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.health import host_sample

CPUS = 32
INTERVAL_S = 60.0
_TICKS = 100
_MEMORY_KIB = 64 << 20


@dataclasses.dataclass(frozen=True)
class Noise:
    """How a quantity varies on a healthy host.

    :ivar usual: its median
    :ivar wander: the standard deviation of its logarithm
    :ivar day: the amplitude of the day in its logarithm
    :ivar bursts: in a day
    :ivar height: of most bursts; one in a hundred is ten times as high
    :ivar most: it is never higher
    """

    usual: float
    wander: float = 0.4
    day: float = 0.5
    bursts: float = 4.0
    height: float = 0.0
    most: float = math.inf


#: For each CPU and second, as a fraction, in pages per second, in a minute.
HEALTHY = {
    'system': Noise(0.03, height=0.15, most=0.9),
    'interrupts': Noise(1200.0, height=2500.0, most=50_000.0),
    'shootdowns': Noise(30.0, 0.8, height=300.0, most=50_000.0),
    'iowait': Noise(0.004, 0.8, height=0.15, bursts=6.0, most=0.9),
    'swapped': Noise(0.0, bursts=2.0, height=50.0),
    'steal': Noise(0.0001, bursts=1.0, height=0.01, most=0.5),
    'foreign_tasks': Noise(0.0008, 0.8, height=0.01, bursts=10.0, most=0.5),
    'errors': Noise(0.0, bursts=0.02, height=1.0),
    'throttles': Noise(0.0, bursts=1.0, height=0.2),
    'slab': Noise(0.0),
}

#: What the published slow hosts did [CERN-HEPiX-2015].
SHOOTDOWNS = {'system': 0.4, 'interrupts': 120_000 / 32,
              'shootdowns': 80_000 / 32}
SWAPPING = {'iowait': 0.25, 'swapped': 2000.0}


class _Wanderer:
    """One quantity of one host."""

    def __init__(self, noise: Noise, dice: random.Random) -> None:
        self._noise = noise
        self._dice = dice
        self._level = dice.gauss(0.0, 1.0)
        self._left_s = 0.0
        self._height = 0.0

    def next(self, day: float) -> float:
        """Go on for an interval.

        :param day: the phase of the day, from -1 to 1
        """
        noise, dice = self._noise, self._dice
        # A correlation of an hour.
        keep = math.exp(-INTERVAL_S / 3600.0)
        self._level = keep * self._level + math.sqrt(
            1 - keep * keep) * dice.gauss(0.0, 1.0)
        value = noise.usual * math.exp(
            noise.wander * self._level + noise.day * day)
        if self._left_s <= 0 and dice.random() < (
                noise.bursts * INTERVAL_S / 86400.0):
            # A minute at least, half of them longer than two.
            self._left_s = 60.0 * dice.paretovariate(1.2)
            self._height = noise.height * dice.paretovariate(2.0)
        if self._left_s > 0:
            self._left_s -= INTERVAL_S
            value += self._height * dice.uniform(0.5, 1.0)
        return min(value, noise.most)


def healthy(dice: random.Random, samples: int,
            noises: Mapping[str, Noise] = HEALTHY,
            ) -> Iterator[dict[str, float]]:
    """Yield what a healthy host does in one interval after the other."""
    wanderers = {name: _Wanderer(noise, dice)
                 for name, noise in noises.items()}
    phase = dice.uniform(0.0, 2 * math.pi)
    for number in range(samples):
        day = math.sin(phase + 2 * math.pi * number * INTERVAL_S / 86400.0)
        yield {name: each.next(day) for name, each in wanderers.items()}


def make_samples(rates: Iterable[Mapping[str, float]],
              first: host_sample.HostSample
              | None = None) -> Iterator[host_sample.HostSample]:
    """Yield the samples of a host: the first one, and one after each interval.

    :param rates: see :data:`HEALTHY`; the fractions are of all CPUs
    :param first: begin here
    """
    last = first or _start()
    if first is None:
        yield last
    for each in rates:
        last = _after(last, each)
        yield last


def between(before: Iterable[Mapping[str, float]], slow: Mapping[str, float],
            samples: int) -> Iterator[dict[str, float]]:
    """Let a healthy host be slow for some intervals."""
    for each in itertools.islice(before, samples):
        yield {**each, **slow}


def _start() -> host_sample.HostSample:
    return host_sample.HostSample(
        time=1.8e9, boot_id='one', uptime_s=1000.0, online=f'0-{CPUS - 1}',
        cpus=CPUS, cpu_time=host_sample.CpuTime(
            total=10 ** 8, system=10 ** 6, iowait=10 ** 6, steal=0),
        interrupts=10 ** 9, shootdowns=10 ** 8, swapped_pages=0, ksm_pages=0,
        slab_kib=1 << 20, memory_kib=_MEMORY_KIB, foreign_tasks_s=0.0,
        dedicated=CPUS, corrected_errors=0, throttles=0)


def _after(last: host_sample.HostSample,
           rates: Mapping[str, float]) -> host_sample.HostSample:
    ticks = round(INTERVAL_S * _TICKS * CPUS)
    times = last.cpu_time or _start().cpu_time
    return dataclasses.replace(
        last, time=last.time + INTERVAL_S,
        uptime_s=last.uptime_s + INTERVAL_S,
        cpu_time=host_sample.CpuTime(
            total=times.total + ticks, **{
                name: getattr(times, name)
                + round(ticks * rates.get(name, 0.0))
                for name in ('system', 'iowait', 'steal')}),
        interrupts=(last.interrupts or 0) + round(
            INTERVAL_S * CPUS * rates.get('interrupts', 0.0)),
        shootdowns=((last.shootdowns or 0) + round(
            INTERVAL_S * CPUS * rates.get('shootdowns', 0.0))) % (1 << 32),
        swapped_pages=(last.swapped_pages or 0) + round(
            INTERVAL_S * rates.get('swapped', 0.0)),
        slab_kib=(last.slab_kib or 0) + round(
            _MEMORY_KIB * rates.get('slab', 0.0)),
        foreign_tasks_s=(last.foreign_tasks_s or 0.0) + (
            INTERVAL_S * CPUS * rates.get('foreign_tasks', 0.0)),
        corrected_errors=(last.corrected_errors or 0) + round(
            rates.get('errors', 0.0)),
        throttles=(last.throttles or 0) + round(
            CPUS * rates.get('throttles', 0.0)))

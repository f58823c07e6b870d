# SPDX-License-Identifier: Apache-2.0

"""Simulate the rates of hosts, healthy with noise and slow ones.

The noise is worse than that of real hosts. Each quantity has a daily cycle, an
autoregressive logarithm with a correlation time of an hour, and bursts whose
lengths and heights have heavy tails (Pareto distributions). A burst affects
one CPU, all CPUs, or any number in between. CPUs differ from each other and
from minute to minute.
"""

import dataclasses
import math
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping

import numpy

from hpcvirt.health.signature import HOST
from hpcvirt.health.signature import Quantity

INTERVAL_S = 60.0
MINUTES = 1440


@dataclasses.dataclass(frozen=True)
class Noise:
    """The noise of a quantity on a healthy host.

    :ivar usual: median of the quantity, for each CPU if it is per CPU
    :ivar wander: standard deviation of its logarithm
    :ivar day: amplitude of the daily cycle of its logarithm
    :ivar bursts: number of bursts in a day
    :ivar height: typical height of bursts; one in a hundred is ten times as
        high
    :ivar most: upper limit of the quantity
    """

    usual: float
    wander: float = 0.4
    day: float = 0.5
    bursts: float = 4.0
    height: float = 0.0
    most: float = math.inf


#: Noise of each CPU: fractions of its time, or events per second.
CPU_NOISE = {
    Quantity.SYSTEM: Noise(0.03, height=0.15, most=0.9),
    Quantity.INTERRUPTS: Noise(1200.0, height=2500.0, most=50_000.0),
    Quantity.SHOOTDOWNS: Noise(30.0, 0.8, height=300.0, most=50_000.0),
    Quantity.STEAL: Noise(0.0001, bursts=1.0, height=0.01, most=0.5),
    Quantity.FOREIGN_TASKS: Noise(0.0008, 0.8, height=0.01, bursts=10.0,
                                  most=0.5),
}
#: Noise of a host: CPUs of 32, pages per second, and so on.
HOST_NOISE = {
    Quantity.IOWAIT: Noise(0.004 * 32, 0.8, height=0.15 * 32, bursts=6.0,
                           most=0.9 * 32),
    Quantity.SWAPPED: Noise(0.0, bursts=2.0, height=50.0),
    Quantity.MAJOR_FAULTS: Noise(0.05, 0.8, bursts=4.0, height=20.0),
    Quantity.SLAB: Noise(0.004, 0.1, 0.0, 0.0),
    Quantity.SLOWDOWN: Noise(0.02, bursts=2.0, height=0.05, most=0.3),
    Quantity.THROTTLED_S: Noise(0.0, bursts=1.0, height=2.0),
    Quantity.CORRECTED_ERRORS: Noise(0.0, bursts=0.02, height=5.0),
    Quantity.UNCORRECTED_ERRORS: Noise(0.0, bursts=0.0),
    Quantity.LINK_LOSS: Noise(0.0, bursts=0.0),
}
#: The unit of quantities that have a single unit in this simulation.
UNITS = {Quantity.MAJOR_FAULTS: 'guest-1', Quantity.SLOWDOWN: 'cpu0',
         Quantity.THROTTLED_S: 'cpu0-core', Quantity.LINK_LOSS: '0000:3b:00.0',
         Quantity.CORRECTED_ERRORS: 'mc0', Quantity.UNCORRECTED_ERRORS: 'mc0'}

#: CPUs below half of the limit of a sign are not yielded.
LOOKED_AT = {Quantity.SYSTEM: 0.12, Quantity.INTERRUPTS: 7500.0,
             Quantity.STEAL: 0.05, Quantity.FOREIGN_TASKS: 0.1}

#: The rates of some minutes: an array of minutes by CPUs, or of minutes.
Arrays = dict[Quantity, numpy.ndarray]


class Host:
    """A simulated host, whose noise continues from call to call."""

    def __init__(self, seed: list[int], cpus: int, level: float = 0.0) -> None:
        """Create a host.

        :param level: standard deviation of the logarithm between hosts
        """
        self.dice = numpy.random.default_rng(seed)
        self.cpus = cpus
        self._all = {**CPU_NOISE, **HOST_NOISE}
        self._levels = {name: self.dice.normal() for name in self._all}
        self._scales = {name: math.exp(level * self.dice.normal())
                        for name in self._all}
        self._unlike = numpy.exp(0.3 * self.dice.normal(size=cpus))
        self._phase = self.dice.uniform(0, MINUTES)

    def make_minutes(self, first: int, minutes: int) -> Arrays:
        """Generate the noise of some minutes.

        :param first: number of the first minute since midnight
        """
        found: Arrays = {}
        days = numpy.sin(2 * math.pi * (
            self._phase + first + numpy.arange(minutes)) / MINUTES)
        for name, noise in self._all.items():
            keep = math.exp(-INTERVAL_S / 3600)
            steps = math.sqrt(1 - keep * keep) * self.dice.normal(size=minutes)
            walk = numpy.empty(minutes)
            level = self._levels[name]
            for number, step in enumerate(steps.tolist()):
                level = keep * level + step
                walk[number] = level
            self._levels[name] = level
            values = self._scales[name] * noise.usual * numpy.exp(
                noise.wander * walk + noise.day * days)
            if name in CPU_NOISE:
                values = values[:, None] * self._unlike * numpy.exp(
                    0.3 * self.dice.standard_normal(
                        (minutes, self.cpus), dtype=numpy.float32))
            for _ in range(self.dice.poisson(noise.bursts * minutes / MINUTES)
                           if noise.height else 0):
                begin = int(self.dice.integers(minutes))
                # A minute at least, half of them longer than two.
                rows = slice(begin, begin + 1 + int(
                    min(minutes, self.dice.pareto(1.2) + 1)))
                height = noise.height * (1 + self.dice.pareto(2.0))
                if name in CPU_NOISE:
                    number = int(self.cpus ** self.dice.uniform())
                    values[rows, self.dice.permutation(
                        self.cpus)[:number]] += height
                else:
                    values[rows] += height
            found[name] = numpy.minimum(values, noise.most)
        # What is rare is counted for half an hour.
        return found


#: Changes the rates of some minutes, from the minute of the day on.
Change = Callable[[Arrays, Host, int], None]


def make_rates(arrays: Arrays) -> Iterator[Mapping]:
    """Yield rates as ``signature.compute_rates`` does, minute by minute.

    CPUs that are far from every sign are left out.
    """
    minutes, cpus = arrays[Quantity.SYSTEM].shape
    looked_at = numpy.zeros((minutes, cpus), bool)
    for name, least in LOOKED_AT.items():
        if name is Quantity.SYSTEM:
            looked_at |= (arrays[name] >= least) & (
                arrays[Quantity.SHOOTDOWNS] >= 625.0)
        else:
            looked_at |= arrays[name] >= least
    totals = {name: arrays[name].sum(axis=1).tolist() for name in CPU_NOISE}
    plain = {name: arrays[name].tolist() for name in HOST_NOISE}
    busy = dict.fromkeys(range(cpus), 1.0)
    units = [f'cpu{cpu}' for cpu in range(cpus)]
    for minute in range(minutes):
        places = numpy.nonzero(looked_at[minute])[0]
        names = [units[place] for place in places]
        yield {
            Quantity.BUSY: busy,
            **{name: {HOST: totals[name][minute], **dict(zip(
                names, arrays[name][minute, places].tolist(), strict=True))}
               for name in CPU_NOISE},
            **{name: {UNITS.get(name, HOST): values[minute]}
               for name, values in plain.items()}}

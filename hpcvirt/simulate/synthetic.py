# SPDX-License-Identifier: Apache-2.0

"""Create workloads from models; the same seed gives the same workload.

``lublin``
    The jobs of a parallel computer with 256 processors, after
    [Lublin-Feitelson-2003]: sizes near powers of two, run times that are
    longer for larger jobs, arrivals with a daily cycle. The parameters are
    those of the paper for all jobs of its logs.
``cloud``
    Instances of the flavors of the fleet: independent requests, log-normal
    lives, some of which are ten times longer than others, and the same
    CPU-hours of each flavor on average.
"""

import dataclasses
import math
import random
import re
from collections.abc import Iterator
from collections.abc import Sequence

from scipy import special

from hpcvirt import exception
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import workload as workloads

MODELS = ('lublin', 'cloud')
#: The default number of jobs.
JOBS = 10_000
_MAX_JOBS = 1_000_000

#: The processors of the computer; those in the paper have 128 to 1,024.
PROCESSORS = 256
#: Probabilities of a job of one processor, and of a power of two.
_SERIAL, _POWER_OF_TWO = 0.244, 0.576
#: The logarithm (base 2) of the size of a parallel job is uniform between the
#: first two with the probability, and between the last two otherwise.
_LOW, _HIGH = 0.8, math.log2(PROCESSORS)
_MIDDLE, _BELOW = _HIGH - 2.5, 0.86
#: Shapes and scales of the two gamma distributions of the logarithm of a run
#: time; the probability of the first is linear in the size.
_SHORT, _LONG = (4.2, 0.94), (312, 0.03)
_SLOPE, _INTERCEPT = -0.0054, 0.78
#: Longer run times are drawn again.
_MAX_LOG_RUN_TIME = 12
#: Shape and scale of the logarithm of the time between two arrivals; longer
#: times are drawn again.
_BETWEEN = (10.2303 * 1.0225, 0.4871)
_MAX_LOG_BETWEEN = 13
#: Shape and scale of the distribution of arrivals over the half hours of a
#: day, which begins with the 11th half hour.
_DAY = (8.1737, 3.9631)
_FIRST_HALF_HOUR, _HALF_HOURS = 11, 48
_HALF_HOUR_S = 1800

#: Mean life of an instance, a week, and mean time between requests, an hour.
_LIFE_S, _BETWEEN_S = 7 * 86400, 3600
#: The standard deviation of the logarithm of lives.
_SIGMA = 1.2


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A model with a number of jobs."""

    name: str
    jobs: int

    def workload(self, seed: int, flavors: Sequence[flavor_model.Flavor],
                 ) -> workloads.Workload:
        """Create a workload.

        :param flavors: flavors of the fleet, which ``cloud`` requests
        :raises InvalidInput: if there are no flavors to request
        """
        dice = random.Random(seed)  # noqa: S311 - no secret
        name = f'{self.name}:{self.jobs}, seed {seed}'
        if self.name == 'lublin':
            return workloads.Workload(
                name, tuple(_parallel_jobs(self.jobs, dice)), splits=True)
        if not flavors:
            raise exception.InvalidInput(self.name, 'there are no flavors to '
                                         'request')
        return workloads.Workload(
            name, tuple(_instances(self.jobs, flavors, dice)),
            {flavor.name: flavor for flavor in flavors})


def parse(text: str) -> Model | None:
    """Parse the name of a model and its number of jobs: ``cloud:20000``.

    :returns: None if the text does not begin with the name of a model
    :raises InvalidInput: if the number of jobs is invalid
    """
    name, colon, number = text.partition(':')
    if name not in MODELS:
        return None
    jobs = int(number) if re.fullmatch('[0-9]{1,7}', number) else 0
    if colon and not 1 < jobs <= _MAX_JOBS:
        raise exception.InvalidInput(
            text, f'the number of jobs must be from 2 to {_MAX_JOBS}')
    return Model(name, jobs if colon else JOBS)


def _parallel_jobs(jobs: int,
                   dice: random.Random) -> Iterator[workloads.WorkloadJob]:
    start = None
    for _, time in zip(range(jobs), _arrivals(dice), strict=False):
        start = time if start is None else start
        cpus = _size(dice)
        yield workloads.WorkloadJob(time - start, _run_time(cpus, dice), cpus)


def _size(dice: random.Random) -> int:
    kind = dice.random()
    if kind <= _SERIAL:
        return 1
    low, high = ((_LOW, _MIDDLE) if dice.random() <= _BELOW
                 else (_MIDDLE, _HIGH))
    power = dice.uniform(low, high)
    if kind <= _SERIAL + _POWER_OF_TWO:
        power = math.floor(power + 0.5)
    return math.floor(2 ** power + 0.5)


def _run_time(cpus: int, dice: random.Random) -> float:
    short = dice.random() <= _SLOPE * cpus + _INTERCEPT
    return max(1.0, float(math.floor(math.exp(_gamma(
        _SHORT if short else _LONG, _MAX_LOG_RUN_TIME, dice)))))


def _arrivals(dice: random.Random) -> Iterator[float]:
    """Yield the times of arrivals.

    The time between two arrivals is drawn for an average half hour; it passes
    faster in half hours with more arrivals.
    """
    weights = _half_hours()
    now = 0.0
    while True:
        left = math.exp(_gamma(_BETWEEN, _MAX_LOG_BETWEEN, dice))
        while True:
            number = int(now // _HALF_HOUR_S)
            end = (number + 1) * _HALF_HOUR_S
            weight = weights[number % _HALF_HOURS]
            if left <= (end - now) * weight:
                break
            left -= (end - now) * weight
            now = float(end)
        now += left / weight
        yield now


def _half_hours() -> list[float]:
    """Return the relative arrivals of the half hours; the mean is 1."""
    shape, scale = _DAY
    weights = [0.0] * _HALF_HOURS
    for number in range(_FIRST_HALF_HOUR, _FIRST_HALF_HOUR + _HALF_HOURS):
        low, high = (special.gammainc(shape, (number + side) / scale)
                     for side in (-0.5, 0.5))
        weights[(number - 1) % _HALF_HOURS] = float(high - low)
    mean = sum(weights) / _HALF_HOURS
    return [weight / mean for weight in weights]


def _gamma(distribution: tuple[float, float], most: float,
           dice: random.Random) -> float:
    while True:
        value = dice.gammavariate(*distribution)
        if value <= most:
            return value


def _instances(jobs: int, flavors: Sequence[flavor_model.Flavor],
               dice: random.Random) -> Iterator[workloads.WorkloadJob]:
    shares = [1 / flavor.vcpus for flavor in flavors]
    time = 0.0
    for flavor in dice.choices(flavors, shares, k=jobs):
        life = _LIFE_S * dice.lognormvariate(-_SIGMA * _SIGMA / 2, _SIGMA)
        yield workloads.WorkloadJob(time, life, flavor.vcpus, flavor.ram_mib,
                                    flavor=flavor.name)
        time += dice.expovariate(1 / _BETWEEN_S)

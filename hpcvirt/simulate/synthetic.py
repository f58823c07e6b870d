# SPDX-License-Identifier: Apache-2.0

"""Create workloads from a model; the same seed gives the same workload.

The model ``cloud`` has instances of the flavors of the fleet: independent
requests, log-normal lives, some of which are ten times longer than others, and
the same CPU-hours of each flavor on average.
"""

import dataclasses
import random
import re
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import workload as workloads

#: The name of the model.
MODEL = 'cloud'
#: The default number of jobs.
JOBS = 10_000
_MAX_JOBS = 1_000_000

#: Mean life of an instance, a week, and mean time between requests, an hour.
_LIFE_S, _BETWEEN_S = 7 * 86400, 3600
#: The standard deviation of the logarithm of lives.
_SIGMA = 1.2


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """The model with a number of jobs."""

    jobs: int

    def workload(self, seed: int, flavors: Sequence[flavor_model.Flavor],
                 ) -> workloads.Workload:
        """Create a workload.

        :param flavors: flavors of the fleet, which are requested
        :raises InvalidInput: if there are no flavors to request
        """
        if not flavors:
            raise exception.InvalidInput(MODEL, 'there are no flavors to '
                                         'request')
        dice = random.Random(seed)  # noqa: S311 - no secret
        return workloads.Workload(
            f'{MODEL}:{self.jobs}, seed {seed}',
            tuple(_instances(self.jobs, flavors, dice)),
            {flavor.name: flavor for flavor in flavors})


def parse(text: str) -> Model | None:
    """Parse the name of the model and its number of jobs: ``cloud:20000``.

    :returns: None if the text does not begin with the name of the model
    :raises InvalidInput: if the number of jobs is invalid
    """
    name, colon, number = text.partition(':')
    if name != MODEL:
        return None
    jobs = int(number) if re.fullmatch('[0-9]{1,7}', number) else 0
    if colon and not 1 < jobs <= _MAX_JOBS:
        raise exception.InvalidInput(
            text, f'the number of jobs must be from 2 to {_MAX_JOBS}')
    return Model(jobs if colon else JOBS)


def _instances(jobs: int, flavors: Sequence[flavor_model.Flavor],
               dice: random.Random) -> Iterator[workloads.WorkloadJob]:
    shares = [1 / flavor.vcpus for flavor in flavors]
    time = 0.0
    for flavor in dice.choices(flavors, shares, k=jobs):
        life = _LIFE_S * dice.lognormvariate(-_SIGMA * _SIGMA / 2, _SIGMA)
        yield workloads.WorkloadJob(time, life, flavor.vcpus, flavor.ram_mib,
                                    flavor=flavor.name)
        time += dice.expovariate(1 / _BETWEEN_S)

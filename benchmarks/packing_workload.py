# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Create requests over time: synthetic, or from the log of a batch system."""

import gzip
import pathlib
import random
from collections.abc import Sequence

import packing_model

from hpcvirt import exception

#: The standard deviation of the logarithm of the life times. Some guests run
#: ten times longer than others.
SIGMA = 1.2

#: Fields of the Standard Workload Format, counted from 0
#: (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html).
_SUBMIT, _RUN_TIME, _PROCESSORS = 1, 3, 4


def synthetic(cpus: Sequence[int], capacity: int, load: float, count: int,
              seed: int) -> list[packing_model.Arrival]:
    """Create random requests, in total the same CPUs for each flavor.

    Arrivals are a Poisson process; life times are log-normal.

    :param cpus: CPUs of each flavor
    :param capacity: CPUs of the fleet
    :param load: CPUs that would be busy if none were refused / capacity
    """
    dice = random.Random(seed)
    shares = [1 / number for number in cpus]
    mean = len(cpus) / sum(shares)
    rate = load * capacity / mean
    now = 0.0
    arrivals = []
    for _ in range(count):
        now += dice.expovariate(rate)
        flavor = dice.choices(range(len(cpus)), shares)[0]
        arrivals.append(packing_model.Arrival(
            now, dice.lognormvariate(-SIGMA * SIGMA / 2, SIGMA), flavor))
    return arrivals


def from_swf(path: str, cpus: Sequence[int], capacity: int,
             load: float) -> list[packing_model.Arrival]:
    """Read a log; each job becomes one guest, or several of the largest.

    A job gets the smallest flavor with enough CPUs. The time between arrivals
    is scaled so that the jobs produce the load.

    :raises InvalidInput: if the file is not such a log
    """
    jobs = []
    try:
        raw = pathlib.Path(path).read_bytes()
        text = (gzip.decompress(raw) if path.endswith('.gz')
                else raw).decode('utf-8', 'replace')
        for line in text.splitlines():
            fields = line.split()
            if fields and not line.startswith(';'):
                jobs.append((float(fields[_SUBMIT]),
                             float(fields[_RUN_TIME]),
                             int(fields[_PROCESSORS])))
    except (OSError, ValueError, IndexError, EOFError) as exc:
        raise exception.InvalidInput(
            path, f'not in the Standard Workload Format: {exc}') from exc
    jobs = sorted(job for job in jobs if job[1] > 0 and job[2] > 0)
    if len(jobs) < 2 or jobs[0][0] == jobs[-1][0]:
        raise exception.InvalidInput(path, 'has too few jobs')
    by_size = sorted(range(len(cpus)), key=cpus.__getitem__)
    largest = by_size[-1]
    arrivals = []
    work = 0.0
    for submit, run_time, processors in jobs:
        flavor = next((number for number in by_size
                       if cpus[number] >= processors), largest)
        count = -(-processors // cpus[flavor])
        work += cpus[flavor] * count * run_time
        arrivals.append(packing_model.Arrival(submit, run_time, flavor,
                                              count))
    span = jobs[-1][0] - jobs[0][0]
    scale = work / span / (load * capacity)
    return [packing_model.Arrival(arrival.time * scale, arrival.duration,
                                  arrival.flavor, arrival.count)
            for arrival in arrivals]

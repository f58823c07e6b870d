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

"""Requests for the fleet: made before anybody places one, same for all.

First small guests come and go, by the rule of ``benchmarks/packing.py``: they
come at random times (a Poisson process), stay for a random time (log-normal:
some stay ten times as long as others), and each flavor asks for as many CPUs
in all. Then large guests are asked for, one of each flavor, the smallest
first. A flavor is large if no host takes more than two of it: packages, three
quarters of hosts, hosts.
"""

import dataclasses
import random
import string
from collections.abc import Sequence

#: How a request is called in drawings: one character.
LABELS = string.ascii_lowercase + string.ascii_uppercase + string.digits

#: CPUs that small guests ask for at a time / CPUs of the fleet.
LOAD = 0.6
#: Spread of the life times: standard deviation of their logarithm.
SIGMA = 1.2
#: Small guests that come.
REQUESTS = 32
#: A flavor is large if no host takes more of it.
LARGE = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """A flavor that is asked for.

    :ivar flavor: its name
    :ivar vcpus: its size
    :ivar most: how many of it the best host takes
    """

    flavor: str
    vcpus: int
    most: int

    @property
    def large(self) -> bool:
        return self.most <= LARGE


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """A guest comes or leaves.

    :ivar label: the request
    :ivar flavor: what comes; None if it leaves
    :ivar late: one of the large ones at the end
    """

    label: str
    flavor: str | None
    late: bool = False


def events(demands: Sequence[Demand], capacity: int, seed: int,
           requests: int = REQUESTS) -> list[Event]:
    """Roll the requests.

    :param capacity: dedicated CPUs of the fleet
    :param seed: the same seed gives the same requests
    """
    dice = random.Random(seed)  # noqa: S311
    labels = iter(LABELS)
    small = [each for each in demands if not each.large]
    shares = [1 / each.vcpus for each in small]
    rate = LOAD * capacity * sum(shares) / len(small)
    now = 0.0
    timed: list[tuple[float, Event]] = []
    for _ in range(requests):
        now += dice.expovariate(rate)
        label = next(labels)
        flavor = dice.choices(small, shares)[0].flavor
        stays = dice.lognormvariate(-SIGMA * SIGMA / 2, SIGMA)
        timed.append((now, Event(label, flavor)))
        timed.append((now + stays, Event(label, None)))
    timed.sort(key=lambda each: each[0])
    return [
        *(event for time, event in timed if time <= now),
        *(Event(next(labels), each.flavor, late=True) for each
          in sorted(demands, key=lambda demand: demand.vcpus) if each.large)]

# SPDX-License-Identifier: Apache-2.0

"""The requests for the fleet, the same for all strategies.

First, small guests start and end, as in the model ``cloud`` of ``hpcvirt
simulate``: they arrive at random times (a Poisson process), live for a random
time (log-normal: some live ten times as long as others), and each flavor
requests as many CPUs in total. Then large guests are requested, one of each
flavor, the smallest first. A flavor is large if no host holds more than two
guests of it: flavors of a socket, of three quarters of a host, and of a host.
"""

import dataclasses
import random
import string
from collections.abc import Sequence

#: Names of the requests in drawings, one character each.
LABELS = string.ascii_lowercase + string.ascii_uppercase + string.digits

#: CPUs that small guests request at any time / CPUs of the fleet.
LOAD = 0.6
#: Standard deviation of the logarithm of the lifetimes.
SIGMA = 1.2
#: The number of small guests.
REQUESTS = 32
#: A flavor is large if no host holds more guests of it.
LARGE = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """A flavor that is requested.

    :ivar flavor: its name
    :ivar vcpus: its size
    :ivar most: how many guests of it one host holds at most
    """

    flavor: str
    vcpus: int
    most: int

    @property
    def large(self) -> bool:
        return self.most <= LARGE


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """A guest starts or ends.

    :ivar label: the request
    :ivar flavor: the flavor of a guest that starts; None if it ends
    :ivar late: whether it is one of the large guests at the end
    """

    label: str
    flavor: str | None
    late: bool = False


def events(demands: Sequence[Demand], capacity: int, seed: int,
           requests: int = REQUESTS) -> list[Event]:
    """Generate the requests.

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
        lifetime = dice.lognormvariate(-SIGMA * SIGMA / 2, SIGMA)
        timed.append((now, Event(label, flavor)))
        timed.append((now + lifetime, Event(label, None)))
    timed.sort(key=lambda each: each[0])
    return [
        *(event for time, event in timed if time <= now),
        *(Event(next(labels), each.flavor, late=True) for each
          in sorted(demands, key=lambda demand: demand.vcpus) if each.large)]

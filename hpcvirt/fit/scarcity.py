# SPDX-License-Identifier: Apache-2.0

"""Rate hosts by the room that a guest takes from the mix of requests.

Together, the hosts of a request take a number of guests of each kind, now and
later (:mod:`hpcvirt.fit.room`). They take fewer once the guest is placed on
one of them. The loss is the sum over all kinds of

    weight * log((total + 1) / (total - fewer + 1))

where the weight of a kind is its share of all CPUs that are requested. Scarce
room costs more: the last whole host costs much more than the tenth. The loss
depends only on shares of the room, so that it is comparable between fleets of
all sizes.

With a difference instead of the logarithm, this would be scheduling by the
gradient of fragmentation [FGD-Weng-2023], which ignores scarcity.
"""

import math
from collections.abc import Hashable
from collections.abc import Sequence

from hpcvirt.fit import demand as demands

#: After this many requests, the weight of all earlier ones is halved.
MEMORY = 1000
#: The most kinds of requests that matter: those for the most CPUs in total.
MAX_KINDS = 32
#: The most kinds that are counted.
MAX_COUNTED = 256
#: The number of requests after which the kinds that matter are reviewed.
REVIEW = 100

#: The decimals to which losses are rounded. Real differences are larger even
#: in the largest fleets, and rounding errors of floats are smaller.
DECIMALS = 9


def losses(weights: Sequence[float], totals: Sequence[float],
           fewer: Sequence[tuple[float, ...]]) -> list[float]:
    """Compute the loss on each host.

    :param weights: the weight of each kind
    :param totals: the guests of each kind that all hosts take
    :param fewer: for each host, the number of guests of each kind that it no
        longer takes with the guest
    """
    whole = [math.log(total + 1) for total in totals]
    # Most hosts lose as much as another.
    known: dict[tuple[float, ...], float] = {}
    for counts in fewer:
        if counts in known:
            continue
        loss = 0.0
        for weight, most, total, count in zip(weights, whole, totals, counts,
                                              strict=True):
            if count:
                loss += weight * (most - math.log(total - count + 1))
        known[counts] = round(loss, DECIMALS)
    return [known[counts] for counts in fewer]


class Mix:
    """Counts requests by kind; equal demands are of one kind.

    The mix ages: the weight of a request halves whenever as many others have
    been seen as :data:`MEMORY` says.

    :ivar kinds: the kinds that matter, in the order in which they were seen
    """

    def __init__(self) -> None:
        self.kinds: tuple[demands.Demand, ...] = ()
        self._demands: dict[Hashable, demands.Demand] = {}
        self._counts: dict[Hashable, float] = {}
        self._seen = 0

    def observe(self, demand: demands.Demand) -> None:
        """Count a request for guests with NUMA cells."""
        key = demand.key
        new = key not in self._counts
        self._demands.setdefault(key, demand)
        self._counts[key] = self._counts.get(key, 0.0) + 1.0
        self._seen += 1
        if self._seen % MEMORY == 0:
            for each in self._counts:
                self._counts[each] /= 2
        if (self._seen % REVIEW == 0
                or (new and len(self.kinds) < MAX_KINDS)):
            self._review()

    def weights(self) -> tuple[float, ...]:
        """Return the share of each kind in the CPUs of all requests."""
        wanted = [self._cpus(kind.key) for kind in self.kinds]
        total = sum(wanted) or 1.0
        return tuple([part / total for part in wanted])

    def _cpus(self, key: Hashable) -> float:
        """Return the CPUs of all requests of a kind."""
        cpus = sum([cell.pcpus + cell.vcpus + cell.emulator_pcpus
                    for cell in self._demands[key].cells])
        return self._counts[key] * cpus

    def _review(self) -> None:
        ordered = sorted(self._demands, key=self._cpus, reverse=True)
        for key in ordered[MAX_COUNTED:]:
            del self._demands[key], self._counts[key]
        chosen = set(ordered[:MAX_KINDS])
        kinds = tuple([demand for key, demand in self._demands.items()
                       if key in chosen])
        if [kind.key for kind in kinds] != [kind.key for kind in self.kinds]:
            self.kinds = kinds

# SPDX-License-Identifier: Apache-2.0

"""Measure the room that a guest takes from the mix of requests.

Together, the hosts of a request take a number of guests of each kind, now and
later (:mod:`hpcvirt.fit.host_room`). They take fewer once the guest is placed
on one of them. The loss is the sum over all kinds of

    weight * log((total + 1) / (total - fewer + 1))

where the weight of a kind is its share of all CPUs that are requested. Scarce
room costs more: the last whole host costs much more than the tenth. If guests
with devices are requested and few cells have free devices, such a cell costs
more than another. The loss depends only on shares of the room, so that it is
comparable between fleets of all sizes.

With a difference instead of the logarithm, this would be scheduling by the
gradient of fragmentation [FGD-Weng-2023], which ignores scarcity.

The mix of requests ages: the weight of a request halves whenever as many
others have been seen as the mix remembers.
"""

import math
from collections.abc import Hashable
from collections.abc import Sequence

from hpcvirt.fit import demand as demands
from hpcvirt.fit import host_room

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
           fewer: Sequence[host_room.Prospects]) -> list[float]:
    """Measure the loss on each host.

    :param weights: the weight of each kind
    :param totals: the guests of each kind that all hosts take
    :param fewer: for each host, the number of guests of each kind that it no
        longer takes with the guest
    """
    known: dict[host_room.Prospects, float] = {}
    whole = [math.log(total + 1) for total in totals]
    found = []
    for counts in fewer:
        loss = known.get(counts)
        if loss is None:
            loss = known[counts] = round(sum(
                weight * (most - math.log(total - count + 1))
                for weight, most, total, count in zip(
                    weights, whole, totals, counts, strict=True) if count),
                DECIMALS)
        found.append(loss)
    return found


def weights(found: Sequence[tuple[float, tuple[float, int]]]) -> list[float]:
    """Weigh hosts by their rank: 1 for the best, then 1/2, 1/3 and so on.

    The best host is thus ahead of the next by half of the range, even if their
    losses hardly differ. Weighers with lower multipliers therefore decide only
    between equal hosts.

    :param found: for each host its loss, and its free resources before
        (:func:`hpcvirt.fit.cell_room.count_left`)
    """
    places = {each: place for place, each in enumerate(sorted(set(found)), 1)}
    return [1 / places[each] for each in found]


class Mix:
    """Counts requests by kind; equal demands are of one kind.

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
            self._counts = {key: count / 2
                            for key, count in self._counts.items()}
        if (self._seen % REVIEW == 0
                or (new and len(self.kinds) < MAX_KINDS)):
            self._review()

    def weights(self) -> tuple[float, ...]:
        """Return the share of each kind in the CPUs of all requests."""
        wanted = [self._counts[kind.key] * _cpus(kind)
                  for kind in self.kinds]
        total = sum(wanted) or 1.0
        return tuple(part / total for part in wanted)

    def _review(self) -> None:
        ordered = sorted(
            self._demands, key=lambda key: self._counts[key] * _cpus(
                self._demands[key]), reverse=True)
        for key in ordered[MAX_COUNTED:]:
            del self._demands[key], self._counts[key]
        chosen = set(ordered[:MAX_KINDS])
        kinds = tuple(demand for key, demand in self._demands.items()
                      if key in chosen)
        if [kind.key for kind in kinds] != [kind.key for kind in self.kinds]:
            self.kinds = kinds


def _cpus(demand: demands.Demand) -> int:
    return sum(cell.pcpus + cell.vcpus + cell.emulator_pcpus
               for cell in demand.cells)

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

"""Measure the room that a guest takes from the mix of requests.

All hosts of a request together take some number of guests of each kind, now
and later (:mod:`hpcvirt.fit.room`), and fewer once the guest is placed on one
of them. The loss is the sum over all
kinds of

    weight * log((total + 1) / (total - fewer + 1))

where the weight of a kind is its share in all CPUs that are requested. Room is
dear where it is scarce: the last whole host costs much more than the tenth,
and a cell near free devices costs more than another one if guests with devices
are requested and there are few such cells. As only shares of the room count,
the loss means the same in fleets of all sizes.

With the difference in place of the logarithm, this would be scheduling by the
gradient of fragmentation [FGD-Weng-2023], which does not know what is scarce.
"""

import math
from collections.abc import Sequence

from hpcvirt.fit import room

#: Losses that differ by less are equal. They differ by more in the largest
#: fleets, and by less due to the rounding of floats.
DECIMALS = 9


def losses(weights: Sequence[float], totals: Sequence[float],
           fewer: Sequence[room.Prospects]) -> list[float]:
    """Measure the loss on each host.

    :param weights: of each kind
    :param totals: guests of each kind that all hosts take
    :param fewer: for each host, how many fewer guests of each kind it takes
        with the guest
    """
    known: dict[room.Prospects, float] = {}
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
    """Weigh hosts by their place: 1 for the best, then 1/2, 1/3 and so on.

    The best is thus half of the range before the next one, however small the
    difference of their losses is, so that weighers with lower multipliers
    decide between equal hosts only.

    :param found: for each host its loss, and what is left before
        (:func:`hpcvirt.fit.room.left`)
    """
    places = {each: place for place, each in enumerate(sorted(set(found)), 1)}
    return [1 / places[each] for each in found]

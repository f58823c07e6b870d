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

"""The mix of requests that a scheduler has seen.

Requests age: their weight halves whenever as many others have been seen as
the mix remembers.
"""

from collections.abc import Hashable

from hpcvirt.fit import demand as demands

#: When this many requests have been seen, all of them count half.
MEMORY = 1000
#: So many kinds of requests matter: those for the most CPUs in total.
MOST_KINDS = 32
#: So many kinds are counted.
MOST_COUNTED = 256
#: Which kinds matter is reviewed after so many requests.
REVIEW = 100


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
                or (new and len(self.kinds) < MOST_KINDS)):
            self._review()

    def weights(self) -> tuple[float, ...]:
        """Compute the CPUs requested by each kind, as a share of all."""
        wanted = [self._counts[kind.key] * _cpus(kind)
                  for kind in self.kinds]
        total = sum(wanted)
        return tuple(part / total for part in wanted)

    def _review(self) -> None:
        ordered = sorted(
            self._demands, key=lambda key: self._counts[key] * _cpus(
                self._demands[key]), reverse=True)
        for key in ordered[MOST_COUNTED:]:
            del self._demands[key], self._counts[key]
        chosen = set(ordered[:MOST_KINDS])
        kinds = tuple(demand for key, demand in self._demands.items()
                      if key in chosen)
        if [kind.key for kind in kinds] != [kind.key for kind in self.kinds]:
            self.kinds = kinds


def _cpus(demand: demands.Demand) -> int:
    return sum(cell.pcpus + cell.vcpus + cell.emulator_pcpus
               for cell in demand.cells)

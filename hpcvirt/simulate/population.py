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

"""The guests of a replay that are running."""

import heapq
import math
from collections.abc import Sequence

from hpcvirt.simulate import host_table
from hpcvirt.simulate import requests


class Population:
    """Knows on which hosts guests are, and when they end.

    :ivar busy_cpus: CPUs of all guests
    :ivar across_packages: number of guests that are on several packages
    """

    def __init__(self, flavors: Sequence[requests.Flavor]) -> None:
        self._flavors = flavors
        self._leaving: list[tuple[float, int, list[host_table.Running]]] = []
        self._started = 0
        self._on: dict[int, dict[host_table.Running,
                                 list[host_table.Running]]] = {}
        self._guests = 0
        self.busy_cpus = 0
        self.across_packages = 0

    def __len__(self) -> int:
        return self._guests

    def start(self, guests: Sequence[host_table.Running],
              end: float) -> None:
        """Add the guests of a request, which end at the same time."""
        group = list(guests)
        heapq.heappush(self._leaving, (end, self._started, group))
        self._started += 1
        for guest in group:
            self._count(guest, 1)
            self._on.setdefault(guest.host, {})[guest] = group

    @property
    def next_end(self) -> float:
        """The time at which the next request ends."""
        return self._leaving[0][0] if self._leaving else math.inf

    def end_next(self) -> Sequence[host_table.Running]:
        """Forget the guests of the request that ends next, and return them."""
        _, _, group = heapq.heappop(self._leaving)
        for guest in group:
            self._count(guest, -1)
            del self._on[guest.host][guest]
        return group

    def on(self, host: int) -> tuple[host_table.Running, ...]:
        """Return the guests on a host, in the order in which they came."""
        return tuple(self._on.get(host, ()))

    def replace(self, old: host_table.Running,
                new: host_table.Running) -> None:
        """Let a guest be elsewhere."""
        group = self._on[old.host].pop(old)
        group[group.index(old)] = new
        self._on.setdefault(new.host, {})[new] = group
        self._count(old, -1)
        self._count(new, 1)

    def _count(self, guest: host_table.Running, sign: int) -> None:
        self._guests += sign
        self.busy_cpus += sign * self._flavors[guest.flavor].cpus
        self.across_packages += sign * guest.across_packages

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

"""Pack all guests of some hosts anew to make room for a request.

The guests are packed in decreasing order, those that need devices first, each
on the best host for it. Hosts with many free CPUs are packed first, and more
of them if that was not enough, so that a large fleet is not packed anew as a
whole for each request.
"""

import itertools
from collections.abc import Callable
from collections.abc import Sequence

import numpy as np

from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import host_table
from hpcvirt.simulate import population
from hpcvirt.simulate import requests
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy as strategies

#: How many hosts are packed anew, at the first attempt and the next ones.
HOSTS = (4, 16, 64)

#: How guests are chosen a host when they are packed.
_PACKERS = 'best-fit+fullest,best-fit'
_Order = Callable[[requests.Flavor], tuple[float, ...]]
#: The guests with the largest of these values are packed first.
_ORDERS: tuple[_Order, ...] = (
    lambda flavor: (len(flavor.guest.demand.requests), flavor.cpus,
                    flavor.flavor.ram_mib),
    lambda flavor: (len(flavor.guest.demand.requests), max(
        (cell.pcpus for cell in flavor.guest.demand.cells), default=0),
        flavor.cpus))

#: The number of a flavor, and who has it now; None for the request.
_Guest = tuple[int, host_table.Running | None]
#: The same, and where the guest would be.
_Packed = tuple[int, host_table.Running | None, host_table.Running]


class Repacker:
    """Makes room for requests by packing guests anew."""

    def __init__(self, fleet: Sequence[supplies.Supply],
                 scheduler: schedulers.Scheduler,
                 running: population.Population,
                 flavors: Sequence[requests.Flavor]) -> None:
        self._table = scheduler.table
        self._running = running
        self._flavors = flavors
        # The hosts once more, without the guests of the replay.
        self._empty = host_table.HostTable(fleet, flavors)
        self._fleet = tuple(self._empty.supplies)
        self._packers = [
            schedulers.Scheduler(self._empty, flavors, strategy)
            for strategy in strategies.parse(_PACKERS, 0)]

    def __call__(self, number: int, count: int) -> list[host_table.Running]:
        """Place the guests of a request, if packing anew makes room for them.

        :param number: of their flavor
        """
        emptiest = self._emptiest(number)
        needed = self._flavors[number].guest.sums.pcpus * count
        for most, before in zip(HOSTS, (0, *HOSTS), strict=False):
            hosts = emptiest[:most]
            if before >= len(emptiest):
                break
            if self._table.free_pcpus[hosts].sum() < needed:
                continue
            packed = self._pack(hosts, number, count)
            if packed:
                return self._adopt(packed)
        return []

    def _emptiest(self, number: int) -> host_table.Integers:
        table = self._table
        free = table.free_pcpus + table.shared_left
        if self._flavors[number].guest.demand.requests:
            # Those that have devices come first.
            free = free + (table.free_devices > 0) * (free.max() + 1)
        return np.argsort(-free, kind='stable')

    def _pack(self, hosts: host_table.Integers, number: int,
              count: int) -> list[_Packed]:
        """Pack the guests of some hosts, and those of a request.

        :returns: all of them, or nothing if some have no place
        """
        among = np.sort(hosts)
        guests: list[_Guest] = [
            (guest.flavor, guest) for host in hosts.tolist()
            for guest in self._running.on(host)]
        guests += [(number, None)] * count
        for packer, order in itertools.product(self._packers, _ORDERS):
            packer.known.keep_few()
            packed: list[_Packed] = []
            for flavor, old in _sorted(guests, order, self._flavors):
                placed = packer.place_among(among, flavor, 1)
                if not placed:
                    break
                packed.append((flavor, old, placed[0]))
            packer.remove([new for *_, new in packed])
            if len(packed) == len(guests):
                return packed
        return []

    def _adopt(self, packed: Sequence[_Packed],
               ) -> list[host_table.Running]:
        """Let the guests be where they were packed.

        :returns: the guests of the request
        """
        for _, old, _ in packed:
            if old is not None:
                self._table.remove(old)
        own = []
        for flavor, old, new in packed:
            guest = self._table.place(new.host, flavor, new.placement)
            if old is None:
                own.append(guest)
            else:
                self._running.replace(old, guest)
        return own


def _sorted(guests: Sequence[_Guest], order: _Order,
            flavors: Sequence[requests.Flavor]) -> list[_Guest]:
    return sorted(guests, key=lambda guest: order(flavors[guest[0]]),
                  reverse=True)

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

"""What devices and networks ask of the set of host cells that a guest gets.

The answer depends on the deciding cells alone: those that have a matching
device (for socket affinity also the other cells of its package) or an affine
network. Whichever other cells the guest gets, it is the same.
"""

from collections.abc import Iterable

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import fit_matrix
from hpcvirt.fit import network
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


def offer(demand: demands.Demand, supply: supplies.Supply,
          providers: devices.Providers = ()) -> devices.Offer | None:
    """Hold the pools of a host against the requests of a guest.

    :returns: None if there is nothing to ask, or nobody who keeps account
    """
    if not demand.requests or supply.pools is None:
        return None
    by_package = any(request.affinity is shape_model.PCIAffinity.SOCKET
                     for request in demand.requests)
    packages = {cell.id: cell.package
                for cell in supply.cells} if by_package else {}
    return devices.Offer(demand.requests, supply.pools, packages, providers)


class Conditions:
    """What devices and networks ask of the set of host cells.

    :ivar deciding: ids of the cells on which the answer depends
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 providers: devices.Providers = ()) -> None:
        self._networks = network.affinities(demand, supply.cells)
        self._offer = offer(demand, supply, providers)
        self.deciding: frozenset[int] = frozenset().union(
            *(affinity.cells for affinity in self._networks))
        if self._offer is not None:
            self.deciding |= self._offer.deciding
        self._known: dict[frozenset[int], bool] = {}

    def out_of_reach(self, cells: Iterable[int], most: int) -> bool:
        """Whether counting devices tells that no such cells will do."""
        return (self._offer is not None and
                self._offer.out_of_reach(cells, most))

    def met(self, cells: Iterable[int]) -> bool:
        """Whether a guest on these cells has its devices and networks."""
        decisive = self.deciding.intersection(cells)
        answer = self._known.get(decisive)
        if answer is None:
            answer = self._known[decisive] = (
                network.satisfied(self._networks, decisive) and
                (self._offer is None or
                 self._offer.take(decisive) is not None))
        return answer

    def misfit(self, table: fit_matrix.Table) -> reasons.Misfit:
        """Say why no set of cells with room will do."""
        if self._offer is not None:
            short = self._offer.shortage()
            if short is not None:
                request, free = short
                return reasons.Misfit(reasons.Code.DEVICES, {
                    'request': request.name, 'free': free,
                    'needed': request.count})
        usable = frozenset(table.cells[rank].id
                           for wishes in table.wishes for rank in wishes)
        busy = [rank for rank, cell in enumerate(table.cells)
                if cell.id in self.deciding and cell.id not in usable]
        causes = table.obstacles(ranks=busy)
        for affinity in self._networks:
            if affinity.cells.isdisjoint(usable):
                return reasons.Misfit(reasons.Code.NETWORK_AFFINITY, {
                    'networks': affinity.network,
                    'cells': _listed(affinity.cells)}, causes)
        if self._offer is not None:
            return reasons.Misfit(reasons.Code.DEVICE_AFFINITY, {
                'cells': _listed(self._offer.deciding)}, causes)
        return reasons.Misfit(reasons.Code.NETWORK_AFFINITY, {
            'networks': ' and '.join(a.network for a in self._networks),
            'cells': _listed(self.deciding)}, causes)


def _listed(cells: Iterable[int]) -> str:
    return ', '.join(map(str, sorted(cells))) or 'none'

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

"""The conditions that devices and networks set on a guest's host cells.

They hold for the set of host cells as a whole, and depend on its deciding
cells alone: cells with a matching device (for socket affinity also the other
cells of its package) and cells with an affine network. Other cells may be
added to the set without changing the answer.
"""

from collections.abc import Iterable

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import fit_matrix
from hpcvirt.fit import network
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


def device_allocator(demand: demands.Demand, supply: supplies.Supply,
                     providers: devices.Providers = (),
                     ) -> devices.Allocator | None:
    """Match the PCI requests of a guest with the pools of a host.

    :returns: None if the guest requests no devices, or if Nova does not
        track devices on this host
    """
    if not demand.requests or supply.pools is None:
        return None
    by_package = any(request.affinity is shape_model.PCIAffinity.SOCKET
                     for request in demand.requests)
    packages = {cell.id: cell.package
                for cell in supply.cells} if by_package else {}
    return devices.Allocator(demand.requests, supply.pools, packages,
                             providers)


class AffinityCheck:
    """Decide whether a set of host cells gives a guest its affinities.

    :ivar deciding: ids of the host cells on which the answer depends
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 providers: devices.Providers = ()) -> None:
        self._networks = network.affinities(demand, supply.cells)
        self._requests = demand.requests
        self._devices = device_allocator(demand, supply, providers)
        self.deciding: frozenset[int] = frozenset().union(
            *(affinity.cells for affinity in self._networks))
        if self._devices is not None:
            self.deciding |= self._devices.deciding
        self._answers: dict[frozenset[int], bool] = {}

    def ruled_out(self, cells: Iterable[int], most: int) -> bool:
        """Whether counting devices shows that no subset can be enough.

        :param cells: the host cells that the guest can use
        :param most: how many of them it uses
        """
        return (self._devices is not None and
                self._devices.ruled_out(cells, most))

    def met(self, cells: Iterable[int]) -> bool:
        """Whether a guest on these cells gets its devices and networks."""
        deciding = self.deciding.intersection(cells)
        answer = self._answers.get(deciding)
        if answer is None:
            answer = self._answers[deciding] = (
                network.satisfied(self._networks, deciding) and
                (self._devices is None or
                 self._devices.allocate(deciding) is not None))
        return answer

    def second_look(self) -> reasons.Misfit | None:
        """Say why devices are not found regardless of the host cells.

        Nova's claim and its PciPassthroughFilter look for the devices without
        affinity, too. Requests may then take other devices than on the cells
        of the guest, so that too few are left for a later one.
        """
        if self._devices is None:
            return _too_few(self._requests[0], 0) if self._requests else None
        request = self._devices.refused()
        if request is None:
            return None
        return self._shortage() or reasons.Misfit(
            reasons.Code.DEVICES_TAKEN, {'request': request.name})

    def misfit(self, matrix: fit_matrix.FitMatrix) -> reasons.Misfit:
        """Say why no set of host cells with room meets the conditions."""
        shortage = self._shortage()
        if shortage is not None:
            return shortage
        usable = frozenset(matrix.cells[rank].id
                           for ranks in matrix.fitting for rank in ranks)
        busy = [rank for rank, cell in enumerate(matrix.cells)
                if cell.id in self.deciding and cell.id not in usable]
        causes = matrix.obstacles(ranks=busy)
        for affinity in self._networks:
            if affinity.cells.isdisjoint(usable):
                return reasons.Misfit(reasons.Code.NETWORK_AFFINITY, {
                    'networks': affinity.network,
                    'cells': reasons.cells(sorted(affinity.cells))}, causes)
        if self._devices is not None:
            return reasons.Misfit(reasons.Code.DEVICE_AFFINITY, {
                'cells': reasons.cells(sorted(self._devices.deciding))},
                causes)
        return reasons.Misfit(reasons.Code.NETWORK_AFFINITY, {
            'networks': ' and '.join(affinity.network
                                     for affinity in self._networks),
            'cells': reasons.cells(sorted(self.deciding))}, causes)

    def _shortage(self) -> reasons.Misfit | None:
        shortage = self._devices.shortage() if self._devices else None
        return None if shortage is None else _too_few(*shortage)


def _too_few(request: devices.Request, free: int) -> reasons.Misfit:
    return reasons.Misfit(reasons.Code.DEVICES, {
        'request': request.name, 'free': free, 'needed': request.count})

# SPDX-License-Identifier: Apache-2.0

"""Check the conditions that devices and networks set on a guest's host cells.

The conditions apply to the set of host cells as a whole. They depend only on
its deciding cells: cells with a matching device (for socket affinity, the
other cells of its socket as well) and cells with an affine network. Adding
other cells to the set does not change the answer.

If a network of the guest has affinity to cells of a host, the guest must use
at least one of them. A network without affinity on that host sets no
condition.
"""

import copy
import dataclasses
import typing
from collections.abc import Collection
from collections.abc import Iterable

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import fit_matrix
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.fit import taken_devices
from hpcvirt.model import shape as shape_model


def device_allocator(demand: demands.Demand, supply: supplies.Supply,
                     providers: devices.Providers = (),
                     ) -> taken_devices.TakingAllocator | None:
    """Match the PCI requests of a guest with the pools of a host.

    :returns: None if the guest requests no devices, or if Nova does not
        track devices on this host
    """
    if not demand.requests or supply.pools is None:
        return None
    by_socket = any(request.affinity is shape_model.PCIAffinity.SOCKET
                     for request in demand.requests)
    sockets = {cell.id: cell.socket
                for cell in supply.cells} if by_socket else {}
    return taken_devices.TakingAllocator(demand.requests, supply.pools,
                                         sockets, providers)


class AffinityCheck:
    """Decide whether a set of host cells gives a guest its affinities.

    :ivar deciding: ids of the host cells on which the answer depends
    :ivar needed: ids of the host cells that no such set can do without
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 providers: devices.Providers = ()) -> None:
        self._networks = find_affinities(demand, supply.cells)
        self._requests = demand.requests
        self._devices = device_allocator(demand, supply, providers)
        self.deciding: frozenset[int] = frozenset().union(
            *(affinity.cells for affinity in self._networks))
        if self._devices is not None:
            self.deciding |= self._devices.deciding
        self._begin()

    def following(self, providers: devices.Providers) -> typing.Self:
        """Return the check of the same guest with another allocation.

        What does not depend on the allocation is not determined again.
        """
        twin = copy.copy(self)
        if self._devices is not None:
            twin._devices = self._devices.following(providers)
        twin._begin()
        return twin

    def _begin(self) -> None:
        self._answers: dict[frozenset[int], bool] = {}
        self.needed: frozenset[int] = frozenset().union(
            *(affinity.cells for affinity in self._networks
              if len(affinity.cells) == 1))
        if self._devices is not None:
            self.needed |= self._devices.needed

    def ruled_out(self, cells: Iterable[int], most: int,
                  taken: Collection[int] = ()) -> bool:
        """Whether counting shows that no set of cells has all that is needed.

        :param cells: the host cells that the guest can use
        :param most: the number of cells that it uses
        :param taken: the cells that it uses in any case
        """
        cells = tuple(cells)
        if (len(self.needed.union(taken)) > most
                or not self.needed.difference(taken).issubset(cells)):
            return True
        return (self._devices is not None and
                self._devices.ruled_out(cells, most, taken))

    def met(self, cells: Iterable[int]) -> bool:
        """Whether a guest on these cells gets its devices and networks."""
        deciding = self.deciding.intersection(cells)
        if not self.needed <= deciding:
            return False
        answer = self._answers.get(deciding)
        if answer is None:
            answer = self._answers[deciding] = (
                are_satisfied(self._networks, deciding) and
                (self._devices is None or
                 self._devices.allocate(deciding) is not None))
        return answer

    def second_look(self) -> reasons.Misfit | None:
        """Say why the second search for devices fails.

        Nova's claim and its PciPassthroughFilter search for the devices once
        more, without affinity. Requests may then take devices on other cells,
        so that too few are left for a later request.
        """
        if self._devices is None:
            return _too_few(self._requests[0], 0) if self._requests else None
        request = self._devices.refused()
        if request is None:
            return None
        return self._shortage() or reasons.Misfit(
            reasons.Code.DEVICES_TAKEN, {'request': request.name})

    def loss(self, cells: Collection[int]) -> reasons.Misfit | None:
        """Say why a guest would not get all its devices after its claim."""
        return self._devices.loss(cells) if self._devices else None

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


def _too_few(request: devices.DeviceRequest, free: int) -> reasons.Misfit:
    return reasons.Misfit(reasons.Code.DEVICES, {
        'request': request.name, 'free': free, 'needed': request.count})


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkAffinity:
    """A network of the guest that has affinity to cells of the host.

    :ivar network: its name
    :ivar cells: the cells; the guest must use one of them
    """

    network: str
    cells: frozenset[int]


def find_affinities(demand: demands.Demand,
                    cells: Iterable[supplies.CellSupply],
                    ) -> tuple[NetworkAffinity, ...]:
    """Find the networks of a guest that have affinity to host cells."""
    if not demand.physnets and not demand.tunneled:
        return ()
    near: dict[str, set[int]] = {}
    for cell in cells:
        for physnet in demand.physnets & cell.physnets:
            near.setdefault(f'physical network {physnet}', set()).add(cell.id)
        if demand.tunneled and cell.tunneled:
            near.setdefault('tunnelled networks', set()).add(cell.id)
    return tuple(NetworkAffinity(network, frozenset(ids))
                 for network, ids in sorted(near.items()))


def are_satisfied(networks: Iterable[NetworkAffinity],
                  cells: Collection[int]) -> bool:
    """Whether a set of host cells has one cell of each network."""
    return all(not affinity.cells.isdisjoint(cells) for affinity in networks)

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

"""Whether a host has room for a guest once some of its instances are gone.

For most guests the claim only counts cells with room. Then only the cells of
the instances that are gone have to be looked at again, which is what makes
the search of :mod:`hpcvirt.fleet.make_room` fast.
"""

import math
from collections.abc import Sequence

from hpcvirt.fit import cell as cells
from hpcvirt.fit import claim
from hpcvirt.fit import claim_replay
from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import admission
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import moving
from hpcvirt.fleet import state


def counts_only(demand: demands.Demand, host: state.State) -> bool:
    """Whether a guest fits if enough cells have room, whichever they are.

    More room can then never keep it off the host.
    """
    return (bool(demand.cells) and claim.is_immune(demand) and
            not demand.selective and
            math.perm(len(host.supply.cells), len(demand.cells))
            <= claim_replay.MOST_ARRANGEMENTS)


class Room:
    """The room of a host for one kind of guest.

    :ivar counts_only: the guest fits wherever :meth:`may_have` says so
    """

    def __init__(self, guest: guests.Guest, host: state.FleetHost) -> None:
        self._guest = guest
        self._host = host
        self.counts_only = counts_only(guest.demand, host.state)
        self._by_cell = bool(guest.demand.cells) and claim.is_immune(
            guest.demand)
        self._cells = {cell.id: cell for cell in host.state.supply.cells}
        self._roomy = {number for number, cell in self._cells.items()
                       if self._has_room(cell)} if self._by_cell else set()

    def without(self, *gone: state.Instance) -> bool:
        """Whether the guest fits without these instances."""
        if not self.may_have(*gone):
            return False
        if self.counts_only:
            return True
        left = self._host.state
        for instance in gone:
            left = moving.released(instance, left)
        return not isinstance(
            admission.admit(self._guest, left, self._host.packing),
            reasons.Misfit)

    def may_have(self, *gone: state.Instance) -> bool:
        """Whether enough cells have room without these instances.

        Where they have not, the guest does not fit, whoever comes.
        """
        if admission.shut(self._guest, self._host.state) is not None:
            return False
        for free, needed, *back in zip(
                self._host.state.free, self._guest.sums,
                *(instance.guest.sums for instance in gone), strict=True):
            if needed > free + sum(back):
                return False
        if not self._by_cell:
            return True
        missing = len(self._guest.demand.cells) - len(self._roomy)
        if missing <= 0:
            return True
        touched = {number for instance in gone
                   for number in instance.cells} - self._roomy
        return len(touched) >= missing and missing <= sum(
            self._has_room_without(number, gone) for number in touched)

    def _has_room_without(self, number: int,
                          gone: Sequence[state.Instance]) -> bool:
        cell = self._cells[number]
        for instance in gone:
            if number in instance.cells:
                cell = moving.cell_without(instance, cell)
        return self._has_room(cell)

    def _has_room(self, cell: supplies.CellSupply) -> bool:
        supply = self._host.state.supply
        return cells.obstacle(self._guest.demand.cells[0], cell,
                              supply.cpu_ratio, supply.ram_ratio) is None

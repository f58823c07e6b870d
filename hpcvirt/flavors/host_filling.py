# SPDX-License-Identifier: Apache-2.0

"""Fill planned hosts with guests, and find out what a socket scope costs."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.fit import capacity
from hpcvirt.fit import guest as guests
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import shape as shape_model


class HostFiller:
    """Fills hosts with guests, and remembers the results."""

    def __init__(self, names: Mapping[str, tuple[str, ...]],
                 packing: bool) -> None:
        self._names = names
        self._packing = packing
        self._fillings: dict[tuple[shape_model.Shape, str, bool],
                             capacity.Filling] = {}

    def __call__(self, guest: shape_model.Shape, host: plans.PlannedHost,
                 packing: bool | None = None) -> capacity.Filling:
        packing = self._packing if packing is None else packing
        key = guest, host.name, packing
        if key not in self._fillings:
            state = dataclasses.replace(
                host.state, supply=dataclasses.replace(host.state.supply,
                                                       packing=packing))
            compiled = guests.compile_shape(guest, guest.cpus,
                                            guest.memory_mib)
            self._fillings[key] = capacity.fill(compiled, state)
        return self._fillings[key]

    def join_twins(self, *hosts: plans.PlannedHost) -> str:
        """Name hosts and all hosts like them."""
        return words.join_names([name for host in hosts
                                 for name in self._names[host.name]], 'hosts')


def drop_costly_scope(
        guest: shape_model.Shape, hosts: Sequence[plans.PlannedHost],
        profile: profiles.Profile, fill: HostFiller,
        ) -> tuple[shape_model.Shape, str | None]:
    """Drop the socket scope if hosts would take fewer guests with it.

    Nova's claim chooses cells by their free memory, not by their socket. If
    cell 0 has a little less memory than the others, as on most machines, the
    claim starts at cell 1. The filter can only refuse such a host, which then
    stays empty. Without the scope, the counts of the plan hold with the filter
    and without it.

    :returns: the guest, and why it lost its scope; None if it kept it
    """
    if guest.numa_scope is not shape_model.NUMAScope.SOCKET:
        return guest, None
    losing = _losing(guest, hosts, fill, profile.pack_cells)
    if not losing:
        return guest, None
    reason = ('the cells of a guest may be in different sockets on '
              f'{fill.join_twins(*losing)}, because of the order in '
              'which Nova uses cells there')
    if not profile.pack_cells and not _losing(guest, hosts, fill, True):
        reason += ('; with pack_cells they would be in one, see '
                   'packing_host_numa_cells_allocation_strategy')
    return _without_scope(guest), reason


def _losing(guest: shape_model.Shape, hosts: Sequence[plans.PlannedHost],
            fill: HostFiller, packing: bool) -> list[plans.PlannedHost]:
    """List the hosts that take fewer guests because of the socket scope."""
    return [host for host in hosts
            if fill(guest, host, packing).count
            < fill(_without_scope(guest), host, packing).count]


def _without_scope(guest: shape_model.Shape) -> shape_model.Shape:
    return dataclasses.replace(guest, numa_scope=shape_model.NUMAScope.HOST)

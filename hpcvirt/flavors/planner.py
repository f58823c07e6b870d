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

"""The plan for a fleet: flavors, what each host takes of them, settings."""

import dataclasses
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.fit import capacity
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import memory
from hpcvirt.flavors import notice
from hpcvirt.flavors import plan_warnings
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import propose
from hpcvirt.flavors import settings as settings_room
from hpcvirt.flavors import sizes as rule
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model


@dataclasses.dataclass(frozen=True, slots=True)
class _Draft:
    """A host before its settings are known."""

    divided: cpu_partition.Division
    sizes: tuple[rule.Size, ...]
    page_kib: int
    notices: tuple[notice.Notice, ...]


def plan(hosts: Sequence[host_model.Host],
         profile: profiles.Profile) -> plans.Plan:
    """Plan flavors for hosts.

    :param hosts: with different names
    :raises InvalidInput: if two hosts have one name, if the profile asks
        for pages that a host does not have, or if no host can take a guest
    """
    _check_names(hosts)
    drafts = [_draft(host, profile) for host in hosts]
    pieces = {piece for draft in drafts for size in draft.sizes
              for piece in propose.pieces(size, profile)}
    notices: list[notice.Notice] = []
    offers, pools = [], []
    for draft in drafts:
        notices += draft.notices
        found = memory.pools(draft.divided, profile, pieces, draft.page_kib)
        notices += memory.uneven(draft.divided.host, found)
        pools.append(found)
        offers += [
            catalogue.Offer(item.guest, {draft.divided.host.name: item.kind})
            for item in propose.proposals(draft.divided, draft.sizes, found,
                                          profile)]
    merged = catalogue.merge(offers, profile.memory_tolerance_percent)
    guests = [offer.guest for offer in merged]
    planned = tuple(
        _host(draft, found, guests, profile)
        for draft, found in zip(drafts, pools, strict=True))
    fill = _Filler(planned, profile.pack_cells)
    flavors = []
    for offer in merged:
        flavor, said = _flavor(offer, planned, profile, fill)
        notices += said
        if flavor is not None:
            flavors.append(flavor)
    if not flavors:
        raise exception.InvalidInput(
            ', '.join(host.name for host in hosts),
            'no guest fits: ' + '; '.join(
                item.message for item in notices)
            if notices else 'no guest fits')
    notices += plan_warnings.on(planned, flavors, profile)
    return plans.Plan(profile, planned, tuple(flavors),
                      notice.gather(notices))


def _check_names(hosts: Sequence[host_model.Host]) -> None:
    if not hosts:
        raise exception.InvalidInput('hosts', 'none is given')
    seen = set()
    for host in hosts:
        if host.name in seen:
            raise exception.InvalidInput(
                host.name, 'is the name of two hosts; give each host a name '
                'of its own')
        seen.add(host.name)


def _draft(host: host_model.Host, profile: profiles.Profile) -> _Draft:
    divided = cpu_partition.divide(host, profile)
    notices = list(divided.notices)
    poor = memory.poor_cells(divided, profile)
    if poor:
        divided = dataclasses.replace(divided, cells=tuple(
            share for share in divided.cells if share.id not in poor))
        room = ', '.join(str(mib) for mib in sorted(set(poor.values())))
        notices.append(notice.Notice(
            notice.Code.CELL_NOT_USED,
            f'{cpu_partition.cells_in_words(poor)} {room} MiB for guests '
            'after the reserve, less than '
            f'{memory.LEAST_MIB_PER_CPU} MiB for each CPU; the host keeps it',
            (host.name,)))
    page_kib, said = memory.choose_page(divided, profile)
    return _Draft(
        divided,
        rule.sizes(divided, profile.host_steps, profile.smallest_cores),
        page_kib, (*notices, *said))


def _host(draft: _Draft, pools: Sequence[memory.CellPool],
          guests: Sequence[shape_model.Shape],
          profile: profiles.Profile) -> plans.PlannedHost:
    host = draft.divided.host
    found = settings_room.settings(draft.divided, pools, guests, profile)
    return plans.PlannedHost(
        host, draft.divided, draft.page_kib, found,
        settings_room.supply(host, found, profile.devices))


class _Filler:
    """Fills hosts, and those that are alike only once."""

    def __init__(self, hosts: Sequence[plans.PlannedHost],
                 packing: bool) -> None:
        self._packing = packing
        first: dict[host_model.Host, str] = {}
        self._twin = {
            planned.host.name: first.setdefault(
                dataclasses.replace(planned.host, name=''),
                planned.host.name) for planned in hosts}
        self._known: dict[tuple[shape_model.Shape, str, bool],
                          capacity.Filling] = {}

    def __call__(self, guest: shape_model.Shape, planned: plans.PlannedHost,
                 packing: bool | None = None) -> capacity.Filling:
        packing = self._packing if packing is None else packing
        key = guest, self._twin[planned.host.name], packing
        if key not in self._known:
            self._known[key] = capacity.fill(guest, planned.supply,
                                             packing=packing)
        return self._known[key]


def _flavor(offer: catalogue.Offer, hosts: Sequence[plans.PlannedHost],
            profile: profiles.Profile, fill: _Filler,
            ) -> tuple[plans.PlannedFlavor | None, list[notice.Notice]]:
    """Count an offer on every host; None if no host takes it."""
    guest, said = _held_scope(offer.guest, hosts, profile, fill)
    full = {planned.host.name: fill(guest, planned) for planned in hosts}
    flavor = catalogue.flavor(guest, profile)
    if not any(filling.count for filling in full.values()):
        reason = next((filling.misfit.message for filling in full.values()
                       if filling.misfit), '')
        return None, [notice.Notice(
            notice.Code.SIZE_NOT_PLACED,
            f'is left out, because no host takes it: {reason}',
            (flavor.name,))]
    said = [dataclasses.replace(item, subjects=(flavor.name,))
            for item in said]
    return plans.PlannedFlavor(
        flavor, guest, offer.kinds,
        {name: filling.count for name, filling in full.items()},
        {planned.host.name: plans.Stranded(
            full[planned.host.name].free_pcpus,
            _free_mib(full[planned.host.name].supply, planned.page_kib))
         for planned in hosts}), said


def _held_scope(guest: shape_model.Shape, hosts: Sequence[plans.PlannedHost],
                profile: profiles.Profile, fill: _Filler,
                ) -> tuple[shape_model.Shape, list[notice.Notice]]:
    """Drop the package scope where it would cost guests.

    Nova's claim chooses the cells, and it looks for free memory, not for
    neighbours: where cell 0 has a little less memory than the others, as on
    most machines, it starts at cell 1. The filter could only refuse that,
    and the host would stay empty. The figures of a plan thus hold with the
    filter and without.
    """
    if guest.numa_scope is not shape_model.NUMAScope.PACKAGE:
        return guest, []
    losing = _losing(guest, hosts, fill, profile.pack_cells)
    if not losing:
        return guest, []
    message = ('its cells may lie in different packages on '
               f'{", ".join(losing)}, because of the order in which Nova '
               'takes cells there')
    if not profile.pack_cells and not _losing(guest, hosts, fill, True):
        message += ('; with pack_cells they would share one, see '
                    'packing_host_numa_cells_allocation_strategy')
    return _anywhere(guest), [notice.Notice(
        notice.Code.PACKAGE_SCOPE_NOT_HELD, message)]


def _losing(guest: shape_model.Shape, hosts: Sequence[plans.PlannedHost],
            fill: _Filler, packing: bool) -> list[str]:
    """The hosts that would take fewer guests for the package scope."""
    return [planned.host.name for planned in hosts
            if fill(guest, planned, packing).count
            < fill(_anywhere(guest), planned, packing).count]


def _anywhere(guest: shape_model.Shape) -> shape_model.Shape:
    return dataclasses.replace(guest, numa_scope=shape_model.NUMAScope.HOST)


def _free_mib(supply: supplies.Supply, page_kib: int) -> int:
    return sum(pool.free * pool.size_kib // 1024 for cell in supply.cells
               for pool in cell.pages
               if pool.size_kib == page_kib and pool.free > 0
               and cell.dedicated)

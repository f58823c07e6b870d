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

"""Keep room for several kinds of guests at once, before somebody asks.

The kinds are looked at one after the other, the largest first. Each gets the
fewest moves after which all of its guests fit beside those of the kinds before
it, whose places are held. All kinds together may get more moves than a search
among all at once would find, but never one that is not needed by its kind.
"""

import dataclasses
from collections.abc import Sequence

from hpcvirt.fit import placement as placements
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import admission
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import state


@dataclasses.dataclass(frozen=True)
class Wanted:
    """How many instances of a flavor room is kept for."""

    flavor: catalogue.Flavor
    count: int


@dataclasses.dataclass(frozen=True)
class Kept:
    """The moves for one kind of guests; None if there are none."""

    wanted: Wanted
    plan: moving.Plan | None


def search(wanted: Sequence[Wanted], hosts: tuple[state.FleetHost, ...],
           most: int, cold: bool = False) -> list[Kept]:
    """Find the moves for each kind, in the order in which they are made.

    :param most: the most moves for one kind
    :raises InvalidInput: for a flavor that Nova would refuse
    """
    found = []
    by_name = {host.name: host for host in hosts}
    for one in sorted(wanted, key=lambda one: (
            one.flavor.vcpus, one.flavor.ram_mib), reverse=True):
        guest = guests.of_flavor(one.flavor)
        plan = make_room.search(guest, tuple(by_name.values()), most,
                                one.count, cold)
        found.append(Kept(one, plan))
        if plan is not None:
            for move in plan.moves:
                _move(move, by_name)
            for name, _ in plan.places:
                by_name[name] = _held(guest, one.flavor, by_name[name])
    return found


def _move(move: moving.Move, hosts: dict[str, state.FleetHost]) -> None:
    instance = next(instance for instance in hosts[move.source].instances
                    if instance.id == move.id)
    moving.moved(hosts, instance, move.target)


def _held(guest: guests.Guest, flavor: catalogue.Flavor,
          host: state.FleetHost) -> state.FleetHost:
    """Take the place of a guest, so that nobody else gets it."""
    placed = admission.admit(guest, host.state, host.packing)
    if not isinstance(placed, placements.Placement):
        raise ValueError(f'{flavor.name} does not fit as planned')
    return moving.arrive(state.Instance(
        f'room for {flavor.name} {len(host.instances)}', '', host.name,
        flavor, guest, pages_kib=placed.pages_kib[0]
        if placed.pages_kib else None, stays='holds room'), host, placed)

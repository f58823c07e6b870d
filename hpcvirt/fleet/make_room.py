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

"""Find the fewest moves after which a guest fits, or several of them.

The search is exact: if it finds two moves, no single move is enough, and if
it finds none, there are none; only for several guests and a third move, plans
in which an instance moves twice are not looked for.
:mod:`hpcvirt.fleet.move_candidates` names the moves that may be enough; here
they are carried out, which is the proof. Longer plans, and those for several
guests, are the :mod:`hpcvirt.fleet.move_chains`.
"""

from hpcvirt.fit import placement as placements
from hpcvirt.fleet import admission
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import move_candidates
from hpcvirt.fleet import move_chains
from hpcvirt.fleet import moving
from hpcvirt.fleet import state


def search(guest: guests.Guest, hosts: tuple[state.FleetHost, ...],
           most: int, count: int = 1,
           cold: bool = False) -> moving.Plan | None:
    """Find a plan with the fewest moves.

    Cold migrations are the last resort: of all plans, one with the fewest of
    them is found, and of these one with the fewest moves.

    :param most: the most moves
    :param count: the number of guests that must fit at once
    :param cold: whether instances may be migrated cold
    :returns: None if no plan has so few moves
    """
    for most_cold in range(most + 1 if cold else 1):
        chains = None
        for number in range(most_cold, most + 1):
            if count == 1 and number < 3:
                plan = _one(guest, hosts, number, most_cold)
            else:
                chains = chains or move_chains.Chains(
                    guest, hosts, count, most, most_cold > 0)
                plan = chains.find(number, most_cold)
            if plan is not None:
                return plan
    return None


def _one(guest: guests.Guest, hosts: tuple[state.FleetHost, ...],
         number: int, most_cold: int) -> moving.Plan | None:
    for steps in move_candidates.steps(guest, hosts, number, most_cold > 0):
        if most_cold >= sum(moving.only_cold(instance) is not None
                            for instance, _ in steps):
            plan = _carried_out(guest, hosts, steps)
            if plan is not None:
                return plan
    return None


def _carried_out(guest: guests.Guest, hosts: tuple[state.FleetHost, ...],
                 steps: move_candidates.Steps) -> moving.Plan | None:
    """Make the moves; None if one is refused or the guest fits nowhere."""
    by_name = {host.name: host for host in hosts}
    moves: list[moving.Move] = []
    for instance, target in steps:
        again = moves and moves[-1].id == instance.id
        move = moving.moved(by_name, by_name[moves[-1].target].instances[-1]
                            if again else instance, target)
        if move is None:
            return None
        moves.append(move)
    touched = {name for move in moves for name in (move.source, move.target)}
    for name in sorted(touched) if moves else by_name:
        host = by_name[name]
        placed = admission.admit(guest, host.state, host.packing)
        if isinstance(placed, placements.Placement):
            return moving.Plan(tuple(moves), ((host.name, placed.cells),))
    return None

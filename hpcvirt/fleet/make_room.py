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

"""Find the fewest moves after which a guest fits.

The search is exact: if it finds two moves, no single move is enough, and if
it finds none, there are none. :mod:`hpcvirt.fleet.move_candidates` names the
moves that may be enough; here they are carried out, which is the proof.
"""

import dataclasses

from hpcvirt.fit import placement as placements
from hpcvirt.fleet import admission
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import move_candidates
from hpcvirt.fleet import moving
from hpcvirt.fleet import state


@dataclasses.dataclass(frozen=True)
class Plan:
    """Moves, in their order, and where the guest fits then."""

    moves: tuple[moving.Move, ...]
    host: str
    cells: tuple[int, ...]


def search(guest: guests.Guest, hosts: tuple[state.FleetHost, ...],
           most: int) -> Plan | None:
    """Find a plan with the fewest moves.

    :param most: the most moves; above 2, the time grows with the number of
        instances times that of hosts for each further move
    :returns: None if no plan has so few moves
    """
    for number in range(most + 1):
        plan = _exactly(guest, hosts, number)
        if plan is not None:
            return plan
    return None


def _exactly(guest: guests.Guest, hosts: tuple[state.FleetHost, ...],
             number: int) -> Plan | None:
    if number < 3:
        for steps in move_candidates.steps(guest, hosts, number):
            plan = _carried_out(guest, hosts, steps)
            if plan is not None:
                return plan
        return None
    for host in hosts:
        for instance in moving.movable(host):
            for target in hosts:
                by_name = {host.name: host for host in hosts}
                move = target is not host and _moved(by_name, instance,
                                                     target.name)
                if not move:
                    continue
                plan = _exactly(guest, tuple(by_name.values()), number - 1)
                if plan is not None:
                    return dataclasses.replace(
                        plan, moves=(move, *plan.moves))
    return None


def _moved(by_name: dict[str, state.FleetHost], instance: state.Instance,
           target: str) -> moving.Move | None:
    """Move an instance between hosts; None if its target refuses it."""
    host = by_name[target]
    placed = moving.land(instance, host)
    if placed is None:
        return None
    by_name[target] = moving.arrive(instance, host, placed)
    by_name[instance.host] = moving.leave(instance, by_name[instance.host])
    return moving.Move(instance.id, instance.host, target, placed.cells)


def _carried_out(guest: guests.Guest, hosts: tuple[state.FleetHost, ...],
                 steps: move_candidates.Steps) -> Plan | None:
    """Make the moves; None if one is refused or the guest fits nowhere."""
    by_name = {host.name: host for host in hosts}
    moves: list[moving.Move] = []
    for instance, target in steps:
        again = moves and moves[-1].id == instance.id
        move = _moved(by_name, by_name[moves[-1].target].instances[-1]
                      if again else instance, target)
        if move is None:
            return None
        moves.append(move)
    touched = {name for move in moves for name in (move.source, move.target)}
    for name in sorted(touched) if moves else by_name:
        host = by_name[name]
        placed = admission.admit(guest, host.state, host.packing)
        if isinstance(placed, placements.Placement):
            return Plan(tuple(moves), host.name, placed.cells)
    return None

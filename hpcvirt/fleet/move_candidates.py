# SPDX-License-Identifier: Apache-2.0

"""Name the moves that may be enough to make room for a guest.

The question is on which host the guest will be, and what the moves do to that
host: instances leave it, or others come to it. A move that does neither lets
another instance land. If no single move is enough, every pair that is enough
is among the candidates, except for pairs that differ from a candidate only in
the target of an instance that lands there just as well.

For most guests the claim only counts cells with room. Then only the cells of
the instances that are gone have to be looked at again, which is what makes
the search of :mod:`hpcvirt.fleet.make_room` fast.
"""

import itertools
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.fit import cell as cells
from hpcvirt.fit import claim
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import admission
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import moving
from hpcvirt.fleet import state


class CellRoom:
    """The room of a host for one kind of guest.

    :ivar counts_only: the guest fits wherever :meth:`may_have` says so
    """

    def __init__(self, guest: guests.Guest, host: state.FleetHost) -> None:
        self._guest = guest
        self._host = host
        self.counts_only = claim.counts_cells(
            guest.demand, host.state.supply)
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
            left = moving.release(instance, left)
        return not isinstance(admission.admit(self._guest, left),
                              reasons.Misfit)

    def may_have(self, *gone: state.Instance) -> bool:
        """Whether enough cells have room without these instances.

        If too few cells do, the guest does not fit, whichever instances come.
        """
        if admission.explain_closed(self._guest, self._host.state) is not None:
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
                cell = moving.release_cell(instance, cell)
        return self._has_room(cell)

    def _has_room(self, cell: supplies.CellSupply) -> bool:
        supply = self._host.state.supply
        return cells.obstacle(self._guest.demand.cells[0], cell,
                              supply.cpu_ratio, supply.ram_ratio) is None


#: Instances with the names of the hosts to which they move.
Steps = tuple[tuple[state.Instance, str], ...]


def steps(guest: guests.Guest, hosts: tuple[state.FleetHost, ...],
          number: int, cold: bool) -> Iterator[Steps]:
    """Yield candidates.

    :param number: of moves, 0 to 2; no smaller number must be enough
    :param cold: whether instances may be migrated cold
    """
    if not number:
        yield ()
        return
    finder = _Finder(guest, hosts, cold)
    yield from finder.one() if number == 1 else finder.two()


class _Finder:

    def __init__(self, guest: guests.Guest,
                 hosts: tuple[state.FleetHost, ...], cold: bool) -> None:
        self._guest = guest
        self._hosts = hosts
        self._landings = moving.MoveTargets(hosts, cold)
        self._movable = self._landings.movable
        self._kinds = self._landings.kinds
        self._rooms: dict[tuple[int, str], CellRoom] = {}
        self._openings: dict[int, list[Steps]] = {}
        self._company: dict[int, bool] = {}
        self._own = {host.name: CellRoom(guest, host) for host
                     in hosts}

    def one(self) -> Iterator[Steps]:
        for host in self._hosts:
            own = self._own[host.name]
            for instance in self._movable[host.name]:
                target = next(self._targets(instance, host), None)
                if target is not None and own.without(instance):
                    yield ((instance, target),)
            if not own.counts_only and own.may_have():
                for instance in self._comers(host):
                    yield ((instance, host.name),)

    def two(self) -> Iterator[Steps]:
        for host in self._hosts:
            yield from self._both_leave(host)
            yield from self._one_leaves(host)
            if not self._own[host.name].counts_only:
                yield from self._one_comes(host)

    def _both_leave(self, host: state.FleetHost) -> Iterator[Steps]:
        own = self._own[host.name]
        lands = {instance.id: next(self._targets(instance, host), None)
                 is not None for instance in self._movable[host.name]}
        for pair in itertools.combinations(self._movable[host.name], 2):
            if not all(lands[one.id] or self._needs_company(one)
                       for one in pair) or not own.without(*pair):
                continue
            for first, second in (pair, pair[::-1]):
                others = tuple(self._targets(second, host))
                for target in self._targets(first, host):
                    other = next((name for name in others
                                  if name != target), None)
                    if other is not None:
                        yield (first, target), (second, other)
                        break
                    if target in others or not self._room(
                            second, target).counts_only:
                        yield (first, target), (second, target)

    def _needs_company(self, instance: state.Instance) -> bool:
        """Whether it may land only where another one has come before."""
        kind = self._landings.kind(instance)
        if kind not in self._company:
            self._company[kind] = not all(
                claim.counts_cells(instance.guest.demand, host.state.supply)
                for host in self._hosts)
        return self._company[kind]

    def _one_leaves(self, host: state.FleetHost) -> Iterator[Steps]:
        """One leaves for a host that another leaves or comes to before."""
        own = self._own[host.name]
        for instance in self._movable[host.name]:
            if not own.without(instance):
                continue
            for ((other, where),) in self._openings_for(instance):
                if other.host == host.name or where == host.name:
                    continue
                if other.host != where:
                    # It comes, and lets the instance land next to it.
                    yield (other, where), (instance, where)
                    continue
                further = next((name for name in self._landings.of(other)
                                if name not in (where, host.name)), None)
                if further is not None:
                    yield (other, further), (instance, where)
                elif host.name in self._landings.of(other) and self._with(
                        host, other).without(instance):
                    yield (other, host.name), (instance, where)

    def _one_comes(self, host: state.FleetHost) -> Iterator[Steps]:
        """Moves after which a guest fits that more room may keep off."""
        own = self._own[host.name]
        comers = list(self._comers(host))
        for instance in self._movable[host.name]:
            if not own.may_have(instance):
                continue
            targets = tuple(self._targets(instance, host))
            if targets:
                yield (instance, targets[0]), (instance, host.name)
                for same in self._kinds:
                    other = next((one for one in same
                                  if one.host != host.name), None)
                    if other is not None:
                        yield (instance, targets[0]), (other, host.name)
            for other in comers if targets else ():
                yield (other, host.name), (instance, targets[0])
            for ((other, where),) in self._openings_for(instance):
                if (other.host == where != host.name
                        and host.name in self._landings.of(other)):
                    yield (other, host.name), (instance, where)
        if own.may_have():
            for same, others in itertools.product(self._kinds, repeat=2):
                pair = _two_of(same, others, host.name)
                if pair:
                    yield (pair[0], host.name), (pair[1], host.name)

    def _openings_for(self, instance: state.Instance) -> list[Steps]:
        """Find moves that may let an instance land on a host.

        :returns: who moves, and the host on which the instance lands then,
            which is the one that it leaves or the one to which it comes
        """
        kind = self._landings.kind(instance)
        if kind not in self._openings:
            found: list[Steps] = []
            for host in self._hosts:
                there = self._room(instance, host.name)
                joins = moving.may_join(instance, host)
                found += [((other, host.name),)
                          for other in self._movable[host.name]
                          if moving.may_join(instance, host, (other,))
                          and there.without(other)]
                if joins and not there.counts_only and there.may_have():
                    found += [((other, host.name),)
                              for other in self._comers(host)]
            self._openings[kind] = found
        return self._openings[kind]

    def _comers(self, host: state.FleetHost) -> Iterator[state.Instance]:
        """Yield one instance of each kind that another host can send."""
        for same in self._kinds:
            if host.name in self._landings.of(same[0]):
                yield from itertools.islice(
                    (one for one in same if one.host != host.name), 2)

    def _targets(self, instance: state.Instance,
                 host: state.FleetHost) -> Iterator[str]:
        """Yield the hosts to which an instance can move from its host."""
        return (name for name in self._landings.of(instance)
                if name != host.name)

    def _room(self, instance: state.Instance,
              name: str) -> CellRoom:
        """Return the room of a host for an instance."""
        key = self._landings.size(instance), name
        if key not in self._rooms:
            host = next(host for host in self._hosts if host.name == name)
            self._rooms[key] = CellRoom(instance.guest, host)
        return self._rooms[key]

    def _with(self, host: state.FleetHost,
              other: state.Instance) -> CellRoom:
        """Return the room for the guest once another instance has come."""
        placed = moving.place(other, host)
        return CellRoom(self._guest,
                        moving.arrive(other, host, placed)
                        if placed else host)


def _two_of(same: list[state.Instance], others: list[state.Instance],
            name: str) -> tuple[state.Instance, state.Instance] | None:
    """Choose an instance of each kind that is not on a host."""
    for first in same:
        if first.host == name:
            continue
        for second in others:
            if second.host != name and second is not first:
                return first, second
    return None

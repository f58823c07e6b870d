# SPDX-License-Identifier: Apache-2.0

"""The best ways to empty hosts, found by trying all sequences of moves."""

from hpcvirt.fit import admission
from hpcvirt.fit import reasons
from hpcvirt.fleet import moving
from hpcvirt.fleet import state


def may_move(instance, target, cold):
    """Whether Nova would let an instance come, whatever room there is."""
    if instance.stays or (instance.only_cold and not cold) or (
            instance.hosts and target.name not in instance.hosts):
        return False
    group = instance.group
    if group is None:
        return True
    match group.policy:
        case state.Policy.AFFINITY:
            return False
        case state.Policy.ANTI_AFFINITY:
            return len({item.id for item in target.instances}
                       & group.members) < group.most_per_host
    return True


class AllMoves:
    """Tries all sequences of moves that leave some hosts.

    Hosts with the same instances on the same CPUs are made once.
    """

    def __init__(self, hosts, drained, cold):
        self.start = tuple(map(self._key, hosts))
        self._made = dict(zip(self.start, hosts, strict=True))
        self._drained = frozenset(drained)
        self._cold = cold
        self._placed = {}

    def _key(self, host):
        return host.name, frozenset(
            (item.id, item.cells, item.holding.cpus)
            for item in host.instances)

    def _remember(self, host):
        return self._made.setdefault(self._key(host), host)

    def _place(self, instance, key):
        known = instance.id, key
        if known not in self._placed:
            self._placed[known] = admission.predict(
                instance.guest, self._made[key].state)
        return self._placed[known]

    def left(self, hosts):
        """Count the instances on the hosts to be emptied."""
        return sum(len(key[1]) for key in hosts if key[0] in self._drained)

    def after_any_move(self, hosts):
        """Yield what each move leads to, and whether it was cold."""
        for here, source in enumerate(hosts):
            for instance in self._made[source].instances:
                for there, target in enumerate(hosts):
                    if here == there or target[0] in self._drained or (
                            not may_move(instance, self._made[target],
                                         self._cold)):
                        continue
                    placed = self._place(instance, target)
                    if isinstance(placed, reasons.Misfit):
                        continue
                    after = list(hosts)
                    after[there] = self._key(self._remember(moving.arrive(
                        instance, self._made[target], placed)))
                    after[here] = self._key(self._remember(moving.leave(
                        instance, self._made[source])))
                    yield tuple(after), bool(instance.only_cold)

    def fewest(self, most_others):
        """Find the fewest instances left, cold migrations and moves.

        :param most_others: the most moves of instances of other hosts
        """
        begin = self.left(self.start)
        best = begin, 0, 0
        seen = {self.start: 0}
        layer = {self.start: 0}
        number = 0
        while layer:
            number += 1
            following = {}
            for hosts, cold in layer.items():
                for after, is_cold in self.after_any_move(hosts):
                    used = cold + is_cold
                    left = self.left(after)
                    if number - (begin - left) > most_others or seen.get(
                            after, used + 1) <= used:
                        continue
                    seen[after] = following[after] = used
                    best = min(best, (left, used, number))
            layer = following
        return best

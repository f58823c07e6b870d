# SPDX-License-Identifier: Apache-2.0

"""Take devices as nova-compute does after its claim.

The claim only searches for devices. It accepts an allocation of Placement even
if a part of it is not near the guest (defect L), and a physical function
together with a virtual function of the same card, although each makes the
other unusable (defect M). The pools of a card have the same address.

A physical function becomes free again when the last of its virtual functions
does. Each virtual function therefore takes it once more, and the pool of the
physical function counts what it owes.
"""

from collections.abc import Collection

from hpcvirt.fit import devices
from hpcvirt.fit import reasons

_PF = 'type-PF'
_DEPENDENTS = {_PF: ('type-VF', 'vdpa'), 'type-VF': (_PF,), 'vdpa': (_PF,)}


class TakingAllocator(devices.Allocator):
    """Allocates devices, and takes them."""

    def take(self, cells: Collection[int] | None,
             ) -> list[int] | reasons.Misfit:
        """Take the devices of a guest that its claim accepts on these cells.

        :param cells: None to ignore affinity
        :returns: the number of devices that each pool loses, or why the guest
            does not get all its devices
        """
        left = [pool.free for pool in self._pools]
        lost = [0] * len(left)
        emptied: set[int] = set()
        for number, request in enumerate(self._requests):
            before = tuple(left)
            served = self._serve(number, cells, left, emptied)
            taken = sum(before) - sum(left) if served else 0
            if taken < request.count:
                return reasons.Misfit(reasons.Code.CLAIM_TAKES_FEWER, {
                    'request': request.name, 'free': taken,
                    'needed': request.count,
                    'defect': reasons.Defect.FEWER_DEVICES if served
                    else reasons.Defect.DEPENDENT_DEVICES})
            for index, count in enumerate(before):
                if count == left[index]:
                    continue
                lost[index] += count - left[index]
                for other in self._dependents(index):
                    lost[other] += (left[other] if self._is_pf(index)
                                    else count - left[index])
                    left[other] = 0
                    emptied.add(other)
        return lost

    def loss(self, cells: Collection[int]) -> reasons.Misfit | None:
        """Say why a guest would not get all devices that its claim accepts.

        :param cells: empty for a guest without NUMA topology
        """
        # The defects cannot occur for most guests.
        if all(len(allocated) < 2 for allocated in self._providers) and (
                len(self._requests) < 2 or not any(
                    map(self._is_pf, set().union(*self._usable)))):
            return None
        taken = self.take(cells or None)
        return taken if isinstance(taken, reasons.Misfit) else None

    def _is_pf(self, index: int) -> bool:
        return self._pools[index].tags.get('dev_type') == _PF

    def _dependents(self, index: int) -> list[int]:
        tags = self._pools[index].tags
        kinds = _DEPENDENTS.get(tags.get('dev_type', ''), ())
        return [other for other, pool in enumerate(self._pools)
                if kinds and pool.tags.get('dev_type') in kinds
                and pool.tags.get('address') == tags.get('address', index)]


def give(pool: devices.Pool, count: int) -> devices.Pool:
    """Give devices back to a pool, or take them if the count is negative."""
    left = pool.free - pool.owed + count
    return pool._replace(free=max(left, 0), owed=max(-left, 0))

# SPDX-License-Identifier: Apache-2.0

"""Weigh hosts as nova-scheduler does, which takes the first of the best.

Each weigher weighs the hosts on which a guest fits. Its weights are scaled to
the range from 0 to 1 as by ``nova.weights.normalize``, and multiplied. Hosts
with equal sums keep their order; for the next guest of the same request, that
is the order of the previous sums.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from hpcvirt.fit import demand as demands
from hpcvirt.fit import rating
from hpcvirt.fit import room
from hpcvirt.simulate import fit_cache
from hpcvirt.simulate import host_table

#: The name of the option among the multipliers of a strategy.
FAR_DEVICE_COST = 'far'

#: PCIWeigher counts no more devices than this.
_MAX_DEVICES = 99


@dataclasses.dataclass(frozen=True)
class Look:
    """The input of weighers.

    :ivar table: all hosts
    :ivar known: cache of fits and figures
    :ivar number: the number of the flavor
    :ivar demand: the demand of a guest of the flavor
    :ivar hosts: the numbers of the hosts to weigh, on which it fits
    :ivar picks: host to the number of guests of the same request on it
    """

    table: host_table.HostTable
    known: fit_cache.FitCache
    number: int
    demand: demands.Demand
    hosts: host_table.Integers
    picks: Mapping[int, int]


#: A weigher; it returns None if all hosts are equal.
Weigh = Callable[[Look], host_table.Floats | None]


def _weigh_io_ops(look: Look) -> host_table.Floats | None:
    """Weigh hosts by the guests of this request, which are still starting."""
    if not look.picks:
        return None
    return np.array([look.picks.get(host, 0) for host in look.hosts.tolist()],
                    dtype=np.float64)


def _weigh_pci(look: Look) -> host_table.Floats:
    """Weigh hosts as PCIWeigher does: those with many devices are spared."""
    free = look.table.free_devices[look.hosts]
    return 1.0 + _MAX_DEVICES - np.minimum(free, _MAX_DEVICES)


def _weigh_cpus_left(look: Look) -> host_table.Floats:
    """Weigh hosts by their free CPUs of the kinds that the guest needs."""
    cells = look.demand.cells
    left = np.zeros(len(look.hosts))
    if any(cell.pcpus for cell in cells):
        left += look.table.free_pcpus[look.hosts]
    if not cells or any(cell.vcpus for cell in cells):
        left += look.table.shared_left[look.hosts]
    return left


class _Topology:
    """The weigher that corresponds to HPCTopologyWeigher.

    It computes the numbers of :mod:`hpcvirt.fit.rating` for all hosts at once;
    those of a host only once for each of its states.
    """

    def __init__(self, far_device_cost: float) -> None:
        self._mix = rating.Mix()
        self._counter = room.RoomCounter(())
        self._far_device_cost = far_device_cost

    def weigh(self, look: Look) -> host_table.Floats | None:
        if not look.demand.cells:
            return None
        if not look.picks:
            self._mix.observe(look.demand)
        if self._counter.kinds is not self._mix.kinds:
            self._counter = room.RoomCounter(self._mix.kinds)
            look.known.forget_rows()
        states, first, place, number = np.unique(
            look.table.states[look.hosts], return_index=True,
            return_inverse=True, return_counts=True)
        hosts = look.hosts[first].tolist()
        width = len(self._mix.kinds)
        rated = look.known.rows(('rated', look.number), 2 * width + 4).get(
            states, lambda index: self._rate(look, hosts[index]))
        before, fewer, far, ties = np.split(
            rated, (width, 2 * width, 2 * width + 1), axis=1)
        totals = number @ before
        losses = (np.log(totals + 1) - np.log(totals - fewer + 1)) @ np.array(
            self._mix.weights())
        losses = losses.round(rating.DECIMALS)
        costs = rating.add_far_devices(losses.tolist(), far[:, 0].tolist(),
                                       self._far_device_cost)
        keys = np.column_stack((costs, losses, far, ties))
        weights: host_table.Floats = np.array(
            rating.rank(list(map(tuple, keys.tolist()))))[place]
        return weights

    def _rate(self, look: Look, host: int) -> tuple[float, ...]:
        """Return the numbers of the rating of a host in a row."""
        rated = rating.rate(self._counter, look.demand,
                            look.table.supplies[host],
                            int(look.table.guests[host]),
                            look.known.placement(look.number, host))
        return (*rated.before, *rated.fewer, rated.far, rated.broken_sets,
                *rated.left)


#: The names of weighers in strategies. DiskWeigher is missing because guests
#: boot from volumes, so that all hosts have the same disk.
_WEIGHERS: Mapping[str, Weigh] = {
    'ram': lambda look: look.table.free_ram[look.hosts],
    'cpu': lambda look: look.table.free_vcpus[look.hosts],
    'pci': _weigh_pci, 'io-ops': _weigh_io_ops,
    'cpus-left': _weigh_cpus_left,
    'instances': lambda look: look.table.guests[look.hosts]}
#: The weighers with ``minval = 0``, whose range begins at 0.
_FROM_ZERO = frozenset({'ram', 'cpu', 'io-ops'})


def make_weighers(multipliers: Mapping[str, float],
                  ) -> list[tuple[Weigh, float, bool]]:
    """Return the weighers of a strategy.

    :returns: weigher, multiplier, and whether its range begins at 0
    """
    known = {**_WEIGHERS, 'topology': _Topology(
        multipliers.get(FAR_DEVICE_COST, 0.0)).weigh}
    return [(known[name], multiplier, name in _FROM_ZERO)
            for name, multiplier in multipliers.items()
            if multiplier and name in known]


def sums(look: Look, weighers: Sequence[tuple[Weigh, float, bool]],
         ) -> host_table.Floats:
    """Return the sums of the weights of each host."""
    totals = np.zeros(len(look.hosts))
    for weigh, multiplier, from_zero in weighers:
        weights = weigh(look)
        if weights is None:
            continue
        if from_zero:
            weights = np.maximum(weights, 0.0)
        low = 0.0 if from_zero else weights.min()
        span = weights.max() - low
        if span:
            totals += multiplier * ((weights - low) / span)
    return totals

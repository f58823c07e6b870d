# SPDX-License-Identifier: Apache-2.0

"""The configurations of the scheduler that the demonstration compares."""

import dataclasses
from collections.abc import Mapping

from testing import nova

_NOVA_FILTERS = 'nova.scheduler.filters.all_filters'
_NOVA_WEIGHERS = 'nova.scheduler.weights.all_weighers'
_PACK_CELLS = ('compute', 'packing_host_numa_cells_allocation_strategy', True)


@dataclasses.dataclass(frozen=True)
class Strategy:
    """A configuration of nova-scheduler, and of the compute hosts.

    :ivar title: the heading of its column
    :ivar meaning: a description of the configuration
    :ivar filter: the filter for NUMA topologies
    :ivar available_filters: ``[filter_scheduler]available_filters``
    :ivar weight_classes: ``[filter_scheduler]weight_classes``
    :ivar options: further options: group, name, value
    """

    title: str
    meaning: str
    filter: str = 'NUMATopologyFilter'
    available_filters: tuple[str, ...] = (_NOVA_FILTERS,)
    weight_classes: tuple[str, ...] = (_NOVA_WEIGHERS,)
    options: tuple[tuple[str, str, object], ...] = ()

    @property
    def enabled_filters(self) -> tuple[str, ...]:
        return (*nova.USUAL_FILTERS, self.filter, 'PciPassthroughFilter')


STRATEGIES: Mapping[str, Strategy] = {
    'hpcvirt': Strategy(
        'hpcvirt',
        "HPCTopologyFilter, hpcvirt's and Nova's weighers, cells packed",
        'HPCTopologyFilter',
        (_NOVA_FILTERS, 'hpcvirt.nova.filters.all_filters'),
        (_NOVA_WEIGHERS, 'hpcvirt.nova.weights.all_weighers'), (_PACK_CELLS,)),
    'nova': Strategy(
        'Nova', 'NUMATopologyFilter, and the defaults of Nova'),
    'packing': Strategy(
        'Nova packing',
        'NUMATopologyFilter, the CPU, RAM and disk weighers at -1, cells'
        ' packed',
        options=(
            _PACK_CELLS,
            *(('filter_scheduler', f'{kind}_weight_multiplier', -1.0)
              for kind in ('cpu', 'ram', 'disk')))),
}

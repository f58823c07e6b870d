# SPDX-License-Identifier: Apache-2.0

"""Count the allocation candidates of flavors with sets of devices.

A host has a candidate for each choice of one device for each place of the
set. Most mix sets, and the filter drops them; nova-scheduler must get all of
them to see each free set.
"""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import warning

#: Nova's default of ``max_placement_results``.
DEFAULT_RESULTS = 1000

#: The most that was measured: 32 hosts with 16 GPUs, 2.2 seconds and 83 MiB in
#: Placement 16.
MAX_MEASURED = 8192


def count_on_host(requests: Iterable[devices.DeviceRequest],
                  pools: Sequence[devices.Pool]) -> int:
    """Count the candidates of a host for requests."""
    found = 1
    for request in requests:
        offered = sum(devices.is_offered(pool, request) for pool in pools)
        found *= offered ** request.count
    return found


def _count(row: plans.PlannedFlavor, plan: plans.Plan) -> int:
    """Count the candidates of a flavor on all empty hosts with sets."""
    requests = demands.compile_shape(row.guest).requests
    # Hosts of one kind share their state.
    kinds = collections.Counter(id(host.state) for host in plan.hosts
                                if host.settings.has_sets)
    states = {id(host.state): host.state for host in plan.hosts}
    found = 0
    for kind, number in kinds.items():
        pools = states[kind].supply.pools or ()
        found += number * count_on_host(requests, pools)
    return found


def find_results(plan: plans.Plan) -> int | None:
    """Return the ``max_placement_results`` that the plan needs.

    :returns: None if no host has sets
    """
    most = max((_count(row, plan) for row in plan.flavors), default=0)
    return max(DEFAULT_RESULTS, len(plan.hosts), most) if most else None


def warn_many(plan: plans.Plan) -> Iterator[warning.PlanWarning]:
    """Warn about flavors with more candidates than were measured."""
    for row in plan.flavors:
        count = _count(row, plan)
        if count > MAX_MEASURED:
            yield warning.PlanWarning(
                warning.WarningCode.MANY_CANDIDATES,
                f'a request has {count} allocation candidates if all hosts '
                f'are empty, and only {MAX_MEASURED} were measured, which '
                'take 2.2 s and 83 MiB; divide the hosts among aggregates or '
                'traits', (row.flavor.name,))

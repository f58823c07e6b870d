# SPDX-License-Identifier: Apache-2.0

"""Count the allocation candidates of flavors with sets of devices.

A host has a candidate for each choice of one device for each place of the
set. Most mix sets, and the filter drops them; nova-scheduler must get all of
them to see each free set.
"""

import collections
import math
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
    return math.prod(
        sum(devices.serves(pool, request) for pool in pools) ** request.count
        for request in requests)


def count_candidates(plan: plans.Plan) -> dict[str, int]:
    """Count the candidates of each flavor with a set on all empty hosts.

    :returns: flavor -> their number
    """
    # Hosts of one kind share their supply.
    kinds = {id(host.supply): host.supply for host in plan.hosts}
    numbers = collections.Counter(id(host.supply) for host in plan.hosts)
    counts = {}
    for row in plan.flavors:
        requests = demands.compile_shape(row.guest).requests
        if row.guest.device_set is not None:
            counts[row.flavor.name] = sum(
                numbers[kind] * count_on_host(requests, supply.pools or ())
                for kind, supply in kinds.items())
    return counts


def find_results(plan: plans.Plan) -> int | None:
    """Return the ``max_placement_results`` that the plan needs.

    :returns: None if no flavor has sets
    """
    counts = count_candidates(plan).values()
    return max(DEFAULT_RESULTS, *counts) if counts else None


def warn_many(plan: plans.Plan) -> Iterator[warning.PlanWarning]:
    """Warn about flavors with more candidates than were measured."""
    for name, count in count_candidates(plan).items():
        if count > MAX_MEASURED:
            yield warning.PlanWarning(
                warning.WarningCode.MANY_CANDIDATES,
                f'a request has {count} allocation candidates if all hosts '
                f'are empty, and only {MAX_MEASURED} were measured, which '
                'take 2.2 s and 83 MiB; divide the hosts among aggregates or '
                'traits', (name,))

# SPDX-License-Identifier: Apache-2.0

"""Find the hosts in quarantine by the aggregates of their HostStates.

nova-scheduler keeps the aggregates in memory and is notified of each change,
so that this needs no query.
"""

import typing

from hpcvirt.fit import reasons
from hpcvirt.model import quarantine


def is_marked(aggregate: typing.Any) -> bool:
    """Return whether the hosts of an aggregate are in quarantine."""
    return quarantine.MARK in aggregate.metadata


def holds(host_state: typing.Any) -> tuple[quarantine.Hold, ...]:
    """Return the holds on a host in quarantine, none for other hosts.

    :param host_state: Nova's HostState
    """
    return quarantine.read_holds(host_state.host, (
        aggregate.metadata for aggregate in host_state.aggregates))


class QuarantinedHosts:
    """Find hosts in quarantine for one request.

    Each aggregate is checked once, because hosts share aggregates.
    """

    def __init__(self) -> None:
        self._marked: dict[int, bool] = {}

    def misfit(self, host_state: typing.Any) -> reasons.Misfit | None:
        """Return why a host is refused, None if it is not in quarantine."""
        for aggregate in host_state.aggregates:
            marked = self._marked.get(id(aggregate))
            if marked is None:
                marked = self._marked[id(aggregate)] = is_marked(aggregate)
            if marked:
                return reasons.Misfit(reasons.Code.QUARANTINED, {
                    'what': quarantine.sentence(holds(host_state))})
        return None

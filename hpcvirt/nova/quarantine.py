# SPDX-License-Identifier: Apache-2.0

"""Tell which hosts are in quarantine, by the aggregates of their HostStates.

Nova tells its schedulers of each change of an aggregate at once, and
nova-scheduler keeps the aggregates in memory: nothing is asked for here. A
host that is in no aggregate costs one look at an empty list.
"""

import typing

from hpcvirt.fit import reasons
from hpcvirt.model import quarantine


def is_marked(aggregate: typing.Any) -> bool:
    """Whether an aggregate of Nova is one of quarantine."""
    return quarantine.MARK in aggregate.metadata


def holds(host_state: typing.Any) -> list[quarantine.Hold]:
    """Return what holds a host in quarantine, empty for any other host.

    :param host_state: Nova's HostState
    """
    found = (quarantine.read_hold(host_state.host, aggregate.metadata)
             for aggregate in host_state.aggregates)
    return sorted((hold for hold in found if hold is not None),
                  key=lambda hold: hold.holder)


class QuarantinedHosts:
    """The hosts in quarantine, for one request.

    Hosts share aggregates; each aggregate is looked at once.
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

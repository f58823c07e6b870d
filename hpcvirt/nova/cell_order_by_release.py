# SPDX-License-Identifier: Apache-2.0

"""The order in which the claim of a compute host takes host cells.

For a guest that requests no PCI devices, the claim of Nova 34 takes cells
with devices last. In Nova 32 and 33 it ignores devices then
(https://bugs.launchpad.net/nova/+bug/2144660). A scheduler meets both during
a rolling upgrade, and tells them apart by the version of the nova-compute
service.
"""

import functools
import types
import typing

from nova import objects
from nova.compute import claims
from nova.objects import service

#: The first service version of which every nova-compute has the fix, which
#: came between versions 72 (Nova 33) and 73. A distribution may have added
#: it to an older one.
_FIXED = 73


def spares_devices(host_state: typing.Any) -> tuple[bool, ...]:
    """Whether the claim spares cells with devices from guests without.

    :returns: the answers that are possible, the likeliest first
    """
    version = getattr(host_state, 'service', {}).get('version')
    if version is None or version == service.SERVICE_VERSION:
        # The same release as the scheduler.
        return (_installed_claim_spares_devices(),)
    if version >= _FIXED:
        return (True,)
    return False, True


@functools.cache
def _installed_claim_spares_devices() -> bool:
    """Whether the claim looks at devices for a guest that requests none."""
    tracker = _Tracker()
    host = objects.ComputeNode(numa_topology=objects.NUMATopology(
        cells=[objects.NUMACell(id=0)])._to_json())
    claims.Claim._test_numa_topology(
        types.SimpleNamespace(
            tracker=tracker, numa_topology=None,
            _pci_requests=objects.InstancePCIRequests(requests=[])),
        host, None)
    return tracker.asked


class _Tracker:
    """A resource tracker that notes whether it is asked for devices."""

    asked = False

    @property
    def pci_tracker(self) -> types.SimpleNamespace:
        self.asked = True
        return types.SimpleNamespace(stats=None)

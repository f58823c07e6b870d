# SPDX-License-Identifier: Apache-2.0

"""Register and read options in Nova's configuration.

Importing a module registers no options. A plug-in calls :func:`register` when
nova-scheduler creates it, and reads the options afterwards.

What depends on the release of nova-compute is determined here as well. For an
instance without PCI requests, the claim of Nova 34 takes host cells with
devices last. The claim of Nova 32 and 33 does not look at devices
(https://bugs.launchpad.net/nova/+bug/2144660). During a rolling upgrade, hosts
of both kinds are told apart by the version of their nova-compute service.
"""

import functools
import types
import typing

import nova.conf
from nova import objects
from nova.compute import claims
from nova.objects import service
from oslo_config import cfg

from hpcvirt.conf import filters
from hpcvirt.conf import weights


def register() -> cfg.ConfigOpts:
    """Register the options and return Nova's configuration."""
    conf: cfg.ConfigOpts = nova.conf.CONF
    filters.register_opts(conf)
    weights.register_opts(conf)
    return conf


def read_packing() -> bool:
    """Read ``[compute]packing_host_numa_cells_allocation_strategy``.

    The claim on the compute host reads it too, and takes the fullest cells of
    the host first if it is set, the emptiest otherwise. Read it once per
    request: reading an option takes longer than refusing a host.
    """
    return bool(nova.conf.CONF.compute
                .packing_host_numa_cells_allocation_strategy)


#: From this service version on, every nova-compute has the fix. It was merged
#: after version 72 (Nova 33); distributions may have backported it.
_FIXED = 73


def spares_devices(host_state: typing.Any) -> tuple[bool, ...]:
    """Return whether the claim takes cells with devices last.

    :returns: all possible answers, the most likely first
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
    """Whether the installed claim asks for devices without PCI requests."""
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

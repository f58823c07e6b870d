# SPDX-License-Identifier: Apache-2.0

"""Compute hosts without services: their records, and Nova's claims on them.

Instances are started and deleted by Nova's own classes: Claim decides,
ResourceTracker counts, and PciDeviceStats allocates devices.
"""

import collections
import dataclasses
import types
import uuid

from nova import exception as nova_exception
from nova import objects
from nova.compute import claims
from nova.compute import resource_tracker
from nova.compute import stats as compute_stats
from nova.objects import pci_device_pool
from nova.pci import stats as pci_stats
from nova.pci import whitelist
from nova.scheduler import host_manager

from tests.functional.replay_cloud import devices

#: More than enough: instances boot from volumes.
_DISK_GIB = 1 << 20


@dataclasses.dataclass(frozen=True, eq=False)
class Claimed:
    """An instance on a host.

    :ivar topology: the InstanceNUMATopology; None if it has none
    """

    host: 'ComputeHost'
    flavor: objects.Flavor
    topology: objects.InstanceNUMATopology | None
    devices: list

    @property
    def cells(self):
        """The host cell of each guest cell."""
        return tuple(cell.id for cell in self.topology.cells
                     ) if self.topology else ()

    def free(self):
        """Free the resources of the instance."""
        self.host.free(self)


class _Tracker(resource_tracker.ResourceTracker):
    """Nova's ResourceTracker without a driver, a database and Placement."""

    def __init__(self, node, pools):
        self.compute_nodes = {node.hypervisor_hostname: node}
        self.stats = collections.defaultdict(compute_stats.Stats)
        self.pci_tracker = types.SimpleNamespace(stats=pools)


class ComputeHost:
    """A compute host with the resources and the usage of its Supply."""

    def __init__(self, name, supply, products):
        self.name = name
        topology = _topology(supply)
        self._node = _node(name, supply, topology)
        self._pci = pci_stats.PciDeviceStats(
            topology, pci_device_pool.from_pci_stats(products.pools(supply)),
            whitelist.Whitelist([]))
        for pool in self._pci.pools:
            pool['devices'] = [devices.ReplayDevice(pool['address'])
                               for _ in range(pool['count'])]
        self._tracker = _Tracker(self._node, self._pci)
        self._instances = 0
        self._stats = compute_stats.Stats()
        self._state = None

    @property
    def uuid(self):
        return str(self._node.uuid)

    def state(self):
        """Return the HostState that nova-scheduler makes for each request.

        It is made again only after a change, because that takes a millisecond.
        """
        if self._state is None:
            self._node.pci_device_pools = self._pci.to_device_pools_obj()
            self._node.stats = {
                'num_instances': str(self._instances), 'io_workload': '0',
                'failed_builds': str(self._stats.get('failed_builds', 0))}
            self._state = host_manager.HostState(
                self.name, self.name, str(uuid.UUID(int=1)))
            self._state.update(compute=self._node, aggregates=[])
        return self._state

    def claim(self, instance, limits):
        """Claim resources for an instance as nova-compute does.

        :param instance: an Instance, which is not changed
        :param limits: the SchedulerLimits of the selection
        :returns: None if the claim is refused, or fails because of a defect
        """
        wanted = instance.pci_requests.requests
        try:
            topology = claims.Claim(
                None, instance, self.name, self._tracker, self._node,
                instance.pci_requests, limits=limits).claimed_numa_topology
            self._charge(instance.flavor, topology, 1)
        except (nova_exception.NovaException, ValueError):
            self._stats.build_failed()
            self._state = None
            return None
        given = []
        if wanted:
            given = self._pci.consume_requests(
                wanted, topology.cells if topology else None)
        self._stats.build_succeeded()
        return Claimed(self, instance.flavor, topology, given)

    def free(self, claimed):
        """Free the resources of an instance."""
        self._charge(claimed.flavor, claimed.topology, -1)
        devices.give_back(self._pci.pools, claimed.devices)

    def forget(self, state):
        """Drop the HostState if the scheduler counted an instance on it."""
        if (self._state is not None
                and state.num_instances != self._state.num_instances):
            self._state = None

    def _charge(self, flavor, topology, sign):
        self._tracker._update_usage(
            {'memory_mb': flavor.memory_mb, 'vcpus': flavor.vcpus,
             'numa_topology': topology}, self.name, sign)
        self._instances += sign
        self._state = None


def _node(name, supply, topology):
    memory_mib = sum(cell.memory_mib for cell in supply.cells)
    used_mib = sum(cell.memory_used_mib for cell in supply.cells)
    vcpus_used = sum(cell.cpu_usage + len(cell.dedicated) - len(cell.free)
                     for cell in supply.cells)
    return objects.ComputeNode(
        uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), host=name,
        hypervisor_hostname=name, host_ip='192.0.2.1', updated_at=None,
        hypervisor_type='QEMU', hypervisor_version=1, cpu_info='{}',
        supported_hv_specs=[], metrics='[]', memory_mb=memory_mib,
        memory_mb_used=used_mib, free_ram_mb=memory_mib - used_mib,
        vcpus=sum(len(cell.shared) for cell in supply.cells),
        vcpus_used=vcpus_used, local_gb=_DISK_GIB, local_gb_used=0,
        free_disk_gb=_DISK_GIB, disk_available_least=None, running_vms=0,
        cpu_allocation_ratio=supply.cpu_ratio,
        ram_allocation_ratio=supply.ram_ratio, disk_allocation_ratio=1.0,
        numa_topology=topology._to_json())


def _topology(supply):
    return objects.NUMATopology(cells=[
        objects.NUMACell(
            id=cell.id, socket=cell.socket, cpuset=set(cell.shared),
            pcpuset=set(cell.dedicated),
            pinned_cpus=set(cell.dedicated - cell.free),
            siblings=[set(core) for core in cell.siblings],
            cpu_usage=cell.cpu_usage, memory=cell.memory_mib,
            memory_usage=cell.memory_used_mib,
            mempages=[
                objects.NUMAPagesTopology(
                    size_kb=pool.size_kib, total=pool.total, used=pool.used,
                    reserved=pool.total - pool.used - pool.free)
                for pool in cell.pages],
            network_metadata=objects.NetworkMetadata(
                physnets=set(cell.physnets), tunneled=cell.tunneled))
        for cell in supply.cells])

# SPDX-License-Identifier: Apache-2.0

"""Run a fleet as a cloud, with Nova's scheduler and its claims.

nova-scheduler selects a host and its alternates with the filters and weighers
of nova.conf. The claim of nova-compute chooses cells and CPUs. If a claim is
refused, the instance is sent to the alternates, as in nova-conductor.
"""

import dataclasses
import json
import uuid

from nova import context as nova_context
from nova import objects

from hpcvirt.nova_live import boot_request as boot_requests
from tests.functional.replay_cloud import allocations
from tests.functional.replay_cloud import compute_host
from tests.functional.replay_cloud import devices
from tests.functional.replay_cloud import in_process_scheduler


@dataclasses.dataclass(frozen=True, eq=False)
class ReplayServer:
    """An instance, and its claim.

    :ivar host: the number of its host
    """

    uuid: str
    host: int
    claimed: compute_host.Claimed


class ReplayCloud:
    """The compute hosts, Placement and the scheduler of a fleet."""

    def __init__(self, fleet, flavors):
        """Create all hosts as nova-compute reports them.

        :param flavors: the flavors of the requests
        """
        self._context = nova_context.get_admin_context()
        products = devices.Products(fleet, flavors)
        self._flavors = [
            boot_requests.flavor_of(dataclasses.replace(
                flavor.flavor, disk_gib=0)) for flavor in flavors]
        self._instances = [_instance(self._spec(flavor))
                           for flavor in self._flavors]
        self._hosts = [compute_host.ComputeHost(f'host{number}', supply,
                                                products)
                       for number, supply in enumerate(fleet)]
        self._numbers = {host.uuid: number
                         for number, host in enumerate(self._hosts)}
        self._placement = allocations.ReplayReportClient({
            host.uuid: supply for host, supply
            in zip(self._hosts, fleet, strict=True)})
        self._scheduler = in_process_scheduler.InProcessScheduler(
            {host.uuid: host for host in self._hosts}, self._placement)

    def create(self, number, count):
        """Create instances of a flavor.

        :param number: the number of the flavor
        :returns: the instances; empty if one of them has no host
        """
        spec = self._spec(self._flavors[number])
        spec.num_instances = count
        wanted = [str(uuid.uuid4()) for _ in range(count)]
        created = []
        for name, selections in zip(
                wanted, self._scheduler.select(spec, wanted), strict=False):
            server = self._build(name, number, selections)
            if server is None:
                break
            created.append(server)
        if len(created) == count:
            return created
        self.delete(created)
        for name in wanted:
            self._placement.delete_allocation_for_instance(None, name)
        return []

    @property
    def states(self):
        """What nova-scheduler sees of each host."""
        return [host.state() for host in self._hosts]

    def delete(self, servers):
        """Delete instances, the last one first."""
        for server in reversed(servers):
            server.claimed.free()
            self._placement.delete_allocation_for_instance(None, server.uuid)

    def _build(self, name, number, selections):
        for selection in selections:
            # The first candidate is allocated to the instance already.
            if selection is not selections[0] and (
                    not self._placement.claim_resources(
                        None, name, json.loads(
                            selection.allocation_request))):
                continue
            host = self._numbers[selection.compute_node_uuid]
            claimed = self._hosts[host].claim(
                self._instances[number], selection.limits)
            if claimed is not None:
                return ReplayServer(name, host, claimed)
            self._placement.delete_allocation_for_instance(None, name)
        return None

    def _spec(self, flavor):
        spec = boot_requests.new(self._context, flavor).spec
        spec.is_bfv = True
        return spec


def _instance(spec):
    """Make the Instance of a request, as nova-api stores it."""
    return objects.Instance(
        uuid=spec.instance_uuid, flavor=spec.flavor,
        numa_topology=spec.numa_topology, pci_requests=spec.pci_requests)

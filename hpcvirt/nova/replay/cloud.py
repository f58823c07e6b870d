# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""A fleet as a cloud: Nova's scheduler, and its claims on compute hosts.

nova-scheduler selects a host with the filters and weighers of nova.conf, and
its alternates. The claim of nova-compute chooses cells and CPUs; an instance
whose claim is refused is sent to the alternates, as nova-conductor does.
"""

import dataclasses
import json
import typing
import uuid
from collections.abc import Sequence

from nova import context as nova_context
from nova import objects

from hpcvirt.fit import supply as supplies
from hpcvirt.nova.controller import request as nova_requests
from hpcvirt.nova.replay import allocations
from hpcvirt.nova.replay import compute_host
from hpcvirt.nova.replay import devices
from hpcvirt.nova.replay import scheduler
from hpcvirt.simulate import requests


@dataclasses.dataclass(frozen=True, eq=False)
class Server:
    """An instance, and what it has on its host.

    :ivar host: the number of its host
    """

    uuid: str
    host: int
    claimed: compute_host.Claimed


class Cloud:
    """The hosts of a fleet, and what Placement knows of them."""

    def __init__(self, fleet: Sequence[supplies.Supply],
                 flavors: Sequence[requests.Flavor]) -> None:
        """Let nova-compute report all hosts.

        :param flavors: those of the requests
        :raises InvalidInput: if Nova refuses a flavor
        """
        self._context = nova_context.get_admin_context()
        products = devices.Products(fleet, flavors)
        self._flavors = [
            nova_requests.flavor_of(dataclasses.replace(
                flavor.flavor, disk_gib=0)) for flavor in flavors]
        self._instances = [_instance(self._spec(flavor))
                           for flavor in self._flavors]
        self._hosts = [compute_host.ComputeHost(f'host{number}', supply,
                                                products)
                       for number, supply in enumerate(fleet)]
        self._numbers = {host.uuid: number
                         for number, host in enumerate(self._hosts)}
        self._placement = allocations.Placement({
            host.uuid: supply for host, supply
            in zip(self._hosts, fleet, strict=True)})
        self._scheduler = scheduler.Scheduler(
            {host.uuid: host for host in self._hosts}, self._placement)

    def create(self, number: int, count: int) -> list[Server]:
        """Create instances of a flavor.

        :param number: of the flavor
        :returns: nothing if some instance has no host
        """
        spec = self._spec(self._flavors[number])
        spec.num_instances = count
        wanted = [str(uuid.uuid4()) for _ in range(count)]
        created: list[Server] = []
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

    def delete(self, servers: Sequence[Server]) -> None:
        """Delete instances."""
        for server in servers:
            server.claimed.free()
            self._placement.delete_allocation_for_instance(None, server.uuid)

    def _build(self, name: str, number: int,
               selections: Sequence[typing.Any]) -> Server | None:
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
                return Server(name, host, claimed)
            self._placement.delete_allocation_for_instance(None, name)
        return None

    def _spec(self, flavor: typing.Any) -> typing.Any:
        spec = nova_requests.new(self._context, flavor).spec
        spec.is_bfv = True
        return spec


def _instance(spec: typing.Any) -> typing.Any:
    """Make the Instance of a request, as nova-api stores it."""
    return objects.Instance(
        uuid=spec.instance_uuid, flavor=spec.flavor,
        numa_topology=spec.numa_topology, pci_requests=spec.pci_requests)

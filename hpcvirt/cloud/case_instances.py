# SPDX-License-Identifier: Apache-2.0

"""The instances of a case of a study, on the hosts that it names."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt.cloud import benchmark_instances
from hpcvirt.cloud import session
from hpcvirt.model import flavor as flavor_model

MARK = 'hpcvirt-study'
#: Models of network devices that are emulated.
_EMULATED = ('e1000', 'rtl8139')
#: VNIC types of the ports of these devices; other devices need no port.
_VNIC_TYPES = {'sriov': 'direct', 'passthrough': 'direct-physical'}


@dataclasses.dataclass(frozen=True)
class CaseInstances:
    """Starts the instances of a case, and removes them.

    :ivar flavor: that of all instances
    :ivar hosts: that of each instance
    :ivar image: its id
    :ivar networks: their ids; the instances take them in turn
    :ivar device: the network device that the case requires
    """

    instances: benchmark_instances.BenchmarkInstances
    flavor: flavor_model.Flavor
    hosts: Sequence[str]
    image: str
    networks: Sequence[str]
    device: str
    user_data: str

    def start(self, public_key: str) -> tuple[str, ...]:
        """Start the instances, or find them; return their ids.

        :raises InvalidInput: if a host has other instances
        :raises InstancesNotStarted: if Nova could not start all of them
        """
        for host in dict.fromkeys(self.hosts):
            self.instances.find_free_host(host)
        flavor_id = self.instances.add_flavor(self.flavor)
        return self.instances.start([
            benchmark_instances.InstanceRequest(
                f'{self.instances.owner}-{number}', host, flavor_id,
                self.image, self.networks[number % len(self.networks)],
                _VNIC_TYPES.get(self.device, ''), self.user_data)
            for number, host in enumerate(self.hosts)], public_key)

    def clear(self) -> None:
        """Remove all that was created."""
        self.instances.clear()
        if self.device in _VNIC_TYPES:
            self.instances.delete_ports()


def find(nova: Any, owner: str, flavor: flavor_model.Flavor,
         hosts: Sequence[str], image: str, networks: Sequence[str],
         device: str, user_data: str) -> CaseInstances:
    """Look up what a case needs in the cloud.

    :param nova: a client of :func:`hpcvirt.cloud.session.compute`
    :param image: its name or id
    :param networks: their names
    :raises InvalidInput: if the image has another network device
    :raises Unreachable: if the cloud does not answer, or has no such image
        or network
    """
    instances = benchmark_instances.BenchmarkInstances(nova, MARK, owner)
    image_id = instances.find_image(image)
    if device == 'emulated':
        with session.one_line_errors():
            model = getattr(nova.glance.find_image(image), 'hw_vif_model', '')
        if model not in _EMULATED:
            # An instance with another device would measure another case.
            raise exception.InvalidInput(
                f'image {image}', 'hw_vif_model is no emulated network '
                f'device: {", ".join(_EMULATED)}')
    return CaseInstances(
        instances, flavor, hosts, image_id,
        [instances.find_network(name) for name in networks], device,
        user_data)

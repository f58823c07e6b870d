# SPDX-License-Identifier: Apache-2.0

"""Start the instances of a case of a study, on the hosts that it names."""

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class CaseInstances(benchmark_instances.BenchmarkInstances):
    """Starts the instances of a case, which is the owner, and removes them.

    :ivar flavor: the flavor of all instances
    :ivar hosts: the host of each instance
    """

    flavor: flavor_model.Flavor
    hosts: Sequence[str]

    def start(self, public_key: str) -> tuple[str, ...]:
        """Start the instances, or find them; return their ids.

        :raises InvalidInput: if a host has other instances
        :raises InstancesNotStarted: if Nova could not start all of them
        """
        for host in dict.fromkeys(self.hosts):
            self.check_host(host)
        return self.boot(self.owner, self.add_flavor(self.flavor), self.hosts,
                         public_key)


def find(nova: Any, owner: str, flavor: flavor_model.Flavor,
         hosts: Sequence[str], image: str, networks: Sequence[str],
         device: str, user_data: str) -> CaseInstances:
    """Look up the image and the networks of a case.

    :param nova: a client of :func:`hpcvirt.cloud.session.compute`
    :param image: its name or id
    :param networks: their names
    :param device: the kind of network device of the case
    :raises InvalidInput: if the image sets another network device
    :raises Unreachable: if the cloud does not answer, or has no such image
        or network
    """
    if device == 'emulated':
        with session.one_line_errors():
            model = getattr(nova.glance.find_image(image), 'hw_vif_model', '')
        if model not in _EMULATED:
            # An instance with another device would measure another case.
            raise exception.InvalidInput(
                f'image {image}', 'hw_vif_model must be an emulated network '
                f'device: {" or ".join(_EMULATED)}')
    return CaseInstances(
        nova, MARK, owner, vnic_type=_VNIC_TYPES.get(device, ''),
        user_data=user_data, flavor=flavor, hosts=hosts).use(image, networks)

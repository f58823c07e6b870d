# SPDX-License-Identifier: Apache-2.0

"""Fill a host with instances of the flavors that an experiment compares."""

import dataclasses

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.cloud import held_host
from hpcvirt.cloud import quarantine as cloud_quarantine
from hpcvirt.model import flavor as flavor_model

MARK = 'hpcvirt-tune'
#: How long nova-compute may take to report after the host was changed.
READY_S = 300.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TunedHost(held_host.HeldHost):
    """Changes the cloud for the trials on one host, which is the owner."""

    def fill(self, flavor: flavor_model.Flavor, count: int,
             public_key: str) -> tuple[str, ...]:
        """Create a flavor, and start as many instances as fill the host.

        What exists of them is used. Other instances of the host's trials are
        deleted.

        :param flavor: its name is unique among all trials
        :returns: the ids of the instances
        :raises InstancesNotStarted: if Nova could not start all of them
        """
        return self.boot(flavor.name, self.add_flavor(flavor),
                         [self.owner] * count, public_key)

    def wait_ready(self) -> None:
        """Wait until the host can take instances.

        :raises InvalidInput: if it cannot after the time limit
        """
        waiting.retry(lambda: self.check_host(self.owner),
                      exception.InvalidInput, READY_S, self.pause_s)


def find(cloud: cloud_quarantine.Quarantine, host: str, image: str,
         network: str) -> TunedHost:
    """Look up the image and the network.

    :raises Unreachable: if the cloud does not answer, or has no such image
        or network
    """
    return TunedHost(cloud.nova, MARK, host, cloud=cloud).use(
        image, [network])

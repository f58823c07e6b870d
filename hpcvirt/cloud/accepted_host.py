# SPDX-License-Identifier: Apache-2.0

"""Change the instances and traits of a host under acceptance."""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.cloud import benchmark_instances
from hpcvirt.cloud import compute_hosts
from hpcvirt.cloud import flavors as cloud_flavors
from hpcvirt.cloud import quarantine as cloud_quarantine
from hpcvirt.flavors import diff
from hpcvirt.specs import codec

MARK = 'hpcvirt-accept'


@dataclasses.dataclass(frozen=True, kw_only=True)
class AcceptedHost(benchmark_instances.BenchmarkInstances):
    """Changes the cloud for the acceptance of one host, which is the owner.

    :ivar flavors: the flavors of the cloud, by name
    """

    cloud: cloud_quarantine.Quarantine
    flavors: Mapping[str, diff.Existing]

    def fill(self, flavor: str, count: int, without: Collection[str],
             public_key: str) -> tuple[str, ...]:
        """Start as many instances as fill the host; return their ids.

        :param without: traits that the host does not have yet: a copy of the
            flavor that does not require them is used instead
        """
        existing = self.flavors[flavor]
        specs = codec.drop_traits(existing.flavor.extra_specs, without)
        flavor_id = existing.id
        if len(specs) != len(existing.flavor.extra_specs):
            flavor_id = self.add_flavor(dataclasses.replace(
                existing.flavor, extra_specs=specs), existing)
        return self.boot(flavor, flavor_id, [self.owner] * count, public_key)

    def set_traits(self, earned: Iterable[str], of: Collection[str]) -> None:
        """Give the host the traits that it has earned, and no others.

        :param of: all traits that a host can earn
        """
        for provider in compute_hosts.find_providers(self.nova, self.owner):
            self.cloud.placement.change_traits(
                provider, earned, set(of) - set(earned))


def find(cloud: cloud_quarantine.Quarantine, host: str,
         flavors: Iterable[str], image: str, network: str) -> AcceptedHost:
    """Look up the flavors, image and network, and check that a host is free.

    :raises InvalidInput: if the host is not free, or a flavor is missing
    :raises Unreachable: if the cloud does not answer, or has no such image
        or network
    """
    existing = {each.flavor.name: each
                for each in cloud_flavors.read(cloud.nova)}
    accepted = AcceptedHost(cloud.nova, MARK, host, flavors=existing,
                            cloud=cloud)
    accepted.check_host(host)
    for flavor in flavors:
        if flavor not in existing:
            raise exception.InvalidInput(
                '--flavor', f'the cloud has no flavor {flavor}; '
                '"hpcvirt flavor apply" creates it')
    return accepted.use(image, [network])

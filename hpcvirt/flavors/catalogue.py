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

"""Make one set of flavors that serves all hosts of a fleet."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.flavors import names
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import sizes
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import codec
from hpcvirt.specs import resources
from hpcvirt.specs import vocabulary


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor as Nova stores it.

    :ivar projects: the projects that may use it; None if it is public
    """

    name: str
    vcpus: int
    ram_mib: int
    disk_gib: int
    extra_specs: Mapping[str, str]
    projects: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """A guest that was sized for one or more hosts.

    :ivar shares: host -> the share of it that the guest is
    """

    guest: shape_model.Shape
    shares: Mapping[str, sizes.Share]


def merge(offers: Iterable[Offer],
          tolerance_percent: int) -> tuple[Offer, ...]:
    """Merge offers that differ only a little in memory.

    Hosts of one model differ slightly in memory. Guests that are equal except
    for their memory, and whose memory is within the tolerance of the smallest,
    become one guest with the smallest memory, which fits on all their hosts.
    """
    alike: dict[shape_model.Shape, list[Offer]] = {}
    for offer in offers:
        alike.setdefault(_without_memory(offer.guest), []).append(offer)
    merged = []
    for group in alike.values():
        clusters: list[list[Offer]] = []
        for offer in sorted(group, key=lambda offer: offer.guest.memory_mib):
            least = clusters[-1][0].guest.memory_mib if clusters else 0
            if clusters and offer.guest.memory_mib * 100 <= least * (
                    100 + tolerance_percent):
                clusters[-1].append(offer)
            else:
                clusters.append([offer])
        merged += [_poorest(cluster) for cluster in clusters]
    return tuple(sorted(merged, key=_order))


def _without_memory(guest: shape_model.Shape) -> shape_model.Shape:
    return dataclasses.replace(guest, cells=tuple(
        dataclasses.replace(cell, memory_mib=0) for cell in guest.cells))


def _poorest(cluster: Sequence[Offer]) -> Offer:
    guests = [offer.guest for offer in cluster]
    cells = tuple(
        dataclasses.replace(same[0], memory_mib=min(
            cell.memory_mib for cell in same))
        for same in zip(*(guest.cells for guest in guests), strict=True))
    shares: dict[str, sizes.Share] = {}
    for offer in cluster:
        for host, share in offer.shares.items():
            shares.setdefault(host, share)
    return Offer(dataclasses.replace(guests[0], cells=cells), shares)


def _order(offer: Offer) -> tuple[int, int, int, str]:
    guest = offer.guest
    return (guest.cpus, len(guest.cells), guest.memory_mib, str(guest.cells))


def flavor(guest: shape_model.Shape, profile: profiles.Profile,
           name: str = '') -> Flavor:
    """Write a guest as a flavor.

    In addition to the needs of the guest, the flavor prevents images from
    showing SMT siblings that do not exist. It has hpcvirt's mark with a
    digest, by which a later run recognizes its own flavors and detects
    changes.
    """
    specs = codec.encode(dataclasses.replace(guest, devices=tuple(
        device for device in guest.devices if device.alias is not None)))
    for device in guest.devices:
        if device.affinity is not None:
            specs[vocabulary.PCI_NUMA_AFFINITY_POLICY.name] = (
                device.affinity.value)
        if device.resource_class is not None:
            specs.update(resources.write(
                device.resource_class, device.count,
                profile.devices.traits if profile.devices else ()))
    if guest.topology is not None:
        specs[vocabulary.CPU_MAX_THREADS.name] = str(guest.topology.threads)
    specs.update(profile.extra_specs)
    content = (guest.cpus, guest.memory_mib, profile.disk_gib)
    return Flavor(
        name, *content, marked(*content, specs), profile.projects)


def marked(vcpus: int, ram_mib: int, disk_gib: int,
           extra_specs: Mapping[str, str]) -> dict[str, str]:
    """Add hpcvirt's mark for this content to extra specs, and sort them."""
    row = vocabulary.GENERATED_BY
    specs = {key: value for key, value in extra_specs.items()
             if key != row.name}
    digest = names.content_digest(vcpus, ram_mib, disk_gib, specs)
    specs[row.name] = f'{vocabulary.GENERATED_MARK}+{digest}'
    return dict(sorted(specs.items()))

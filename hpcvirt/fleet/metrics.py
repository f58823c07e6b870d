# SPDX-License-Identifier: Apache-2.0

"""Describe the room in a fleet as metrics, with names and help.

Names and labels of os-capacity [https://github.com/stackhpc/os-capacity] have
the same meaning here, but count the instances that Nova really takes, not
those that Placement's totals promise.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fleet import count as counts
from hpcvirt.fleet import free_resources
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.fleet import verdict

#: The zone and the project aggregate of a hypervisor.
_PLACE = ('az_aggregate', 'project_aggregate')


@dataclasses.dataclass(frozen=True)
class Family:
    """A gauge.

    :ivar samples: values of the labels -> value
    """

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Mapping[tuple[str, ...], float]


def families(fleet: state.Fleet, found: Sequence[counts.InstanceCount],
             refused: log_reading.Found | None = None) -> Iterator[Family]:
    """Yield the metrics of a fleet.

    :param found: the counts of all flavors that the hosts may take
    :param refused: the refusals of the last day, if they are known
    """
    for name, words, numbers in (
            ('openstack_free_capacity_by_flavor_total',
             'that Nova takes until it refuses one',
             [(item.flavor, item.total) for item in found]),
            ('hpcvirt_capacity_by_sums',
             'for which the sums of Placement are enough',
             [(item.flavor, item.by_sums) for item in found]),
            ('hpcvirt_capacity_if_empty',
             'that Nova would take without instances on the hypervisors',
             [(item.flavor, item.total)
              for item in _count_if_empty(fleet, found)])):
        yield Family(
            name, f'Instances of this flavor alone {words}',
            ('flavor_name', 'public'),
            {(flavor.name, str(flavor.projects is None)): number
             for flavor, number in numbers})
    groups = state.group_alike(fleet.hosts)
    places = {host.name: (host.zone, host.project_aggregate)
              for host in fleet.hosts}
    # As in os-capacity, hosts that take no instance have no sample.
    yield Family(
        'openstack_free_capacity_hypervisor_by_flavor',
        'Instances of this flavor alone that Nova takes on the hypervisor',
        ('hypervisor', 'flavor_name', *_PLACE),
        _count_per_host(found, places))
    refusing = collections.Counter[tuple[str, ...]]()
    for item in found:
        guest = item.guest
        for group in groups:
            if item.per_host[group[0].name]:
                continue
            answer = verdict.judge_host(guest, group[0])
            if not answer.fits:
                refusing[item.flavor.name, str(answer.step),
                         str(answer.root)] += len(group)
    yield Family(
        'hpcvirt_refusing_hypervisors',
        'Hypervisors that refuse an instance of the flavor, by the step of '
        'Nova that refuses and its main reason',
        ('flavor_name', 'step', 'reason'), refusing)
    yield Family(
        'hpcvirt_hypervisor_broken',
        'Whether the record of the hypervisor is broken, so that it is '
        'missing from all other metrics', ('hypervisor',),
        {**{(host.name,): 0 for host in fleet.hosts},
         **{(name,): 1 for name in fleet.broken}})
    number, pcpus = (collections.Counter[tuple[str, ...]]() for _ in range(2))
    for host in fleet.hosts:
        for instance in host.instances:
            if instance.project is not None:
                number[instance.project,] += 1
                pcpus[instance.project,] += instance.guest.sums.pcpus
    yield Family('hpcvirt_project_instances', 'Instances of the project',
                 ('project_id',), number)
    yield Family('hpcvirt_project_pcpus', 'PCPUs of the instances of the '
                 'project', ('project_id',), pcpus)
    if refused is not None:
        yield Family(
            'hpcvirt_refused_requests_last_day', 'Requests and builds of the '
            'last 24 hours that failed, by the step of Nova and its main '
            'reason', ('flavor_name', 'step', 'reason'),
            {kind: number for kind, (number, _) in refused.kinds.items()})
    yield from _room({
        (name, *places[name]): room for name, room
        in free_resources.describe_hosts(fleet, found).items()})


def _count_per_host(found: Sequence[counts.InstanceCount],
                    places: Mapping[str, tuple[str, str]],
                    ) -> dict[tuple[str, ...], int]:
    """Count instances by hypervisor, flavor and place."""
    samples: dict[tuple[str, ...], int] = {}
    for item in found:
        for host, number in item.per_host.items():
            if number:
                samples[host, item.flavor.name, *places[host]] = number
    return samples


def _count_if_empty(fleet: state.Fleet, found: Sequence[counts.InstanceCount],
                    ) -> Sequence[counts.InstanceCount]:
    """Count the instances of each flavor that the fleet takes without others.

    Flavors with devices are left out if the devices of instances are unknown,
    as in a cloud.
    """
    residents = itertools.chain.from_iterable(
        host.instances for host in fleet.hosts)
    unknown = any(item.guest.demand.requests and not item.holding.devices
                  for item in residents)
    return counts.count(dataclasses.replace(fleet, hosts=tuple(
        moving.leave_all(host.instances, host) for host in fleet.hosts)), [
            item.flavor for item in found if not unknown
            or not item.guest.demand.requests])


def _room(rooms: Mapping[tuple[str, ...],
                         free_resources.FreeResources]) -> Iterator[Family]:
    labels = ('hypervisor', *_PLACE)
    stays = ('that stay free whichever one of the flavors the hypervisor is '
             'filled with')
    for key, part, words in (
            ('total', '', 'for guests'), ('free', '_free', 'that are free'),
            ('stranded', '_stranded', stays)):
        yield Family(
            f'hpcvirt_hypervisor_pcpus{part}', f'PCPUs {words}',
            labels, {place: getattr(room.pcpus, key)
                     for place, room in rooms.items()})
        pages: dict[tuple[str, ...], float] = {}
        for place, room in rooms.items():
            for size, amount in room.pages.items():
                pages[*place, str(size)] = getattr(amount, key)
        yield Family(
            f'hpcvirt_hypervisor_pages{part}',
            f'Pages {words}, of the sizes that flavors ask for',
            (*labels, 'size_kib'), pages)
    for key, part, words in (
            ('total', '', 'with PCPUs'),
            ('free', '_free', 'with PCPUs of which no instance has any part')):
        for kind, name in (('cells', 'NUMA cells'),
                           ('sockets', 'Physical sockets')):
            yield Family(
                f'hpcvirt_hypervisor_{kind}{part}', f'{name} {words}',
                labels, {place: getattr(getattr(room, kind), key)
                         for place, room in rooms.items()})
    yield Family(
        'hpcvirt_hypervisor_empty',
        'Whether no instance is on the hypervisor', labels,
        {place: room.hosts.free for place, room in rooms.items()})

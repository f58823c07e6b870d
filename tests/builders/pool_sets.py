# SPDX-License-Identifier: Apache-2.0

"""Pools of devices in sets, and what is lost of them."""

from hpcvirt.fit import device_sets
from hpcvirt.fit import devices

Set = device_sets.DeviceSet
#: A host is a list of pools: the free devices of each, and its sets.
OCTET = [(1, {('gpu8', 0), ('gpu4', i // 4), ('gpu2', i // 2)})
         for i in range(8)]
#: The devices of a set of each kind.
SIZES = {'gpu2': 2, 'gpu4': 4, 'gpu8': 8}


def pools(host, aliases=None):
    """Make the pools of a host whose devices serve an alias each, or all."""
    counts = {}
    for _, sets in host:
        for each in sets:
            counts[each] = counts.get(each, 0) + 1
    return tuple(
        devices.Pool(0, free, {
            devices.alias_tag(aliases[i] if aliases else 'gpu'): True,
            device_sets.TAG: device_sets.render(
                Set(*each, counts[each]) for each in sets)}, f'p{i}')
        for i, (free, sets) in enumerate(host))


def request(alias='gpu', count=1):
    """Request devices by their alias."""
    return devices.DeviceRequest(({devices.alias_tag(alias): True},), count,
                                 name=alias)


def a_host(rng):
    """Draw a host of up to six pools, with sets that may overlap."""
    names = [(kind, number) for kind in 'ab' for number in range(3)]
    return [(rng.choice((0, 1, 1, 2)),
             {name for name in names if rng.random() < 0.4})
            for _ in range(rng.randrange(1, 7))]


def lawful(host, kind, indices):
    """Whether one set of a kind has all of these devices, one by one."""
    taken = {i: indices.count(i) for i in indices}
    return bool(indices) and all(
        count <= host[i][0] for i, count in taken.items()) and any(
        all(each in host[i][1] for i in indices)
        for each in {(kind, number) for number in range(3)})


def broken(host, indices):
    """Sum the squares of the whole sets that lose a pool."""
    cost = 0
    for each in set().union(*(sets for _, sets in host)):
        members = [i for i, (_, sets) in enumerate(host) if each in sets]
        if all(host[i][0] for i in members) and any(
                host[i][0] == indices.count(i) for i in members):
            cost += len(members) ** 2
    return cost

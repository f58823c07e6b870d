# SPDX-License-Identifier: Apache-2.0

"""Hosts whose GPUs and NICs form sets, and a plain oracle of what fits.

A host has two cells with four GPUs and two NICs each. Two GPUs and a NIC are
below a switch. GPUs 2i and 2i+1 are a pair, and those of a cell a quartet.
"""

import collections
import dataclasses
import itertools

from hpcvirt.fit import admission
from hpcvirt.fit import allocation
from hpcvirt.fit import claim
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from tests.builders import tiny

GPUS, NICS = range(8), range(4)

#: The devices of each set of each kind.
SETS = {
    'gpu2': [{f'gpu{2 * i}', f'gpu{2 * i + 1}'} for i in range(4)],
    'gpu4': [{f'gpu{4 * i + j}' for j in range(4)} for i in range(2)],
    'gpu8': [{f'gpu{i}' for i in GPUS}],
    'near': [{f'gpu{2 * i}', f'gpu{2 * i + 1}', f'nic{i}'} for i in NICS],
    # Any two neighbors of a ring; they overlap.
    'ring': [{f'gpu{i}', f'gpu{(i + 1) % 8}'} for i in GPUS]}

#: Device -> the aliases that it serves, by their ranks as in a plan.
PLANNED = {
    **{f'gpu{i}': ('gpu', f'gpu2-{i % 2}', f'gpu4-{i % 4}', f'gpu8-{i}')
       for i in GPUS},
    **{f'nic{i}': ('nic',) for i in NICS}}
#: Likewise in a cloud, where only Placement knows the ranks.
IN_CLOUD = {device: tuple(sorted({
    alias for other, own in PLANNED.items() if other[:3] == device[:3]
    for alias in own})) for device in PLANNED}
_CELLS = {**{f'gpu{i}': i // 4 for i in GPUS},
          **{f'nic{i}': i // 2 for i in NICS}}


def pools(aliases=PLANNED):
    """Make the pools of an empty host."""
    found = []
    for name, own in aliases.items():
        tags = {devices.alias_tag(alias): True for alias in own}
        tags[device_sets.TAG] = device_sets.render(
            device_sets.DeviceSet(kind, number, len(own))
            for kind, sets in SETS.items() for number, own in enumerate(sets)
            if name in own)
        found.append(devices.Pool(_CELLS[name], 1, tags, name))
    return tuple(found)


def flavor(name, cells, aliases, kind=None, affinity='preferred'):
    """Make a flavor.

    :param cells: the dedicated CPUs of each guest cell
    """
    specs = {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': str(len(cells)),
             'hw:mem_page_size': '2048', 'pci_passthrough:alias': aliases,
             'hw:pci_numa_affinity_policy': affinity}
    if kind is not None:
        specs['hpcvirt:device_set'] = kind
    return flavor_model.Flavor(name, sum(cells), 512 * len(cells), 0, specs)


def ranks(kind, size):
    """Request one device of each rank."""
    return ','.join(f'{kind}-{rank}:1' for rank in range(size))


FLAVORS = [
    flavor('gpu1', (1,), 'gpu:1'),
    flavor('gpu2', (2,), ranks('gpu2', 2), 'gpu2'),
    flavor('gpu2near', (2,), ranks('gpu2', 2), 'gpu2', 'required'),
    flavor('gpu4', (2,), ranks('gpu4', 4), 'gpu4'),
    flavor('gpu4near', (2,), ranks('gpu4', 4), 'gpu4', 'required'),
    flavor('gpu8', (2, 2), ranks('gpu8', 8), 'gpu8', 'required'),
    flavor('near', (2,), 'gpu:1,nic:1', 'near', 'required'),
    flavor('half', (1,), 'gpu:2', 'gpu4'),
    flavor('ring', (1,), 'gpu:2', 'ring')]
#: Compiled once, so that equal instances are of one kind.
GUESTS = {each.name: compiled_flavor.make(each) for each in FLAVORS}


def host(name='h', cpus=8, aliases=PLANNED):
    """Make an empty host with so many CPUs in a cell."""
    return state.FleetHost(name, placement.HostState(
        tiny.host(8 - cpus, 8 - cpus, pools=pools(aliases)),
        guests.Resources(2 * cpus, 0, 32768, guests.UNKNOWN_DISK_GIB)))


def a_host(dice, name='h', rounds=12, aliases=PLANNED, follows=True):
    """Make a host on which instances have come and gone.

    Those without a set have any devices.

    :param follows: whether a move gives devices that Placement allocates
    """
    found = host(name, dice.choice((4, 8)), aliases)
    for number in range(dice.randrange(rounds)):
        if found.instances and dice.random() < 0.3:
            found = moving.leave(dice.choice(found.instances), found)
            continue
        wanted = dice.choice((FLAVORS[0], FLAVORS[0], *FLAVORS))
        guest = GUESTS[wanted.name]
        placed = admission.predict(guest, found.state)
        if wanted is FLAVORS[0]:
            providers = ((dice.choice(list(aliases)),),)
            placed = claim.predict(guest.demand, found.state.supply, providers)
            if hasattr(placed, 'cells'):
                placed = dataclasses.replace(placed, providers=providers)
        if hasattr(placed, 'cells'):
            found = moving.arrive(state.Instance(
                f'{name}-{number}', '', name, guest,
                allocation.Holding(placed), follows_placement=follows),
                found, placed)
    return found


def with_instances(name, *instances, cpus=8, follows=True):
    """Make a host with instances: a flavor, and its devices in order."""
    found = host(name, cpus)
    for number, (wanted, *own) in enumerate(instances):
        guest = GUESTS[wanted.name]
        left = iter(own)
        providers = tuple(
            tuple(itertools.islice(left, request.count))
            for request in guest.demand.requests)
        placed = dataclasses.replace(claim.predict(
            guest.demand, found.state.supply, providers), providers=providers)
        found = moving.arrive(state.Instance(
            f'{name}-{number}', '', name, guest,
            allocation.Holding(placed), follows_placement=follows),
            found, placed)
    return found


def held(instance, host):
    """Return the devices of an instance."""
    return [pool.provider for pool, count in zip(
        host.state.supply.pools, instance.holding.devices, strict=True)
        for _ in range(count)]


def faults(host):
    """List what is wrong with the devices of a host."""
    owners = collections.Counter(device for one in host.instances
                                 for device in held(one, host))
    free = {pool.provider for pool in host.state.supply.pools if pool.free}
    found = [f'{device} has {count} owners' for device, count
             in owners.items() if count > 1]
    found += [f'{device} is free' for device in free & owners.keys()]
    found += [f'{device} is lost' for device in
              PLANNED.keys() - free - owners.keys()]
    for one in host.instances:
        own = set(held(one, host))
        kind = one.guest.demand.device_set
        if len(own) != sum(item.count for item in one.guest.demand.requests):
            found.append(f'{one.id} has {sorted(own)}')
        if kind and not any(own <= each for each in SETS[kind]):
            found.append(f'{one.id} has no set {kind}: {sorted(own)}')
    return found


def room(host):
    """Describe what a host has left: free CPUs of each cell, and devices."""
    supply = host.state.supply
    return (tuple(len(cell.free) for cell in supply.cells),
            frozenset(pool.provider for pool in supply.pools if pool.free))


def ways(wanted, left, aliases=PLANNED):
    """Yield what a host has left after an instance, however it is placed."""
    cpus, free = left
    shape = GUESTS[wanted.name].shape
    kind = shape.device_set
    seen = set()
    for cells in itertools.permutations(range(len(cpus)), len(shape.cells)):
        rest = list(cpus)
        for place, cell in zip(cells, shape.cells, strict=True):
            rest[place] -= cell.pcpus
        if min(rest) < 0:
            continue
        for own in SETS[kind] if kind else [free]:
            for taken in _assign(shape.devices, own, free, cells, aliases):
                after = tuple(rest), free - taken
                if after not in seen:
                    seen.add(after)
                    yield after


def _assign(requests, own, free, cells, aliases):
    """Yield every assignment of devices to requests.

    Nova takes no device of another cell if there are enough near the guest.

    :param own: the devices of a set
    """
    if not requests:
        yield frozenset()
        return
    first, *others = requests
    serving = {device for device in free if first.alias in aliases[device]}
    near = {device for device in serving if _CELLS[device] in cells}
    if first.affinity == 'required' or len(near) >= first.count:
        serving = near
    for taken in itertools.combinations(sorted(serving & own), first.count):
        for rest in _assign(others, own, free - {*taken}, cells, aliases):
            yield rest | {*taken}


def fits(wanted, left, aliases=PLANNED):
    """Whether a host has room for an instance."""
    return next(ways(wanted, left, aliases), None) is not None


def most(wanted, left, aliases=PLANNED, known=None):
    """Count the most instances for which a host has room."""
    known = {} if known is None else known
    if left not in known:
        known[left] = max((1 + most(wanted, after, aliases, known)
                           for after in ways(wanted, left, aliases)),
                          default=0)
    return known[left]

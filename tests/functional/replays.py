# SPDX-License-Identifier: Apache-2.0

"""Random fleets and requests, and options of Nova, for replays."""

import nova.conf
from nova import objects

from hpcvirt import exception
from hpcvirt.fit import claim
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import compiled_flavor
from hpcvirt.model import flavor as flavor_model
from hpcvirt.nova import config
from hpcvirt.simulate import requests
from hpcvirt.simulate import strategy as strategies
from tests.functional import soundness

CONF = nova.conf.CONF

objects.register_all()

USUAL = ['ComputeFilter', 'ComputeCapabilitiesFilter',
         'ImagePropertiesFilter', 'ServerGroupAntiAffinityFilter',
         'ServerGroupAffinityFilter']
OURS = [*USUAL, 'HPCTopologyFilter']
UPSTREAM = [*USUAL, 'NUMATopologyFilter', 'PciPassthroughFilter']

_MULTIPLIERS = {
    'ram': 'ram_weight_multiplier', 'cpu': 'cpu_weight_multiplier',
    'disk': 'disk_weight_multiplier', 'pci': 'pci_weight_multiplier'}


def configure(test, name, filters=OURS, fullest=False):
    """Set the options of nova.conf that a strategy stands for."""
    (strategy,) = strategies.parse(name + '+fullest' * fullest, 0)
    config.register()
    classes = ['nova.scheduler.weights.all_weighers']
    if 'topology' in strategy.multipliers:
        classes.append('hpcvirt.nova.weights.all_weighers')
    options = {
        ('filter_scheduler', 'available_filters'): [
            'nova.scheduler.filters.all_filters',
            'hpcvirt.nova.filters.all_filters'],
        ('filter_scheduler', 'enabled_filters'): filters,
        ('filter_scheduler', 'weight_classes'): classes,
        ('compute', 'packing_host_numa_cells_allocation_strategy'): fullest,
        ('pci', 'alias'): [], ('pci', 'device_spec'): []}
    for weigher, option in _MULTIPLIERS.items():
        options['filter_scheduler', option] = strategy.multipliers[weigher]
    for (group, option), value in options.items():
        CONF.set_override(option, value, group)
        test.addCleanup(CONF.clear_override, option, group)
    return strategy


def a_fleet(dice):
    """Create hosts of one kind, or of several."""
    kinds = [a_host(dice) for _ in range(dice.choice((1, 1, 2, 3)))]
    return [dice.choice(kinds) for _ in range(dice.choice((3, 5, 8)))]


def a_host(dice):
    sockets, per_socket = dice.choice(
        ((1, 1), (2, 1), (2, 1), (2, 2), (1, 4), (4, 1), (2, 4)))
    threads = dice.choice((1, 2))
    cores = dice.choice((2, 4, 6))
    shared = dice.choice((0, 0, 1))
    ids = range(sockets * per_socket)
    cells = []
    for number in ids:
        siblings = tuple(
            frozenset(core + cores * len(ids) * thread
                      for thread in range(threads))
            for core in range(number * cores, (number + 1) * cores))
        floating = frozenset().union(*siblings[:shared])
        dedicated = frozenset().union(*siblings[shared:])
        gib = 4 * cores
        cells.append(supplies.CellSupply(
            number, number // per_socket, dedicated, dedicated, floating,
            siblings, 0, gib * 1024, 0, (
                supplies.PageSupply(4, gib << 16, 0, gib << 16),
                supplies.PageSupply(2048, gib << 8, 0, gib << 8),
                supplies.PageSupply(1 << 20, gib // 4, 0, gib // 4))))
    pools = []
    if dice.random() < 0.5:
        pools.append(devices.pool(dice.choice(ids), 4, alias='vf'))
    if dice.random() < 0.3:
        pools += [devices.pool(number, dice.choice((1, 2)), alias='gpu')
                  for number in dice.sample(ids, dice.randint(1, len(ids)))]
    if dice.random() < 0.2:
        pools += [devices.pool(None, count, resource_class='VGPU')
                  for count in (2, 3)]
    return supplies.Supply(
        tuple(cells), tuple(pools), dice.choice((1.0, 2.0, 4.0)),
        spares_devices=soundness.SPARES_DEVICES)


def a_flavor(dice, number):
    """Create a flavor that Nova accepts."""
    while True:
        nodes = dice.choice((1, 1, 1, 2, 2, 4))
        each = dice.choice((1, 2, 2, 4, 4, 6))
        specs = {'hw:numa_nodes': str(nodes)}
        policy = dice.choice(('dedicated',) * 6 + ('mixed', 'shared', None))
        if policy is None:
            specs, nodes = {}, 1
        else:
            specs['hw:cpu_policy'] = policy
            size = dice.choice((None, '4', '2048', '2048', '1048576'))
            if size:
                specs['hw:mem_page_size'] = size
        if policy == 'mixed':
            specs['hw:cpu_dedicated_mask'] = ','.join(
                str(node * each) for node in range(nodes))
        if policy in ('dedicated', 'mixed'):
            threads = dice.choice((None, None, 'prefer', 'require', 'isolate'))
            if threads:
                specs['hw:cpu_thread_policy'] = threads
            if dice.random() < 0.2:
                specs['hw:emulator_threads_policy'] = 'isolate'
        alias = dice.choice((None, None, None, 'vf:1', 'vf:1', 'gpu:1',
                             'gpu:2', 'vf:1,gpu:1'))
        if alias:
            specs['pci_passthrough:alias'] = alias
            affinity = dice.choice((None, 'legacy', 'preferred', 'required',
                                    'socket'))
            if affinity:
                specs['hw:pci_numa_affinity_policy'] = affinity
        elif dice.random() < 0.1:
            specs['resources:VGPU'] = dice.choice('123')
        flavor = flavor_model.Flavor(
            f'flavor{number}', nodes * each,
            nodes * 1024 * dice.choice((1, 2, each, each, 3 * each)), 0, specs)
        try:
            return compiled_flavor.make(flavor)
        except exception.InvalidInput:
            continue


def some_requests(dice, fleet, count, wanted):
    """Create requests; all flavors but one fit on some empty host.

    :param wanted: chooses flavors
    """
    flavors = []
    while len(flavors) < 6:
        flavor = a_flavor(dice, len(flavors))
        if wanted(flavor) and (not flavors or any(
                claim.check(flavor.demand, host) is None
                for host in fleet)):
            flavors.append(flavor)
    now, arrivals = 0.0, []
    for _ in range(count):
        now += dice.expovariate(1.0)
        arrivals.append(requests.Arrival(
            now, dice.expovariate(1 / 8), dice.randrange(len(flavors)),
            dice.choice((1, 1, 1, 2, 3))))
    return requests.Requests(tuple(flavors), tuple(arrivals))

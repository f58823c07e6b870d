# SPDX-License-Identifier: Apache-2.0

"""Requests of hostile tenants and malformed hosts, as Nova's own objects.

A request is what nova-api would make of flavor, image and ports: Nova's own
functions compile them, and what they refuse never reaches the scheduler.
"""

import copy
import json
import math
import uuid

from nova import exception
from nova import objects
from nova.api.validation.extra_specs import validators
from nova.pci import request as pci_request
from nova.virt import hardware

from hpcvirt.fit import device_sets
from hpcvirt.nova import port_interface
from tests.builders import cases
from tests.functional import nova_objects

#: ``[pci]alias`` of these requests, see :func:`tests.builders.cases.a_case`.
ALIASES = [json.dumps({
    'name': name, 'vendor_id': '8086', 'product_id': product,
    'device_type': kind}) for name, product, kind in (
        ('vf', '1515', 'type-VF'), ('pf', '1528', 'type-PF'),
        ('gpu', '1515', 'type-PCI'))]

#: Extra specs and what a tenant's administrator may write there.
EXTRA_SPECS = {
    'hw:cpu_policy': ('dedicated', 'dedicated', 'dedicated', 'shared',
                      'mixed', ''),
    'hw:cpu_thread_policy': ('prefer', 'require', 'isolate'),
    'hw:cpu_dedicated_mask': ('0', '^0', '0-1', '^0-2', '99', ''),
    'hw:cpu_realtime': ('yes', 'no'),
    'hw:cpu_realtime_mask': ('^0', '^0-1', ''),
    'hw:emulator_threads_policy': ('isolate', 'share'),
    'hw:numa_nodes': ('1', '1', '2', '2', '3', '4', '8', '64', '0', '-1'),
    'hw:numa_cpus.0': ('0', '0-1', '0-2', '0-3,^1', '', '0-999'),
    'hw:numa_cpus.1': ('1', '2-3', '3', '4-7', ''),
    'hw:numa_mem.0': ('0', '1', '512', '768', '1024', '-1'),
    'hw:numa_mem.1': ('0', '1', '512', '256', '1024'),
    'hw:mem_page_size': ('small', 'large', 'any', '4', '2048', '2MB', '1GB',
                         '3', '0', '-1', '1' + '0' * 30),
    'hw:locked_memory': ('true',),
    'hw:pci_numa_affinity_policy': ('required', 'preferred', 'legacy',
                                    'socket'),
    'pci_passthrough:alias': (
        'gpu:0', 'vf:0', 'pf:0,vf:0', 'gpu:1', 'vf:1', 'vf:2,vf:0', ' vf :1',
        'vf:1,vf:-1', 'vf:-1', 'vf:2,vf:1,gpu:1', 'gpu:00', 'vf:\u0663',
        'vf:1' + '0' * 30, ','.join(['vf:1'] * 12), 'none:1', 'vf'),
    'hpcvirt:numa_scope': ('host', 'socket', 'planet', ''),
    'hpcvirt:exclusive_cells': ('true', 'false', '2', 'x' * 300),
    'trait:HW_CPU_HYPERTHREADING': ('required', 'forbidden'),
}

IMAGE_PROPERTIES = {
    'hw_cpu_policy': ('dedicated', 'shared', 'mixed'),
    'hw_cpu_thread_policy': ('prefer', 'require', 'isolate'),
    'hw_numa_nodes': ('1', '2', '64'),
    'hw_mem_page_size': ('large', 'any', '2048'),
    'hw_pci_numa_affinity_policy': ('required', 'preferred', 'socket'),
    'hw_emulator_threads_policy': ('isolate', 'share'),
}

#: What takes the place of a part of a host's record.
BAD = (None, [], [None], {}, '', 'x', '5', b'\xff', -1, 0, 1, -(1 << 70),
       1 << 70, 10 ** 400, 0.5, math.nan, math.inf, -math.inf, 1e308, True,
       (), object(), {1, 2}, {'x'}, [[1], [1]])

#: Text in the place of a tag: too long, and as Nova and hpcvirt read it.
TEXTS = ('x' * 60_000, 'gpu2:0:2,' * 6000, 'gpu2:0:2,gpu4:0:4', 'ens1f0')

PCI_TAGS = ('count', 'numa_node', 'vendor_id', 'product_id', 'dev_type',
            'physical_network', 'remote_managed', 'rp_uuid',
            port_interface.TAG, device_sets.TAG, device_sets.TAG)


def a_request(dice, validated=None):
    """Compile a random request, None if nova-api would refuse it.

    :param validated: whether its microversion validates extra specs
    """
    specs = {key: dice.choice(EXTRA_SPECS[key]) for key in dice.sample(
        sorted(EXTRA_SPECS), dice.choice((1, 2, 3, 4, 6)))}
    if dice.random() < 0.6:
        specs['hw:cpu_policy'] = 'dedicated'
    properties = {key: dice.choice(IMAGE_PROPERTIES[key]) for key in
                  dice.sample(sorted(IMAGE_PROPERTIES),
                              dice.choice((0, 0, 0, 1, 2)))}
    flavor = objects.Flavor(
        name='x\n' * dice.choice((0, 1, 100)), root_gb=1, ephemeral_gb=0,
        swap=0, vcpus=dice.choice((1, 2, 4, 4, 4, 8, 64, 500)),
        memory_mb=dice.choice((1, 512, 1024, 1025, 2048, 1 << 31)),
        extra_specs=specs)
    try:
        if dice.random() < 0.5 if validated is None else validated:
            for key, value in specs.items():
                validators.validate(key, value)
        image = objects.ImageMeta(
            properties=objects.ImageMetaProps.from_dict(properties))
        topology = hardware.numa_get_constraints(flavor, image)
        requests = pci_request.get_pci_requests_from_flavor(
            flavor, hardware.get_pci_numa_policy_constraint(flavor, image))
    except (exception.NovaException, ValueError, AttributeError):
        return None
    requests.requests += [_a_port(dice) for _ in range(
        dice.choice((0, 0, 0, 1, 2, 12)))]
    instance = str(uuid.UUID(int=dice.getrandbits(128)))
    return objects.RequestSpec(
        instance_uuid=instance, num_instances=dice.choice((1, 1, 1, 2, 5)),
        flavor=flavor, image=image, numa_topology=topology,
        pci_requests=requests, limits=objects.SchedulerLimits(),
        network_metadata=objects.NetworkMetadata(
            physnets=set(dice.sample('ab', dice.randint(0, 2))),
            tunneled=dice.random() < 0.3),
        scheduler_hints=dice.choice(({}, {'x': ['y'] * 9}, {
            'group': ['x'], 'query': ['[' * 99]})),
        requested_resources=[])


def _a_port(dice):
    spec = dice.choice((
        {'physical_network': 'p1'}, {'physical_network': 'P2'},
        {'physical_network': None}, {'physical_network': '\u0130' * 9},
        {'dev_type': 'type-PF', 'physical_network': 'p1'},
        {'dev_type': 'vdpa', 'physical_network': 'p1'},
        {'remote_managed': 'True', 'physical_network': 'p1'},
        {'trusted': 'true', 'physical_network': 'p1'}, {'x': 'y' * 999}))
    port = str(uuid.UUID(int=dice.getrandbits(128)))
    return objects.InstancePCIRequest(
        count=1, spec=[spec], request_id=port, requester_id=port,
        numa_policy=dice.choice((None, 'required', 'preferred', 'socket')))


def a_fleet(dice, hosts=3):
    """Make the HostStates of some random hosts."""
    return [nova_objects.host_state(
        cases.a_case(dice), f'host{number}') for number in range(hosts)]


def fresh(states):
    """Copy HostStates, as they are when a request reaches the filters."""
    twins = []
    for state in states:
        twin = copy.copy(state)
        twin.limits = {}
        twin.allocation_candidates = [
            {'allocations': {}, 'mappings': {'': [state.uuid]}}]
        twins.append(twin)
    return twins


def break_host(dice, state):
    """Replace a part of a host's record by something else.

    :returns: what was done; the parts are copies
    """
    state.numa_topology = copy.deepcopy(state.numa_topology)
    state.pci_stats = copy.deepcopy(state.pci_stats)
    bad = dice.choice(BAD)
    cells = state.numa_topology.cells
    cell = dice.choice(cells)
    kind = dice.choice(('state', 'cell', 'cell', 'cell', 'pages', 'pages',
                        'pool', 'pool', 'pools', 'twin', 'cycle'))
    name = ''
    if kind == 'state':
        name = dice.choice(('numa_topology', 'pci_stats', 'aggregates',
                            'cpu_allocation_ratio', 'ram_allocation_ratio',
                            'service', 'limits', 'nodename'))
        setattr(state, name, bad)
    elif kind == 'cell':
        name = dice.choice(sorted(cell.fields))
        setattr(cell, f'_obj_{name}', bad)
    elif kind == 'pages' and cell.mempages:
        pages = dice.choice(cell.mempages)
        name = dice.choice(sorted(pages.fields))
        setattr(pages, f'_obj_{name}', bad)
    elif kind == 'pool' and state.pci_stats and state.pci_stats.pools:
        name = dice.choice(PCI_TAGS)
        bad = dice.choice((*BAD, *TEXTS))
        dice.choice(state.pci_stats.pools)[name] = bad
    elif kind == 'pools' and state.pci_stats and state.pci_stats.pools:
        # One card after another, each with a name and sets of its own.
        pool = dice.choice(state.pci_stats.pools)
        name = dice.choice((port_interface.TAG, device_sets.TAG, 'address'))
        state.pci_stats.pools += [
            {**pool, name: f'{dice.random()}:{number}:1'}
            for number in range(dice.choice((2, 70, 300, 2000)))]
    elif kind == 'twin':
        cells.append(dice.choice((cell, copy.deepcopy(cell))))
    else:
        cell._obj_mempages = cell._obj_siblings = cells
        if state.pci_stats:
            state.pci_stats.pools.append(state.pci_stats.pools)
    return f'{kind} {name} {bad!r:.60}'


def break_json(dice, state):
    """Replace a part of a host's record as it is in the database.

    :returns: what was done; None if Nova itself cannot read the record
    """
    record = state.numa_topology.obj_to_primitive()
    place, name = record, None
    while True:
        keys = (list(place) if isinstance(place, dict)
                else list(range(len(place))))
        name = dice.choice(keys) if keys else None
        if name is None or not (isinstance(place[name], dict | list)
                                and place[name]) or dice.random() < 0.03:
            break
        place = place[name]
    if name is None:
        return None
    bad = dice.choice([bad for bad in BAD if isinstance(
        bad, (type(None), list, dict, str, int, float))])
    place[name] = bad
    try:
        state.numa_topology = objects.NUMATopology.obj_from_db_obj(
            json.dumps(record))
    except Exception:  # noqa: BLE001
        return None
    return f'JSON {name} {bad!r:.60}'

# SPDX-License-Identifier: Apache-2.0

"""Random hosts in use, counted by hpcvirt and filled by Nova's functions."""

import dataclasses

from nova import conf as nova_conf
from nova import exception as nova_exception

from hpcvirt import exception
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import profile as profiles
from hpcvirt.fleet import count
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape as shapes
from hpcvirt.nova import config
from tests.builders import fleets
from tests.builders import hosts
from tests.functional import planned_nova

GPU = {'vendor_id': '10de', 'product_id': '20b0'}
VF = {'vendor_id': '15b3', 'product_id': '101e'}


@dataclasses.dataclass(frozen=True)
class Figure:
    """What one flavor comes to on one host.

    :ivar kind: what the flavor asks for
    :ivar counted: by hpcvirt
    :ivar taken: by Nova until it refuses, or misplaces one by a defect
    :ivar by_sums: by hpcvirt
    :ivar promised: by the request to Placement, and by Nova's device pools
    """

    kind: str
    counted: int
    taken: int
    by_sums: int
    promised: int


def figures(dice):
    """Fill a random host partly, and count each of some flavors on it."""
    made = _host(dice)
    if made is None:
        return
    host, document = made
    packing = 'packing_host_numa_cells_allocation_strategy'
    config = document['host_config'][host.name]
    nova_conf.CONF.set_override(packing, config.get(packing, False), 'compute')
    try:
        yield from _figures(dice, host, document)
    finally:
        nova_conf.CONF.clear_override(packing, 'compute')


def _figures(dice, host, document):
    nova = planned_nova.ComputeHost(
        host, document['host_config'][host.name])
    flavors = [flavor for flavor in [
        *document['flavors'], *(_flavor(dice, number, document, host)
                                for number in range(12))]
               if _is_valid(flavor)]
    nova_hosts = {host.name: nova}
    planned_nova.come_and_go(dice, nova_hosts, flavors, dice.randrange(12),
                             leaving=0)
    fleet = planned_nova.read_fleet([host], document, nova_hosts)
    assert not fleet.broken, fleet.broken
    spares = config._installed_claim_spares_devices()
    fleet = dataclasses.replace(fleet, hosts=tuple(
        dataclasses.replace(each, state=dataclasses.replace(
            each.state, supply=dataclasses.replace(
                each.state.supply, spares_devices=spares)))
        for each in fleet.hosts))
    kept = nova.snapshot()
    for flavor in flavors:
        (item,) = count.count(fleet, [flavor_model.Flavor(
            flavor['name'], flavor['vcpus'], flavor['ram_mib'], 0,
            flavor['extra_specs'])])
        nova.restore(kept)
        promised = nova.promised(flavor)
        taken = nova.fill(flavor)
        yield Figure(_kind(flavor), item.total, taken, item.by_sums, promised)


def _host(dice):
    kind = dice.choice((None, None, 'vf', 'whole', 'vgpu'))
    cells = dice.choice((1, 2, 2, 3, 4))
    host = hosts.build(
        cells=cells, cores=dice.choice((3, 4, 6)),
        threads=dice.choice((1, 1, 2)), mib=4096,
        vfs={dice.randrange(cells): 8} if kind == 'vf' else None,
        gpus={cell: dice.choice((1, 2)) for cell in range(cells)
              if dice.random() < 0.7} if kind in ('whole', 'vgpu') else None)
    policy = dice.choice(tuple(shapes.PCIAffinity))
    devices = {
        None: None,
        'vf': device_choice.Devices(
            affinity=policy, vfs_per_device=dice.choice((2, 5)), **VF),
        'whole': device_choice.Devices(
            device_choice.DeviceKind.WHOLE, alias='gpu', affinity=policy,
            **GPU),
        'vgpu': device_choice.Devices(
            device_choice.DeviceKind.VGPU, mdev_type='nvidia-474',
            vgpus_per_device=dice.choice((2, 3)), **GPU)}[kind]
    profile = dataclasses.replace(
        fleets.SMALL, devices=(devices,) if devices else (),
        shared_cores_per_cell=dice.choice((0, 1, 1)),
        smt=dice.choice(tuple(profiles.SMT)), pack_cells=dice.random() < 0.3)
    try:
        document, _ = fleets.plan_of([host], profile)
    except exception.InvalidInput:
        return None
    return host, document


def _flavor(dice, number, document, host):
    """Create a flavor of any policy."""
    cells = dice.choice((0, 1, 1, 2, 3))
    vcpus = max(cells, 1) * dice.choice((1, 2, 2, 3))
    specs = {}
    policy = dice.choice(('dedicated', 'dedicated', 'shared', 'mixed'))
    if policy != 'shared' or dice.random() < 0.5:
        specs['hw:cpu_policy'] = policy
    if policy == 'mixed':
        specs['hw:cpu_dedicated_mask'] = dice.choice(('^0', '0'))
    if cells:
        specs['hw:numa_nodes'] = str(cells)
    if policy != 'shared' and dice.random() < 0.5:
        specs['hw:cpu_thread_policy'] = dice.choice(
            ('prefer', 'require', 'isolate'))
    if policy != 'shared' and dice.random() < 0.2:
        specs['hw:emulator_threads_policy'] = 'isolate'
    page = dice.choice((None, 'small', 'large', 'any', '2048', '4'))
    if page:
        specs['hw:mem_page_size'] = page
    ram_mib = max(cells, 1) * dice.choice((64, 128, 256, 514))
    if cells == 2 and dice.random() < 0.3:
        specs |= {'hw:numa_cpus.0': '0', 'hw:numa_mem.0': '64',
                  'hw:numa_cpus.1': f'1-{vcpus - 1}',
                  'hw:numa_mem.1': str(ram_mib - 64)}
    config = document['host_config'][host.name]
    if config.get('pci_alias') and dice.random() < 0.5:
        alias = config['pci_alias'][0]['name']
        specs['pci_passthrough:alias'] = f'{alias}:{dice.choice((1, 2))}'
        specs['hw:pci_numa_affinity_policy'] = dice.choice(
            ('required', 'preferred', 'legacy', 'socket'))
    if 'mdev_types' in config and dice.random() < 0.5:
        specs['resources:VGPU'] = str(dice.choice((1, 2)))
    return {'name': f'f{number}', 'vcpus': vcpus, 'ram_mib': ram_mib,
            'disk_gib': 0, 'extra_specs': specs}


def _is_valid(flavor):
    """Whether nova-api accepts the flavor."""
    try:
        planned_nova.read_topology(flavor)
    except nova_exception.NovaException:
        return False
    return True


def _kind(flavor):
    """Say what a flavor asks for, to group the figures."""
    specs = flavor['extra_specs']
    words = [specs.get('hw:cpu_policy', 'shared')]
    for key, word in (('pci_passthrough:alias', 'PCI'),
                      ('resources:VGPU', 'vGPU'),
                      ('hw:cpu_thread_policy', 'threads'),
                      ('hw:mem_page_size', 'pages')):
        if key in specs:
            words.append(word)
    return ' '.join(words)

# SPDX-License-Identifier: Apache-2.0

"""Random hosts in use, counted by hpcvirt and filled by Nova's own functions.

Placement's amounts are those of nova-scheduler's request, the cells, CPUs and
devices those of the claim.
"""

import dataclasses

from nova import conf as nova_conf
from nova import exception as nova_exception
from nova import objects
from nova.scheduler import utils
from nova.virt import hardware

from hpcvirt import exception
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import profile as profiles
from hpcvirt.fleet import assemble
from hpcvirt.fleet import count
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape as shapes
from hpcvirt.nova import cell_order_by_release
from tests.builders import fleets
from tests.builders import hosts
from tests.functional import planned_nova

LIMITS = objects.NUMATopologyLimits(cpu_allocation_ratio=1.0,
                                    ram_allocation_ratio=1.0)
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


class Nova(planned_nova.ComputeHost):
    """A compute host with its provider in Placement."""

    def __init__(self, host, config):
        counts = config.get('device_counts', {})
        by_address = {device.address: device for device in host.devices}
        self.devices = [(by_address[address], number)
                        for address, number in counts.items()]
        super().__init__(host, config, self.devices)
        self.free = {
            'PCPU': sum(len(cell.pcpuset) for cell in self.topology.cells),
            'VCPU': sum(len(cell.cpuset) for cell in self.topology.cells),
            'MEMORY_MB': (sum(cell.memory for cell in self.topology.cells)
                          - config['reserved_host_memory_mb'])}
        self.mdev_class = next(
            (mdev['mdev_class'] for mdev in config.get('mdev_types', ())),
            'VGPU')

    def snapshot(self):
        """Remember the host."""
        return (self.topology, dict(self.free), list(self.cards),
                [dict(pool) for pool in self.pci.pools])

    def restore(self, kept):
        """Return to what was remembered."""
        self.topology, free, cards, pools = kept
        self.free, self.cards = dict(free), list(cards)
        self.pci.pools = [dict(pool) for pool in pools]

    def needs(self, flavor):
        """Return what nova-scheduler asks of Placement."""
        spec = objects.RequestSpec(
            flavor=_nova_flavor(flavor), is_bfv=False,
            image=objects.ImageMeta(properties=objects.ImageMetaProps()),
            requested_resources=[],
            requested_networks=objects.NetworkRequestList(objects=[]),
            pci_requests=objects.InstancePCIRequests(requests=[]),
            numa_topology=planned_nova._guest(flavor))
        found = utils.ResourceRequest.from_request_spec(
            spec).get_request_group(None).resources
        return {name: amount for name, amount in found.items()
                if amount and name != 'DISK_GB'}

    def promised(self, flavor):
        """Count instances by sums."""
        counts = []
        for name, amount in self.needs(flavor).items():
            free = (self.cards if name == self.mdev_class
                    else [self.free.get(name, 0)])
            counts.append(sum(max(0, each) // amount for each in free))
        requests = self._requests(flavor)
        if requests:
            counts.append(self._device_sets(requests))
        return min(counts)

    def _device_sets(self, requests):
        """Count how often Nova has the devices, wherever they are."""
        pools, number = [dict(pool) for pool in self.pci.pools], 0
        while self.pci.support_requests(requests, {}):
            self.pci.apply_requests(requests, {})
            number += 1
        self.pci.pools = pools
        return number

    def take(self, flavor):
        """Claim an instance.

        :returns: None if refused, otherwise its record for a fleet
        """
        needs = self.needs(flavor)
        vgpus = needs.pop(self.mdev_class, 0)
        if any(self.free.get(name, 0) < amount
               for name, amount in needs.items()):
            return None
        card = next((number for number, left in enumerate(self.cards)
                     if left >= vgpus), None) if vgpus else -1
        requests = self._requests(flavor)
        if card is None or (requests and not self.pci.support_requests(
                requests, {})):
            return None
        guest, placed = planned_nova._guest(flavor), None
        spares = cell_order_by_release._installed_claim_spares_devices()
        if guest is not None:
            placed = hardware.numa_fit_instance_to_host(
                self.topology, guest, None, LIMITS, pci_requests=requests,
                pci_stats=self.pci if requests or spares else None)
            if placed is None or not self._is_sound(flavor, placed):
                return None
        before = {pool['parent']: pool['count'] for pool in self.pci.pools}
        if requests:
            self.pci.apply_requests(requests, {},
                                    placed.cells if placed else None)
        after = {pool['parent']: pool['count'] for pool in self.pci.pools}
        if placed is not None:
            self.topology = hardware.numa_usage_from_instance_numa(
                self.topology, placed)
        for name, amount in needs.items():
            self.free[name] -= amount
        devices = [address for address, number in before.items()
                   for _ in range(number - after.get(address, 0))]
        if vgpus:
            self.cards[card] -= vgpus
            devices += [self.devices[card][0].address] * vgpus
        return {
            'flavor': {'disk_gib': 0, **{key: flavor[key] for key in (
                'name', 'vcpus', 'ram_mib', 'extra_specs')}},
            'devices': devices,
            **({} if placed is None else {
                'cells': planned_nova.list_cells(placed),
                'cpus': sorted({cpu for cell in placed.cells for cpu in (
                    *(cell.cpu_pinning or {}).values(),
                    *(cell.cpuset_reserved or ()))})})}

    def _is_sound(self, flavor, placed):
        """Whether each guest cell fits on its host cell by itself.

        For a defect the claim may place one where it was never fitted. The
        filter of hpcvirt refuses such a host.
        """
        cells = {cell.id: cell for cell in self.topology.cells}
        guest = planned_nova._guest(flavor)
        for number, cell in enumerate(guest.cells):
            host_cell = cells[placed.cells[number].id]
            if cell.pagesize:
                cell.pagesize = placed.cells[number].pagesize
            reserved = int(not number and guest.emulator_threads_isolated)
            try:
                if hardware._numa_fit_instance_cell(
                        host_cell, cell, LIMITS, reserved) is None:
                    return False
            except nova_exception.MemoryPageSizeNotSupported:
                return False
        return True


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
    nova = Nova(host, document['host_config'][host.name])
    flavors = [flavor for flavor in [
        *document['flavors'], *(_flavor(dice, number, document, host)
                                for number in range(12))]
        if _is_valid(flavor)]
    instances = []
    for number in range(dice.randrange(12)):
        record = nova.take(dice.choice(flavors))
        if record is not None:
            instances.append({'id': f'i{number}', 'host': host.name,
                              **record})
    fleet = assemble.fleet(
        {host.name: host}, plan_document.load(document, 'plan').host_config,
        fleets.read_instances(instances))
    assert not fleet.broken, fleet.broken
    spares = cell_order_by_release._installed_claim_spares_devices()
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
        promised, taken = nova.promised(flavor), 0
        while nova.take(flavor) is not None:
            taken += 1
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
        'vf': profiles.Devices(affinity=policy, vfs_per_device=dice.choice(
            (2, 5)), **VF),
        'whole': profiles.Devices(profiles.DeviceKind.WHOLE, alias='gpu',
                                  affinity=policy, **GPU),
        'vgpu': profiles.Devices(
            profiles.DeviceKind.VGPU, mdev_type='nvidia-474',
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
        planned_nova._guest(flavor)
    except nova_exception.NovaException:
        return False
    return True


def _nova_flavor(flavor):
    return objects.Flavor(
        name=flavor['name'], vcpus=flavor['vcpus'],
        memory_mb=flavor['ram_mib'], root_gb=0, ephemeral_gb=0, swap=0,
        extra_specs=dict(flavor['extra_specs']))


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

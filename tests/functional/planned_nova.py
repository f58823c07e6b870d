# SPDX-License-Identifier: Apache-2.0

"""A compute host as Nova sees it, from the JSON document of a plan.

Placement's amounts are those of nova-scheduler's request, the cells, CPUs and
devices those of the claim.
"""

import collections
import dataclasses
import itertools
import math
import typing
import uuid

from nova import exception
from nova import objects
from nova.objects import pci_device_pool
from nova.pci import stats
from nova.pci import whitelist
from nova.scheduler import utils
from nova.virt import hardware

from hpcvirt.model import cpuset
from hpcvirt.nova import config
from tests.builders import fleets

objects.register_all()

NO_DEVICE_FILTER = whitelist.Whitelist([])

#: Arrangements of cells that Nova may try before it says no. Beyond, it is
#: asked about single cells: what fits on none needs no arrangement.
PATIENCE = 2_000

#: An alias of a device that no host has.
UNKNOWN = {'vendor_id': 'ffff', 'product_id': 'ffff',
           'device_type': 'type-PCI'}


@dataclasses.dataclass(frozen=True)
class Claimed:
    """An instance as nova-compute has claimed it.

    :ivar topology: its InstanceNUMATopology, None if it has none
    :ivar devices: the addresses that its devices come from
    """

    flavor: dict[str, typing.Any]
    topology: typing.Any
    devices: tuple[str, ...]

    @property
    def cells(self):
        return [cell.id for cell in self.topology.cells]

    def record(self, name, host):
        """Write the instance as a fleet has it."""
        found = {'id': name, 'host': host, 'devices': list(self.devices),
                 'flavor': {key: self.flavor[key] for key in (
                     'name', 'vcpus', 'ram_mib', 'disk_gib', 'extra_specs')}}
        if self.topology is not None:
            found['cells'] = [{'id': cell.id, **({'pages': {
                str(cell.pagesize): -(-cell.memory * 1024 // cell.pagesize)}}
                if cell.pagesize else {})} for cell in self.topology.cells]
            found['cpus'] = sorted({
                cpu for cell in self.topology.cells for cpu in (
                    *(cell.cpu_pinning or {}).values(),
                    *(cell.cpuset_reserved or ()))})
        return found


class ComputeHost:
    """One host with its provider in Placement.

    :ivar free: what Placement has left, by resource class
    :ivar running: the instances that were started by name
    """

    def __init__(self, host, config):
        """Configure the host.

        :param host: the hardware
        :param config: its part of the document's ``host_config``
        """
        self.topology = objects.NUMATopology(cells=[
            self._cell(cell, config) for cell in host.cells])
        # As nova-compute asks libvirt, which does not know its CPU sets.
        self.has_smt = any(len(core) > 1 for cell in host.cells
                           for core in cell.siblings)
        self.running = {}
        by_address = {device.address: device for device in host.devices}
        self.devices = [
            (by_address[address], count) for address, count
            in config.get('device_counts', {}).items()]
        self.aliases = {alias['name']: alias
                        for alias in config.get('pci_alias', ())}
        self.specs = {spec['address']: spec
                      for spec in config.get('pci_device_spec', ())}
        self.mdev_class = next((mdev['mdev_class'] for mdev
                                in config.get('mdev_types', ())), 'VGPU')
        self.cards = [count for _, count in self.devices] if (
            config.get('mdev_types')) else []
        pools = pci_device_pool.from_pci_stats([] if self.cards else [
            self._pool(device, count) for device, count in self.devices])
        self.pci = stats.PciDeviceStats(self.topology, stats=pools,
                                        dev_filter=NO_DEVICE_FILTER)
        self.limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=config['cpu_allocation_ratio'],
            ram_allocation_ratio=config['ram_allocation_ratio'])
        self.free = self._capacity(config)
        cells = self.topology.cells
        self.most = {
            'PCPU': self.free['PCPU'],
            'VCPU': sum(len(cell.cpuset) for cell in cells),
            'MEMORY_MB': sum(cell.memory for cell in cells)}

    def _capacity(self, config):
        """Return the capacity of each resource class in Placement."""
        cells = self.topology.cells
        shared = sum(len(cell.cpuset) for cell in cells)
        memory_mib = sum(cell.memory for cell in cells)
        return {
            'PCPU': sum(len(cell.pcpuset) for cell in cells),
            'VCPU': int((shared - config['reserved_host_cpus'])
                        * self.limits.cpu_allocation_ratio),
            'MEMORY_MB': int((memory_mib - config['reserved_host_memory_mb'])
                             * self.limits.ram_allocation_ratio)}

    def _pool(self, device, count):
        """Describe a device as nova-compute does."""
        spec = self.specs[device.address]
        pool = {'numa_node': device.cell, 'count': count,
                'parent': device.address}
        for alias in self.aliases.values():
            if alias['product_id'] == spec.get('product_id',
                                               alias['product_id']):
                pool |= _request(alias)
        if 'traits' in spec:
            # nova-compute reports it in Placement.
            pool['rp_uuid'] = device.address
        return pool

    def _candidates(self, flavor):
        """Yield the PCI requests of each allocation that Placement offers.

        HPCTopologyFilter drops those that mix sets of devices, and orders the
        others, which this leaves to hpcvirt.
        """
        wanted = [term.split(':') for term in flavor['extra_specs'].get(
            'pci_passthrough:alias', '').split(',') if term]
        if not any('traits' in self.aliases.get(name, {})
                   for name, _ in wanted):
            yield self._requests(flavor)
            return
        offered = []
        for name, _ in wanted:
            trait = self.aliases[name]['traits']
            offered.append([
                pool['parent'] for pool in self.pci.pools if pool['count']
                and trait in self.specs[pool['parent']].get(
                    'traits', '').split(',')])
        free = {pool['parent']: pool['count'] for pool in self.pci.pools}
        legal = []
        for chosen in itertools.product(*offered):
            counts = collections.Counter(chosen)
            if any(counts[name] > free[name] for name in counts):
                continue
            if self._is_set(flavor, chosen):
                legal.append(chosen)
        for chosen in sorted(legal, key=self._break):
            yield self._requests(flavor, chosen)

    def _is_set(self, flavor, chosen):
        """Whether the devices are those of one set of the requested kind."""
        kind = flavor['extra_specs'].get('hpcvirt:device_set')
        labels = [set(self.specs[name].get('hpcvirt_device_sets', '').split(
            ',')) for name in chosen]
        common = set.intersection(*labels)
        return kind is None or any(
            label.split(':')[0] == kind for label in common)

    def _break(self, chosen):
        """Add up the squares of the sizes of the whole sets that end."""
        sets = collections.defaultdict(list)
        for pool in self.pci.pools:
            text = self.specs[pool['parent']]['hpcvirt_device_sets']
            for label in text.split(',') if pool['count'] else ():
                sets[label].append(pool)
        sets.pop('', None)
        taken = collections.Counter(chosen)
        cost = 0
        for label, pools in sets.items():
            size = int(label.split(':')[2])
            is_whole = len(pools) >= size
            ends = any(taken[pool['parent']] >= pool['count'] for pool in pools
                       if taken[pool['parent']])
            if is_whole and ends:
                cost += size ** 2
        return cost

    @staticmethod
    def _cell(cell, config):
        dedicated = cpuset.parse(config['cpu_dedicated_set'])
        shared = cpuset.parse(config['cpu_shared_set'])
        given = dedicated | shared
        reserved = {(item['node'], item['size']): item['count']
                    for item in config['reserved_huge_pages']}
        return objects.NUMACell(
            id=cell.id, socket=cell.socket, cpuset=set(cell.cpus & shared),
            pcpuset=set(cell.cpus & dedicated), pinned_cpus=set(),
            siblings=[set(core & given) for core in cell.siblings
                      if core & given],
            memory=cell.memory_mib, memory_usage=0, cpu_usage=0,
            mempages=[
                objects.NUMAPagesTopology(
                    size_kb=int(size), total=total, used=0,
                    reserved=reserved.get((cell.id, int(size)), 0))
                for size, total in config['pages'][str(cell.id)].items()],
            network_metadata=objects.NetworkMetadata(physnets=set(),
                                                     tunneled=False))

    @property
    def free_pcpus(self):
        return sum(len(cell.free_pcpus) for cell in self.topology.cells)

    def snapshot(self):
        """Remember the host."""
        return (self.topology, dict(self.free), list(self.cards),
                [dict(pool) for pool in self.pci.pools], dict(self.running))

    def restore(self, kept):
        """Return to what was remembered."""
        self.topology, free, cards, pools, running = kept
        self.free, self.cards = dict(free), list(cards)
        self.pci.pools = [dict(pool) for pool in pools]
        self.running = dict(running)

    def needs(self, flavor):
        """Return the amounts that nova-scheduler asks of Placement."""
        return {name: amount for name, amount
                in self._request_group(flavor).resources.items()
                if amount and name != 'DISK_GB'}

    def admits(self, flavor):
        """Whether the trait of SMT is as nova-scheduler asks for it."""
        group = self._request_group(flavor)
        unwanted = (group.forbidden_traits if self.has_smt
                    else group.required_traits)
        return 'HW_CPU_HYPERTHREADING' not in unwanted

    @staticmethod
    def _request_group(flavor):
        spec = objects.RequestSpec(
            flavor=_nova_flavor(flavor), is_bfv=False,
            image=objects.ImageMeta(properties=objects.ImageMetaProps()),
            requested_resources=[],
            requested_networks=objects.NetworkRequestList(objects=[]),
            pci_requests=objects.InstancePCIRequests(requests=[]),
            numa_topology=read_topology(flavor))
        return utils.ResourceRequest.from_request_spec(
            spec).get_request_group(None)

    def promised(self, flavor):
        """Count instances by sums."""
        if not self.admits(flavor):
            return 0
        counts = []
        for name, amount in self.needs(flavor).items():
            free = (self.cards if name == self.mdev_class
                    else [self.free.get(name, 0)])
            if name in self.most and amount > self.most[name]:
                free = []
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
        """Claim an instance as nova-compute does, after Placement.

        :param flavor: a flavor of the document
        :returns: None if refused, or if Nova would misplace a cell by a defect
        """
        needs = self.needs(flavor)
        vgpus = needs.pop(self.mdev_class, 0)
        card = next((number for number, left in enumerate(self.cards)
                     if left >= vgpus), None) if vgpus else -1
        if card is None or not self.admits(flavor) or any(
                self.free.get(name, 0) < amount or (
                    amount > self.most.get(name, 0))
                for name, amount in needs.items()):
            return None
        for requests in self._candidates(flavor):
            is_taken, placed = self._claim(flavor, requests)
            if is_taken:
                break
        else:
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
        return Claimed(flavor, placed, tuple(devices))

    def _claim(self, flavor, requests):
        """Ask Nova for one allocation.

        :returns: whether it takes the instance, and its topology
        """
        if requests and not self.pci.support_requests(requests, {}):
            return False, None
        guest = read_topology(flavor)
        if guest is None:
            return True, None
        if not self._worth_asking(guest, flavor):
            return False, None
        spares = config._installed_claim_spares_devices()
        placed = hardware.numa_fit_instance_to_host(
            self.topology, guest, None, self.limits, pci_requests=requests,
            pci_stats=self.pci if requests or spares else None)
        if placed is None or not self._is_sound(flavor, placed):
            return False, None
        return True, placed

    def fill(self, flavor, limit=math.inf):
        """Claim instances until there is no room; return how many."""
        count = 0
        while count < limit and self.take(flavor) is not None:
            count += 1
        return count

    def would_take(self, flavor):
        """Whether there is room for an instance."""
        kept = self.snapshot()
        found = self.take(flavor)
        self.restore(kept)
        return found is not None

    def start(self, name, flavor):
        """Claim an instance and keep it; returns what was claimed."""
        claimed = self.take(flavor)
        if claimed is not None:
            self.running[name] = claimed
        return claimed

    def stop(self, name):
        """Free what an instance without devices has; returns its flavor."""
        claimed = self.running.pop(name)
        for resource, amount in self.needs(claimed.flavor).items():
            self.free[resource] += amount
        self.topology = hardware.numa_usage_from_instance_numa(
            self.topology, claimed.topology, free=True)
        return claimed.flavor

    def _requests(self, flavor, providers=()):
        """Make the PCI requests of an instance.

        :param providers: the device that Placement allocates to each of them
        """
        specs = flavor['extra_specs']
        found = []
        for number, term in enumerate(filter(None, specs.get(
                'pci_passthrough:alias', '').split(','))):
            name, _, count = term.partition(':')
            spec = _request(self.aliases.get(name, UNKNOWN))
            if providers:
                spec['rp_uuids'] = providers[number]
            found.append(objects.InstancePCIRequest(
                count=int(count), spec=[spec], alias_name=name,
                request_id=str(uuid.UUID(int=number + 1)),
                numa_policy=specs.get('hw:pci_numa_affinity_policy',
                                      'legacy')))
        return found

    def _worth_asking(self, guest, flavor):
        """Whether Nova would finish in reasonable time (defect D)."""
        host_cells, cells = len(self.topology.cells), len(guest.cells)
        if host_cells < cells or math.perm(host_cells, cells) < PATIENCE:
            return True
        fitting = 0
        for host_cell in self.topology.cells:
            for cell in read_topology(flavor).cells:
                if cell.memory * 1024 // cell.pagesize <= max(
                        (pages.free for pages in host_cell.mempages
                         if pages.size_kb == cell.pagesize), default=0) and (
                        hardware._numa_fit_instance_cell(host_cell, cell)):
                    fitting += 1
                    break
        return fitting >= cells

    def _is_sound(self, flavor, placed):
        """Whether each guest cell fits on its host cell by itself.

        For a defect the claim may place one where it was never fitted. The
        filter of hpcvirt refuses such a host.
        """
        cells = {cell.id: cell for cell in self.topology.cells}
        guest = read_topology(flavor)
        for number, cell in enumerate(guest.cells):
            host_cell = cells[placed.cells[number].id]
            if cell.pagesize:
                cell.pagesize = placed.cells[number].pagesize
            reserved = int(not number and guest.emulator_threads_isolated)
            try:
                if hardware._numa_fit_instance_cell(
                        host_cell, cell, self.limits, reserved) is None:
                    return False
            except exception.MemoryPageSizeNotSupported:
                return False
        return True


def _request(alias):
    """Return what an alias requests of a device."""
    return {'vendor_id': alias['vendor_id'],
            'product_id': alias['product_id'],
            'dev_type': alias['device_type']}


def compute_hosts(machines, document):
    """Make an empty compute host of each planned machine, by its name."""
    return {host.name: ComputeHost(host, document['host_config'][host.name])
            for host in machines}


def come_and_go(dice, nova, flavors, number, leaving=1.0):
    """Start instances, and stop one where another finds no room.

    :param nova: the hosts, by name
    :param leaving: how probable it is that one stops
    """
    for index in range(number):
        host = nova[dice.choice(list(nova))]
        if host.start(f'i{index}', dice.choice(flavors)) is None and (
                host.running and dice.random() < leaving):
            host.stop(dice.choice(list(host.running)))


def read_fleet(machines, document, nova):
    """Read the hosts with what runs on them as hpcvirt does."""
    return fleets.fleet_of(machines, document, fleets.read_instances(
        claimed.record(name, host) for host in nova
        for name, claimed in nova[host].running.items()))


def read_topology(flavor):
    """Read the guest's NUMA topology from a flavor of the document.

    :raises NovaException: if nova-api refuses the flavor
    """
    return hardware.numa_get_constraints(
        _nova_flavor(flavor),
        objects.ImageMeta(properties=objects.ImageMetaProps()))


def _nova_flavor(flavor):
    return objects.Flavor(
        name=flavor['name'], vcpus=flavor['vcpus'],
        memory_mb=flavor['ram_mib'], root_gb=flavor['disk_gib'],
        ephemeral_gb=0, swap=0, extra_specs=dict(flavor['extra_specs']))

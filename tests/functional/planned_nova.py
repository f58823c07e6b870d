# SPDX-License-Identifier: Apache-2.0

"""A compute host as Nova sees it, from the JSON document of a plan.

Placement's amounts are those of nova-scheduler's request, the cells, CPUs and
devices those of the claim.
"""

import dataclasses
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
from hpcvirt.nova import cell_order_by_release
from tests.builders import fleets

objects.register_all()

NO_DEVICE_FILTER = whitelist.Whitelist([])

#: Arrangements of cells that Nova may try before it says no. Beyond, it is
#: asked about single cells: what fits on none needs no arrangement.
PATIENCE = 2_000

REQUEST = str(uuid.UUID(int=1))


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
        self.running = {}
        by_address = {device.address: device for device in host.devices}
        self.devices = [
            (by_address[address], count) for address, count
            in config.get('device_counts', {}).items()]
        self.alias = next(iter(config.get('pci_alias', ())), None)
        self.mdev_class = next((mdev['mdev_class'] for mdev
                                in config.get('mdev_types', ())), 'VGPU')
        self.cards = [count for _, count in self.devices] if (
            config.get('mdev_types')) else []
        pools = pci_device_pool.from_pci_stats([] if self.cards else [
            {**self._spec(), 'numa_node': device.cell, 'count': count,
             'parent': device.address} for device, count in self.devices])
        self.pci = stats.PciDeviceStats(self.topology, stats=pools,
                                        dev_filter=NO_DEVICE_FILTER)
        self.limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=config['cpu_allocation_ratio'],
            ram_allocation_ratio=config['ram_allocation_ratio'])
        self.free = self._capacity(config)

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

    def _spec(self):
        """Return what the alias requests."""
        if self.alias is None:
            return {}
        return {'vendor_id': self.alias['vendor_id'],
                'product_id': self.alias['product_id'],
                'dev_type': self.alias['device_type']}

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
        """Return what nova-scheduler asks of Placement."""
        spec = objects.RequestSpec(
            flavor=_nova_flavor(flavor), is_bfv=False,
            image=objects.ImageMeta(properties=objects.ImageMetaProps()),
            requested_resources=[],
            requested_networks=objects.NetworkRequestList(objects=[]),
            pci_requests=objects.InstancePCIRequests(requests=[]),
            numa_topology=read_topology(flavor))
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
        """Claim an instance as nova-compute does, after Placement.

        :param flavor: a flavor of the document
        :returns: None if refused, or if Nova would misplace a cell by a defect
        """
        needs = self.needs(flavor)
        vgpus = needs.pop(self.mdev_class, 0)
        card = next((number for number, left in enumerate(self.cards)
                     if left >= vgpus), None) if vgpus else -1
        requests = self._requests(flavor)
        if card is None or any(
                self.free.get(name, 0) < amount
                for name, amount in needs.items()) or (
                requests and not self.pci.support_requests(requests, {})):
            return None
        guest, placed = read_topology(flavor), None
        spares = cell_order_by_release._installed_claim_spares_devices()
        if guest is not None:
            if not self._worth_asking(guest, flavor):
                return None
            placed = hardware.numa_fit_instance_to_host(
                self.topology, guest, None, self.limits, pci_requests=requests,
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
        return Claimed(flavor, placed, tuple(devices))

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

    def _requests(self, flavor):
        alias = flavor['extra_specs'].get('pci_passthrough:alias')
        if not alias:
            return []
        name, _, count = alias.partition(':')
        assert name == self.alias['name']
        return [objects.InstancePCIRequest(
            count=int(count), request_id=REQUEST, spec=[self._spec()],
            alias_name=name,
            numa_policy=flavor['extra_specs'].get(
                'hw:pci_numa_affinity_policy', 'legacy'))]

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

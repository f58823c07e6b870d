# SPDX-License-Identifier: Apache-2.0

"""A compute host as Nova sees it, from the JSON document of a plan."""

import math
import uuid

from nova import objects
from nova.objects import pci_device_pool
from nova.pci import stats
from nova.pci import whitelist
from nova.virt import hardware

from hpcvirt.model import cpuset

objects.register_all()

NO_DEVICE_FILTER = whitelist.Whitelist([])

#: Arrangements of cells that Nova may try before it says no. Beyond, it is
#: asked about single cells: what fits on none needs no arrangement.
PATIENCE = 2_000

REQUEST = str(uuid.UUID(int=1))


class ComputeHost:
    """One host, and the instances that were claimed on it."""

    def __init__(self, host, config, devices=()):
        """Configure the host.

        :param host: the hardware
        :param config: its part of the document's ``host_config``
        :param devices: pairs of a device and how many it gives: VFs, vGPUs,
            or itself
        """
        self.topology = objects.NUMATopology(cells=[
            self._cell(cell, config) for cell in host.cells])
        self.alias = next(iter(config.get('pci_alias', ())), None)
        self.cards = [count for _, count in devices] if (
            config.get('mdev_types')) else []
        pools = pci_device_pool.from_pci_stats([] if self.cards else [
            {**self._spec(), 'numa_node': device.cell, 'count': count,
             'parent': device.address} for device, count in devices])
        self.pci = stats.PciDeviceStats(self.topology, stats=pools,
                                        dev_filter=NO_DEVICE_FILTER)

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

    def claim(self, flavor):
        """Claim an instance as nova-compute does.

        :param flavor: a flavor of the document
        :returns: whether there was room
        """
        return self.place(flavor) is not None

    def place(self, flavor):
        """Claim an instance; return its NUMA topology, None if refused."""
        requests = self._requests(flavor)
        guest = _guest(flavor)
        vgpus, card = int(flavor['extra_specs'].get('resources:VGPU', 0)), 0
        if vgpus:
            card = next((number for number, left in enumerate(self.cards)
                         if left >= vgpus), None)
        if card is None:
            return None
        if not self._worth_asking(guest, flavor):
            return None
        placed = hardware.numa_fit_instance_to_host(
            self.topology, guest, None, pci_requests=requests,
            pci_stats=self.pci)
        if placed is None:
            return None
        self.topology = hardware.numa_usage_from_instance_numa(
            self.topology, placed)
        if requests:
            self.pci.apply_requests(requests, {}, placed.cells)
        if vgpus:
            self.cards[card] -= vgpus
        return placed

    def delete(self, placed):
        """Free what an instance without devices has."""
        self.topology = hardware.numa_usage_from_instance_numa(
            self.topology, placed, free=True)

    def fill(self, flavor):
        """Claim instances until there is no room; return how many."""
        count = 0
        while self.claim(flavor):
            count += 1
        return count

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
            for cell in _guest(flavor).cells:
                if cell.memory * 1024 // cell.pagesize <= max(
                        (pages.free for pages in host_cell.mempages
                         if pages.size_kb == cell.pagesize), default=0) and (
                        hardware._numa_fit_instance_cell(host_cell, cell)):
                    fitting += 1
                    break
        return fitting >= cells


def list_cells(placed):
    """Write the cells of an InstanceNUMATopology as a fleet has them."""
    return [{'id': cell.id, **({'pages': {
        str(cell.pagesize): -(-cell.memory * 1024 // cell.pagesize)}}
        if cell.pagesize else {})} for cell in placed.cells]


def _guest(flavor):
    return hardware.numa_get_constraints(
        objects.Flavor(
            name=flavor['name'], vcpus=flavor['vcpus'],
            memory_mb=flavor['ram_mib'], root_gb=flavor['disk_gib'],
            ephemeral_gb=0, swap=0, extra_specs=dict(flavor['extra_specs'])),
        objects.ImageMeta(properties=objects.ImageMetaProps()))

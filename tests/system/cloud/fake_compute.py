# SPDX-License-Identifier: Apache-2.0

# Nova calls a driver's methods with all their arguments.
# ruff: noqa: ARG002, RUF012
"""Run nova-compute with a driver that reports a machine from a file.

The cloud's Python environment runs it in place of ``nova-compute``.
``HPCVIRT_FAKE_HOST`` names the file, which :mod:`tests.system.cloud.fleet`
writes. The scheduler, Placement and the claim see what the libvirt driver
would report for that machine: cells with their dedicated and shared CPUs,
siblings, pages, sockets, and virtual functions. Guests are simulated.
"""

import json
import os
import sys
import threading
import types

# Import it first: it chooses between eventlet and native threads.
from nova.cmd import compute

import nova.conf  # isort: skip
from nova import exception
from nova import objects
from nova.compute import power_state
from nova.objects import migrate_data
from nova.virt import fake
from nova.virt import hardware
from oslo_serialization import jsonutils

CONF = nova.conf.CONF

with open(os.environ['HPCVIRT_FAKE_HOST']) as _file:
    MACHINE = json.load(_file)


def node_uuid():
    """Read the identity that tests.system.cloud.config.compute wrote."""
    with open(os.path.join(CONF.state_path, 'compute_id')) as file:
        return file.read().strip()


def numa_topology():
    """Describe the cells as the libvirt driver does."""
    reserved = hardware.numa_get_reserved_huge_pages() or {}
    cells = []
    for cell in MACHINE['cells']:
        reserved_here = reserved.get(cell['id'], {})
        pages = [
            objects.NUMAPagesTopology(
                size_kb=int(size), total=total, used=0,
                reserved=reserved_here.get(int(size), 0))
            for size, total in sorted(cell['pages'].items(),
                                      key=lambda item: int(item[0]))]
        cells.append(objects.NUMACell(
            id=cell['id'], socket=cell['socket'],
            cpuset=set(cell['shared']), pcpuset=set(cell['dedicated']),
            memory=cell['memory_mib'], cpu_usage=0, memory_usage=0,
            pinned_cpus=set(),
            siblings=[set(core) for core in cell['siblings']],
            mempages=pages,
            network_metadata=objects.NetworkMetadata(
                physnets=set(), tunneled=False)))
    return objects.NUMATopology(cells=cells)


class TopologyDriver(fake.FakeDriver):
    """A host with simulated guests and the topology of a real machine."""

    capabilities = dict(fake.FakeDriver.capabilities, supports_pcpus=True)
    vcpus = sum(len(cell['dedicated']) + len(cell['shared'])
                for cell in MACHINE['cells'])
    memory_mb = sum(cell['memory_mib'] for cell in MACHINE['cells'])
    local_gb = 2000

    def init_host(self, host):
        super().init_host(host)
        # Guests survive a restart of nova-compute, as with libvirt.
        self._record = os.path.join(CONF.instances_path, 'guests.json')
        os.makedirs(CONF.instances_path, exist_ok=True)
        if os.path.exists(self._record):
            with open(self._record) as file:
                for name, guest in json.load(file).items():
                    self.instances[guest] = fake.FakeInstance(
                        name, power_state.RUNNING, guest)

    def _save(self):
        guests = {guest.name: guest.uuid
                  for guest in list(self.instances.values())}
        draft = f'{self._record}.{threading.get_ident()}'
        with open(draft, 'w') as file:
            json.dump(guests, file)
        os.replace(draft, self._record)

    def spawn(self, context, instance, *args, **kwargs):
        super().spawn(context, instance, *args, **kwargs)
        self._save()

    def destroy(self, context, instance, *args, **kwargs):
        self.instances.pop(instance.uuid, None)
        self._save()

    def cleanup(self, context, instance, *args, **kwargs):
        self.destroy(context, instance)

    def get_available_resource(self, nodename):
        status = super().get_available_resource(nodename)
        status['uuid'] = node_uuid()
        status['vcpus'] = sum(len(c['shared']) for c in MACHINE['cells'])
        status['numa_topology'] = numa_topology()._to_json()
        status['pci_passthrough_devices'] = jsonutils.dumps(MACHINE['devices'])
        return status

    def get_nodenames_by_uuid(self, refresh=False):
        return {node_uuid(): CONF.host}

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        inventory = dict(provider_tree.data(nodename).inventory)
        shared = inventory.pop('VCPU')
        for resource, kind, ratio in (
                ('PCPU', 'dedicated', 1.0),
                ('VCPU', 'shared', shared['allocation_ratio'])):
            total = sum(len(cell[kind]) for cell in MACHINE['cells'])
            if total:
                inventory[resource] = {
                    'total': total, 'min_unit': 1, 'max_unit': total,
                    'step_size': 1, 'allocation_ratio': ratio,
                    'reserved': 0}
        provider_tree.update_inventory(nodename, inventory)
        traits = ['HW_NUMA_ROOT']
        if any(len(core) > 1 for cell in MACHINE['cells']
               for core in cell['siblings']):
            traits.append('HW_CPU_HYPERTHREADING')
        provider_tree.add_traits(nodename, *traits)

    # Live migration of a guest with a NUMA topology: have Nova make a claim on
    # the destination, as the libvirt driver does.
    def check_can_live_migrate_destination(self, *args, **kwargs):
        data = super().check_can_live_migrate_destination(*args, **kwargs)
        data.dst_supports_numa_live_migration = True
        return data

    def check_can_live_migrate_source(self, context, instance,
                                      dest_check_data,
                                      block_device_info=None):
        if 'dst_supports_numa_live_migration' in dest_check_data:
            dest_check_data.src_supports_numa_live_migration = True
        return dest_check_data

    def post_claim_migrate_data(self, context, instance, data, claim):
        info = migrate_data.LibvirtLiveMigrateNUMAInfo()
        info.cpu_pins = {}
        info.cell_pins = {}
        info.emulator_pins = set()
        data.dst_numa_info = info
        return data

    def pre_live_migration(self, context, instance, block_device_info,
                           network_info, disk_info, migrate_data):
        # A check lets the next live migration to this host fail.
        fail = os.path.join(CONF.instances_path, 'fail-live-migration')
        if os.path.exists(fail):
            os.remove(fail)
            raise exception.MigrationError(reason='it does not converge')
        # From now on the guest runs on this host.
        self.spawn(context, instance, instance.image_meta, [], None, {})
        return migrate_data


if __name__ == '__main__':
    # Nova loads drivers from the package nova.virt only.
    module = types.ModuleType('nova.virt.hpcvirt_fake')
    module.TopologyDriver = TopologyDriver
    sys.modules[module.__name__] = module
    sys.argv[0] = 'nova-compute'
    sys.exit(compute.main())

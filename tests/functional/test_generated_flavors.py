# SPDX-License-Identifier: Apache-2.0

"""Fill hosts exactly with the flavors that were generated for them."""

import itertools
import json
import pathlib

import yaml

from hpcvirt import topology
from hpcvirt.model import cpuset
from testing import planned
from tests.builders import commands
from tests.builders import folders
from tests.functional import base

TOPOLOGIES = pathlib.Path(__file__).parents[2] / 'etc/hpcvirt/topologies'

GPU_HOST = 'xeon-2s-20c-smt-8gpu'
GPU = {'kind': 'whole', 'affinity': 'required', 'alias': 'gpu',
       'vendor_id': '10de', 'product_id': '1db1'}


def _has_vgpus(flavor):
    return any(key.startswith('resources:') for key in flavor['extra_specs'])


class GeneratedFlavorsTest(base.HPCNova):
    topologies = TOPOLOGIES

    def plan(self, *names, **profile):
        """Run ``hpcvirt flavor plan`` on shipped topologies."""
        path = folders.make(self) / 'profile.yaml'
        path.write_text(yaml.safe_dump(
            {'base': 'dense', 'disk_gib': 0, **profile}))
        status, out, _ = commands.run(
            'flavor', 'plan', '--format', 'json', '--profile', path,
            *(self.topologies / f'{name}.json' for name in names))
        self.assertEqual(0, status)
        return json.loads(out)

    def start(self, names, **profile):
        """Plan for hosts, configure them as planned and start them."""
        document = self.plan(*names, **profile)
        self.flags(alias=planned.pci_aliases(document), group='pci')
        devices = profile.get('devices', [{}])[0]
        self.add_machines(*(
            planned.machine(
                topology.read(self.topologies / f'{name}.json'),
                document, devices.get('vfs_per_device'),
                devices.get('vgpus_per_device', 0)) for name in names))
        return document

    def check(self, *names, **profile):
        """Fill every host with every flavor.

        The API validates the flavors. Each host must take as many instances
        and have as many unused CPUs as the plan says.
        """
        document = self.start(names, **profile)
        self.assertTrue(document['flavors'])
        for flavor in document['flavors']:
            id_ = self.create_flavor(
                flavor['vcpus'], flavor['ram_mib'], flavor['extra_specs'],
                flavor['name'], flavor['disk_gib'])
            for host, count in flavor['per_host'].items():
                if count:
                    self.fill(flavor, id_, host, count)
        return document

    def fill(self, flavor, id_, host, count):
        if _has_vgpus(flavor):
            # Nova claims several of one request on the same card.
            servers = [self.boot(id_, host=host) for _ in range(count)]
        else:
            servers = self.boot_many(id_, count, host=host)
        self.assertEqual([], self.faults())
        ledger = self.ledger(host)
        self.assertEqual(count, len(ledger.guests))
        self.assertEqual(
            flavor['unused_pcpus'][host],
            len(ledger.dedicated) - len(ledger.owners()))
        self.assert_devices(flavor, ledger)
        self.assert_next_is_refused(flavor, id_, host)
        for server in servers:
            self.api.delete_server(server['id'])
        for server in servers:
            self.wait_until_gone(server)

    def assert_devices(self, flavor, ledger):
        """Each guest has its devices, and with "required" next to it."""
        near = 'required' in flavor['extra_specs'].values()
        mediated = self.connections[ledger.machine.name].mdev_info.devices
        self.assertEqual(
            _sum(flavor['devices']) * len(ledger.guests), len(mediated) + len(
                ledger.device_owners()))
        for guest in ledger.guests if not mediated else ():
            self.assertEqual(_sum(flavor['devices']), len(guest.devices))
            cells = {cell.host_cell for cell in guest.cells}
            for address in guest.devices if near else ():
                self.assertIn(ledger.device_cell(address), cells)

    def assert_next_is_refused(self, flavor, id_, host):
        """Boot another instance, for which Placement has resources.

        It has no further vGPUs, which only Placement counts.
        """
        self.loosen_placement(host)
        before = len(self.log.output)
        server = self.boot(id_, status='ERROR', host=host)
        self.delete(server)
        log = self.log.output[before:]
        if _has_vgpus(flavor):
            self.assertNotIn('refused', log)
            return
        self.assertIn(f'{host}, {host} refused', log)
        self.assertRegex(log, self.reason(flavor, host))

    def loosen_placement(self, host):
        """Raise the allocation ratios of Placement.

        They last until nova-compute reports its inventory again, when the next
        instance starts or ends on the host. Otherwise Placement refuses a full
        host, and no filter is called.
        """
        uuid = self.compute_rp_uuids[host]
        inventory = self.placement.get(
            f'/resource_providers/{uuid}/inventories').body
        for resources in inventory['inventories'].values():
            resources['allocation_ratio'] = 16.0
        self._update_inventory(uuid, inventory)

    def reason(self, flavor, host):
        """Return the reason that the filter must give for the first full cell.

        Isolated emulator threads need one additional CPU on the host cell of
        one guest cell.
        """
        ledger = self.ledger(host)
        specs = flavor['extra_specs']
        if _sum(flavor['unused_devices'][host]) < _sum(flavor['devices']):
            return 'the host has (no|[0-9]+ of the [0-9]+) free PCI device'
        needed = flavor['vcpus'] // int(specs['hw:numa_nodes'])
        if 'hw:numa_cpus.0' in specs:
            needed = len(cpuset.parse(specs['hw:numa_cpus.0']))
        for cell in ledger.machine.host.cells:
            total = len(cell.cpus & ledger.dedicated)
            free = len(ledger.free_pcpus(cell.id))
            if free < needed <= total:
                return (f'cell {cell.id} has {free} of the'
                        f' ({needed}|{needed + 1}) free PCPUs needed')
            if total < needed:
                return f'cell {cell.id} has {total} of the {needed} PCPUs '
        return self.fail(f'{host} has room for one more')

    def test_periodic_two_cells_without_smt(self):
        self.check('hs06-2s-16c')

    def test_two_cells_with_smt_and_virtual_functions_on_one(self):
        self.check('intel-2s-16c-smt', housekeeping_cores_per_cell=1,
                   devices=[{'affinity': 'preferred', 'vfs_per_device': 8,
                            'vendor_id': '8086', 'product_id': '154c'}])

    def test_periodic_whole_devices_on_their_cells(self):
        self.check(GPU_HOST, devices=[{**GPU, 'per_instance': 4}])

    def change_gpus(self, most, **changes):
        """Change the GPUs of the host that has some.

        :param most: the number of GPUs that it keeps on each cell
        """
        path = TOPOLOGIES / f'{GPU_HOST}.json'
        host = json.loads(path.read_text())
        kept = [[device for device in host['devices']
                 if device['product_id'] == GPU['product_id']
                 and device['cell'] == cell['id']][:most]
                for cell in host['cells']]
        host['devices'] = [{**device, **changes}
                           for device in itertools.chain(*kept)]
        # The wiring has all GPUs.
        del host['wiring']
        self.topologies = folders.make(self)
        (self.topologies / path.name).write_text(json.dumps(host))

    def test_periodic_whole_devices_with_sriov(self):
        self.change_gpus(2, total_vfs=16)
        document = self.check(GPU_HOST, devices=[{**GPU, 'per_instance': 4}])
        self.assertIn('type-PF', planned.pci_aliases(document)[0])

    def test_periodic_a_share_of_the_whole_devices(self):
        self.check(GPU_HOST, devices=[{**GPU, 'per_instance': 'share'}])

    def test_periodic_vgpus_each_guest_from_one_card(self):
        self.change_gpus(1)
        document = self.check(GPU_HOST, devices=[{
            'kind': 'vgpu', 'per_instance': 2, 'vgpus_per_device': 5,
            'vendor_id': '10de', 'product_id': '1db1',
            'mdev_type': 'nvidia-303', 'resource_class': 'CUSTOM_VGPU_3Q'}])
        flavor, = document['flavors']
        self.assertEqual(({GPU_HOST: 4}, {GPU_HOST: 0}, {GPU_HOST: 2}), (
            flavor['per_host'], flavor['unused_pcpus'],
            {host: _sum(left) for host, left
             in flavor['unused_devices'].items()}))

    def test_periodic_two_cells_with_cores_for_the_host(self):
        self.check('hs06-2s-16c', base='default', smallest_cores=5)

    def test_periodic_four_cells_on_1_gib_pages(self):
        self.check('xeon-2s-24c-snc2-1g', page_size='1G')

    def test_periodic_four_sockets_with_isolated_emulator_threads(self):
        self.check('opteron-4s-12c', emulator_threads='isolate',
                   smallest_cores=12)

    def test_periodic_eight_cells_without_the_siblings(self):
        self.check('epyc-2s-64c-nps4', smt='leave', smallest_cores=16)

    def test_periodic_uneven_cells_and_cells_without_memory(self):
        self.check('uneven-2s')

    def test_periodic_sixteen_cells_half_of_them_without_cpus(self):
        self.check('xeon-max-2s-56c-snc4-hbm')

    def test_periodic_small_pages_of_64_kib(self):
        self.check('grace-2s-72c-64k')

    def test_periodic_a_mixed_fleet(self):
        self.check('hs06-2s-16c', 'single-1s-8c-smt')


def _sum(devices):
    return sum(item['count'] for item in devices)

# SPDX-License-Identifier: Apache-2.0

"""The embedded Nova reports the machines that it is given, exactly."""

import dataclasses

from nova import context
from nova import objects

from hpcvirt.model import cpuset
from testing import libvirt
from testing import machines
from testing import nova
from tests.functional import base


class EmbeddedNovaTest(base.OneNovaTestCase):
    NOVA = nova.EmbeddedNova

    def topology_of(self, name):
        node = objects.ComputeNode.get_by_nodename(
            context.get_admin_context(), name)
        return objects.NUMATopology.obj_from_db_obj(node.numa_topology)

    def assert_reported(self, machine):
        """Hold what Nova's scheduler knows against the model."""
        cells = self.topology_of(machine.name).cells
        settings = machine.settings
        dedicated = cpuset.parse(settings.cpu_dedicated_set or '')
        shared = cpuset.parse(settings.cpu_shared_set or '')
        given = (dedicated | shared) or machine.host.cpus
        self.assertEqual([cell.id for cell in machine.host.cells],
                         [cell.id for cell in cells])
        for mine, theirs in zip(machine.host.cells, cells, strict=True):
            self.assertEqual(mine.cpus & dedicated, theirs.pcpuset)
            self.assertEqual(mine.cpus & shared, theirs.cpuset)
            self.assertEqual(mine.socket, theirs.socket)
            self.assertEqual(mine.memory_mib, theirs.memory)
            self.assertCountEqual(
                [set(core & given) for core in mine.siblings if core & given],
                theirs.siblings)
            self.assertEqual([(pool.size_kib, pool.total)
                              for pool in mine.pages],
                             [(pool.size_kb, pool.total)
                              for pool in theirs.mempages])

    def inventory_of(self, name):
        return self.nova._get_provider_inventory(
            self.nova.compute_rp_uuids[name])

    def test_uneven_cells_and_gaps_in_numbers_arrive_as_they_are(self):
        machine = machines.build(
            'odd', 4, [8, 8, 6, 3], threads=2, sockets=2, far_siblings=True,
            cpu_gap=3, pages={2048: 512, 1048576: 2}, housekeeping_cores=1)
        self.nova.add_machines(machine)
        self.assert_reported(machine)

    def test_a_cell_without_cpus_and_one_without_memory_arrive(self):
        machine = machines.build('cxl', 4, 4, pages={2048: 64})
        cells = list(machine.host.cells)
        cells[1] = dataclasses.replace(cells[1], memory_mib=0, pages=())
        cells[3] = dataclasses.replace(
            cells[3], socket=None, cpus=frozenset(), siblings=(), llc=())
        host = dataclasses.replace(machine.host, cells=tuple(cells))
        machine = dataclasses.replace(machine, host=host, settings=(
            dataclasses.replace(machine.settings, cpu_dedicated_set='0-11')))
        self.nova.add_machines(machine)
        self.assert_reported(machine)

    def test_hosts_of_one_process_keep_their_own_settings(self):
        small = machines.build('small', 2, 2, pages={2048: 64})
        large = machines.build(
            'large', 2, 8, threads=2, pages={2048: 256},
            housekeeping_cores=1, reserved=['node:1,size:2048,count:16'])
        large = dataclasses.replace(large, settings=dataclasses.replace(
            large.settings, reserved_host_memory_mb=700))
        self.nova.add_machines(small, large)
        self.assert_reported(small)
        self.assert_reported(large)
        self.assertEqual(
            [[0, 0], [0, 16]],
            [[pool.reserved for pool in cell.mempages]
             for cell in self.topology_of('large').cells])
        small_inventory = self.inventory_of('small')
        self.assertEqual(4, small_inventory['PCPU']['total'])
        self.assertNotIn('VCPU', small_inventory)
        self.assertEqual(0, small_inventory['MEMORY_MB']['reserved'])
        self.assertEqual(2 * (1024 + 128),
                         small_inventory['MEMORY_MB']['total'])
        inventory = self.inventory_of('large')
        self.assertEqual(28, inventory['PCPU']['total'])
        self.assertEqual(4, inventory['VCPU']['total'])
        self.assertEqual(700, inventory['MEMORY_MB']['reserved'])

    def test_virtual_functions_sit_on_the_cell_of_their_card(self):
        machine = machines.build('nic', 4, 2, vfs={1: 3, 3: 10})
        self.nova.add_machines(machine)
        devices = objects.PciDeviceList.get_by_compute_node(
            context.get_admin_context(), objects.ComputeNode.get_by_nodename(
                context.get_admin_context(), 'nic').id)
        self.assertEqual(
            {('type-PF', 1): 1, ('type-VF', 1): 3,
             ('type-PF', 3): 1, ('type-VF', 3): 10},
            _count((device.dev_type, device.numa_node)
                   for device in devices))
        self.assertEqual(
            {function.address for function in machine.functions()},
            {device.address for device in devices})

    def test_listed_virtual_functions_are_topped_up(self):
        machine = machines.build('nic', vfs={1: 6})
        card = machine.host.devices[0]
        listed = dataclasses.replace(card, address='0000:41:00.1',
                                     product_id='101e', total_vfs=0)
        host = dataclasses.replace(machine.host, devices=(card, listed))
        for enabled, expected in ((None, 1), (4, 4), (100, 6)):
            physical = next(libvirt.Machine(
                host, machine.settings, enabled).functions())
            self.assertEqual('0000:41:00.1', physical.virtual[0])
            self.assertEqual(expected, len(set(physical.virtual)))

    def test_periodic_the_ledger_finds_inconsistencies(self):
        machine = machines.build('host', pages={2048: 512}, vfs={1: 1})
        self.nova.add_machines(machine)
        server = self.nova.boot(self.nova.create_flavor(2, 512, {
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'}),
            host='host')
        ledger = self.nova.ledger('host')
        self.assertEqual((), ledger.faults())
        guest = self.nova.guest(server)
        twice = dataclasses.replace(ledger, guests=(guest, guest, guest))
        self.assertEqual(
            [f'host: CPU {cpu} is pinned by {guest.name} and {guest.name}'
             f' and {guest.name}' for cpu in sorted(guest.pinned)]
            + ['host: cell 0 has 512 pages of 2048 KiB, its guests take 768'],
            list(twice.faults()))
        moved = dataclasses.replace(guest, cells=tuple(
            dataclasses.replace(cell, host_cells=frozenset({1}))
            for cell in guest.cells))
        stray = (f'host: cell 0 of {guest.name} has memory on cell 1 and CPUs'
                 f' {cpuset.render(guest.pinned)} elsewhere')
        self.assertEqual(
            (stray,), dataclasses.replace(ledger, guests=(moved,)).faults())
        floating = dataclasses.replace(guest, pins={
            0: guest.pins[0], 1: frozenset({0, 1, 2, 3})})
        self.assertEqual(
            ((f'host: cell 0 of {guest.name} has 1 of its 2 dedicated vCPUs'
              ' pinned'),),
            dataclasses.replace(ledger, guests=(floating,)).faults())


def _count(items):
    counts = {}
    for item in items:
        counts[item] = counts.get(item, 0) + 1
    return counts

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import unittest

from hpcvirt import exception
from hpcvirt.fit import capacity
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from tests.builders import hosts
from tests.builders import plans

GPU = hosts.GPU
VGPU = dataclasses.replace(hosts.VGPU, per_instance=2, vgpus_per_device=5)
SHARE = dataclasses.replace(GPU, per_instance=None,
                            affinity=shape.PCIAffinity.REQUIRED)
GRID = hosts.VGPU


def device(address, total_vfs=0, product='20b0', vf_product=None):
    return host_model.Device(address, '10de', product, 0, total_vfs, 'nvidia',
                             vf_product)


def with_devices(*devices):
    return dataclasses.replace(hosts.build(), devices=devices)


def addresses(host, wanted, *others):
    type_ = offered_devices.device_type(wanted, (host, *others))
    return type_, [item.device.address for item
                   in offered_devices.choose_devices(host, wanted, type_)]


class GivenDevicesTest(unittest.TestCase):
    def test_the_type_is_that_which_nova_gives(self):
        for total_vfs, type_ in ((0, 'type-PCI'), (16, 'type-PF')):
            host = hosts.build(gpus={0: 1, 1: 2}, gpu_vfs=total_vfs)
            self.assertEqual(
                (type_, [f'0001:0{number}:00.0' for number in range(3)]),
                addresses(host, GPU))

    def test_an_alias_has_one_type_for_all_hosts(self):
        plain, sriov = (hosts.build(gpus={0: 1}, gpu_vfs=number)
                        for number in (0, 16))
        self.assertEqual(('type-PF', []), addresses(plain, GPU, sriov))
        self.assertEqual(('type-PF', ['0001:00:00.0']),
                         addresses(sriov, GPU, plain))

    def test_other_products_are_not_given(self):
        host = with_devices(device('0000:07:00.0', product='20b2'),
                            device('0000:0f:00.0'))
        self.assertEqual(('type-PCI', ['0000:0f:00.0']), addresses(host, GPU))

    def test_virtual_functions_are_no_whole_devices(self):
        # Those of an A100 have the product of the card itself.
        same = with_devices(device('0000:07:00.0', 16),
                            device('0000:07:00.4'), device('0000:07:02.3'))
        self.assertEqual(('type-PF', ['0000:07:00.0']), addresses(same, GPU))
        for vf_product in (None, '20b0'):
            other = with_devices(
                device('0000:07:00.0', 16, '1eb8', vf_product),
                device('0000:07:00.4'))
            self.assertEqual([], addresses(other, GPU)[1])

    def test_a_function_beside_a_card_of_other_virtual_functions_is_whole(
            self):
        host = with_devices(device('0000:07:00.0', 16, '1eb8', '1eb9'),
                            device('0000:07:00.1'))
        self.assertEqual(('type-PCI', ['0000:07:00.1']), addresses(host, GPU))

    def test_vgpus_belong_to_the_virtual_functions_that_exist(self):
        card = device('0000:07:00.0', 16)
        self.assertEqual(['0000:07:00.0'],
                         addresses(with_devices(card), VGPU)[1])
        self.assertEqual(['0000:07:00.4'], addresses(with_devices(
            card, device('0000:07:00.4')), VGPU)[1])

    def test_the_vgpus_of_a_guest_come_from_one_card(self):
        host = hosts.build(gpus={0: 1, 1: 1})
        found = offered_devices.choose_devices(host, VGPU, '')
        self.assertEqual([5, 5], [item.count for item in found])
        empty = plans.plan(host, devices=(VGPU,)).hosts[0].state
        for number, expected in ((1, 5 + 5), (2, 2 + 2), (6, 0)):
            guest = compiled_flavor.make(flavor_model.Flavor('x', 1, 64, 0, {
                'hw:cpu_policy': 'dedicated', 'resources:VGPU': str(number)}))
            self.assertEqual(expected, capacity.fill(guest, empty).count)

    def test_virtual_functions_are_counted_as_before(self):
        host = hosts.build(vfs={0: 4, 1: 8}, gpus={0: 1})
        wanted = device_choice.Devices(vendor_id='15b3', product_id='101e',
                                       vfs_per_device=6)
        self.assertEqual({0: 4, 1: 6}, offered_devices.count_per_cell(
            offered_devices.choose_devices(host, wanted, 'type-VF')))


def parts(host, wanted):
    found = offered_devices.choose_devices(host, wanted, 'type-PCI')
    return offered_devices.cell_portions(
        cpu_partition.divide(host, profiles.DENSE), found, wanted)


def plan(host, wanted, **choices):
    found = planner.plan([host],
                         profiles.Profile(devices=(wanted,), **choices))
    return {(row.flavor.vcpus, row.guest.devices[0].count): (
        row.per_host['host'], row.unused['host'].pcpus,
        sum(row.unused['host'].devices)) for row in found.flavors}


class DeviceSizesTest(unittest.TestCase):
    def test_guests_have_the_cores_that_go_with_their_devices(self):
        self.assertEqual(
            {(4, 1): (8, 0, 0), (8, 2): (4, 0, 0), (16, 4): (2, 0, 0),
             (32, 8): (1, 0, 0)},
            plan(hosts.build(cores=16, gpus={0: 4, 1: 4}), SHARE,
                 all_host_steps=False))

    def test_a_host_that_keeps_all_cells_takes_no_guest(self):
        for wanted in (GPU, GRID):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'no guest fits'):
                planner.plan([hosts.build(mib=256, gpus={0: 1})],
                             profiles.Profile(devices=(wanted,)))

    def test_a_fixed_number_chooses_the_size(self):
        host = hosts.build(cores=16, gpus={0: 4, 1: 4})
        for number, expected in (
                (1, {(4, 1): (8, 0, 0)}), (2, {(8, 2): (4, 0, 0)}),
                (3, {(16, 3): (2, 0, 2)}), (8, {(32, 8): (1, 0, 0)})):
            self.assertEqual(expected, plan(host, dataclasses.replace(
                SHARE, per_instance=number)))
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'per_instance is not the share'):
            plan(host, dataclasses.replace(SHARE, per_instance=5))

    def test_devices_of_one_cell_are_for_all_unless_they_are_tied(self):
        host = hosts.build(cores=16, gpus={1: 4})
        loose = dataclasses.replace(
            SHARE, affinity=shape.PCIAffinity.PREFERRED, per_instance=1)
        self.assertEqual({(4, 1): (4, 16, 0), (8, 1): (4, 0, 0)},
                         plan(host, loose))
        self.assertEqual({(4, 1): (4, 16, 0)}, plan(
            host, dataclasses.replace(SHARE, per_instance=1)))

    def test_vgpus_are_for_all_cells(self):
        host = hosts.build(cores=16, gpus={1: 2})
        self.assertEqual({(4, 1): (8, 0, 0)}, plan(host, GRID))
        self.assertEqual({(8, 2): (4, 0, 0)}, plan(
            host, dataclasses.replace(GRID, per_instance=2)))

    def test_the_memory_of_a_core_that_is_left_is_not_left(self):
        host = hosts.build(cells=1, cores=15, gpus={0: 4})
        found = planner.plan([host], profiles.Profile(devices=(SHARE,)))
        small = min(found.flavors, key=lambda row: row.flavor.vcpus)
        self.assertEqual((3, 4, 3), (
            small.flavor.vcpus, small.per_host['host'],
            small.unused['host'].pcpus))
        self.assertLess(small.unused['host'].memory_mib, 4 * 1024)
        self.assertEqual('1/4 cell', small.shares['host'].words)

    def test_an_operator_may_refuse_small_parts(self):
        host = hosts.build(cores=16, gpus={0: 4, 1: 4})
        self.assertNotIn((4, 1), plan(host, SHARE, smallest_cores=5))

    def test_virtual_functions_make_no_sizes(self):
        host = hosts.build(vfs={0: 3})
        self.assertEqual((), parts(host, hosts.VFS))
        self.assertEqual({1: None}, offered_devices.device_numbers(
            cpu_partition.divide(host, profiles.DENSE),
            cpu_partition.GuestSize((7,), 1), (), hosts.VFS))

    def test_no_guest_of_a_cell_could_have_more_cores(self):
        """Compare with every number of cores that a guest may have."""
        for width in range(1, 25):
            for devices in range(1, 9):
                host = hosts.build(cells=1, cores=width, gpus={0: devices})
                found = {part.devices: part.cores
                         for part in parts(host, SHARE)}
                for number in range(1, devices + 1):
                    guests = devices // number
                    best = max((cores for cores in range(1, width + 1)
                                if width // cores >= guests), default=None)
                    if devices % number or best is None:
                        self.assertNotIn(number, found)
                    else:
                        self.assertEqual(best, found[number])

    def test_devices_of_equal_cells_run_out_with_the_cores(self):
        dice = random.Random(11)
        count = 0
        for _ in range(150):
            cells = dice.choice([1, 2, 4])
            each = dice.choice([1, 2, 3, 4])
            cores = each * dice.choice([1, 2, 5, 6])
            host = hosts.build(
                cells, cores, sockets=dice.choice([1, cells]),
                gpus=dict.fromkeys(range(cells), each),
                gpu_vfs=dice.choice([0, 16]))
            wanted = dataclasses.replace(SHARE, affinity=dice.choice(
                list(shape.PCIAffinity)))
            for (vcpus, number), (instances, pcpus, left) in plan(
                    host, wanted, all_host_steps=False).items():
                self.assertEqual((0, 0), (pcpus, left))
                self.assertEqual(cells * each, instances * number)
                self.assertEqual(cells * cores, instances * vcpus)
                count += 1
        self.assertGreater(count, 300)

    def test_devices_that_the_cells_cannot_divide_are_divided_all_the_same(
            self):
        host = hosts.build(cores=6, gpus={0: 3, 1: 3})
        wanted = dataclasses.replace(
            SHARE, affinity=shape.PCIAffinity.PREFERRED)
        self.assertNotIn(2, [part.devices for part in parts(host, wanted)])
        self.assertEqual(
            {(3, 2): (3, 3, 0), (6, 2): (2, 0, 2)},
            plan(host, dataclasses.replace(wanted, per_instance=2)))

# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import dataclasses
import random
import unittest

from hpcvirt import exception
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import device_sizes
from hpcvirt.flavors import given_devices
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import sizes
from hpcvirt.model import shape
from tests import hosts

SHARE = profiles.Devices(
    profiles.Kind.WHOLE, None, shape.PCIAffinity.REQUIRED, alias='gpu',
    vendor_id='10de', product_id='20b0')
VGPU = profiles.Devices(
    profiles.Kind.VGPU, vendor_id='10de', product_id='20b0',
    mdev_type='nvidia-474', vgpus_per_device=4)


def parts(host, wanted):
    found = given_devices.given(host, wanted, 'type-PCI')
    return device_sizes.parts(
        cpu_partition.divide(host, profiles.DENSE), found, wanted)


def plan(host, wanted, **choices):
    found = planner.plan([host], profiles.Profile(devices=wanted, **choices))
    return {(row.flavor.vcpus, row.guest.devices[0].count): (
        row.per_host['host'], row.stranded['host'].pcpus,
        row.stranded['host'].devices) for row in found.flavors}


class DeviceSizesTest(unittest.TestCase):

    def test_guests_have_the_cores_that_go_with_their_devices(self):
        self.assertEqual(
            {(4, 1): (8, 0, 0), (8, 2): (4, 0, 0), (16, 4): (2, 0, 0),
             (32, 8): (1, 0, 0)},
            plan(hosts.build(cores=16, gpus={0: 4, 1: 4}), SHARE,
                 all_host_steps=False))

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
        self.assertEqual({(4, 1): (8, 0, 0)}, plan(host, VGPU))
        self.assertEqual({(8, 2): (4, 0, 0)}, plan(
            host, dataclasses.replace(VGPU, per_instance=2)))

    def test_the_memory_of_a_core_that_is_left_is_not_left(self):
        host = hosts.build(cells=1, cores=15, gpus={0: 4})
        found = planner.plan([host], profiles.Profile(devices=SHARE))
        small = min(found.flavors, key=lambda row: row.flavor.vcpus)
        self.assertEqual((3, 4, 3), (
            small.flavor.vcpus, small.per_host['host'],
            small.stranded['host'].pcpus))
        self.assertLess(small.stranded['host'].memory_mib, 4 * 1024)
        self.assertEqual('1/4 cell', small.shares['host'].words)

    def test_an_operator_may_refuse_small_parts(self):
        host = hosts.build(cores=16, gpus={0: 4, 1: 4})
        self.assertNotIn((4, 1), plan(host, SHARE, smallest_cores=5))

    def test_virtual_functions_make_no_sizes(self):
        wanted = profiles.Devices(vendor_id='15b3', product_id='101e')
        host = hosts.build(vfs={0: 3})
        self.assertEqual((), parts(host, wanted))
        self.assertEqual({1: None}, device_sizes.numbers(
            cpu_partition.divide(host, profiles.DENSE),
            sizes.Size((7,), 1), (), wanted))

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
                cells, cores, packages=dice.choice([1, cells]),
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

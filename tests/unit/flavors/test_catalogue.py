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

import unittest

from hpcvirt.flavors import catalogue
from hpcvirt.flavors import profile
from hpcvirt.flavors import sizes
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import vocabulary


def guest(*mib, cpus=8, threads=1):
    return shape_model.Shape(
        tuple(shape_model.GuestCell(cpus, 0, each, 2048) for each in mib),
        cpu_policy=shape_model.CPUPolicy.DEDICATED,
        topology=shape_model.GuestTopology(
            len(mib), cpus // threads, threads))


def offer(host, *mib, **more):
    return catalogue.Offer(guest(*mib, **more), {host: sizes.Share('cell')})


class MergeTest(unittest.TestCase):

    def merged(self, *offers, tolerance=10):
        return [(found.guest.memory_mib, sorted(found.shares))
                for found in catalogue.merge(offers, tolerance)]

    def test_guests_that_differ_a_little_become_the_poorest(self):
        self.assertEqual([(1000, ['a', 'b', 'c'])], self.merged(
            offer('a', 1100), offer('b', 1000), offer('c', 1050)))

    def test_the_tolerance_is_counted_from_the_poorest(self):
        self.assertEqual([(1000, ['a', 'b']), (1150, ['c'])], self.merged(
            offer('a', 1000), offer('b', 1080), offer('c', 1150)))

    def test_no_tolerance_merges_equal_guests_alone(self):
        self.assertEqual(
            [(1000, ['a', 'b']), (1001, ['c'])],
            self.merged(offer('a', 1000), offer('b', 1000),
                        offer('c', 1001), tolerance=0))

    def test_guests_that_differ_otherwise_stay_apart(self):
        self.assertEqual(3, len(self.merged(
            offer('a', 1000), offer('b', 1000, threads=2),
            offer('c', 500, 500))))

    def test_each_cell_of_unequal_guests_is_the_poorest(self):
        found = catalogue.merge(
            [offer('a', 1000, 800), offer('b', 990, 820)], 10)
        self.assertEqual([990, 800],
                         [cell.memory_mib for cell in found[0].guest.cells])

    def test_the_order_of_hosts_does_not_matter(self):
        offers = [offer('a', 1000), offer('b', 1080), offer('c', 1150)]
        self.assertEqual(self.merged(*offers),
                         self.merged(*reversed(offers)))


class FlavorTest(unittest.TestCase):

    def test_images_may_not_show_siblings_that_are_not_there(self):
        for threads in (1, 2):
            found = catalogue.flavor(guest(1024, threads=threads),
                                     profile.Profile())
            self.assertEqual(str(threads),
                             found.extra_specs['hw:cpu_max_threads'])

    def test_the_mark_is_one_that_the_vocabulary_accepts(self):
        found = catalogue.flavor(guest(1024), profile.Profile())
        row = vocabulary.GENERATED_BY
        self.assertTrue(row.accepts(found.extra_specs[row.name]))

    def test_marking_again_changes_nothing(self):
        found = catalogue.flavor(guest(1024), profile.Profile())
        self.assertEqual(found.extra_specs, catalogue.marked(
            found.vcpus, found.ram_mib, found.disk_gib, found.extra_specs))

    def test_even_cells_are_left_to_nova(self):
        found = catalogue.flavor(guest(1024, 1024), profile.Profile())
        self.assertNotIn('hw:numa_cpus.0', found.extra_specs)

    def test_uneven_cells_are_spelt_out(self):
        found = catalogue.flavor(guest(1024, 512), profile.Profile())
        self.assertEqual(
            ('0-7', '8-15', '1024', '512'),
            tuple(found.extra_specs[key] for key in (
                'hw:numa_cpus.0', 'hw:numa_cpus.1', 'hw:numa_mem.0',
                'hw:numa_mem.1')))

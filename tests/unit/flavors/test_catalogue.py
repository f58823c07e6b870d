# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import random
import unittest

from hpcvirt import exception
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import vocabulary
from tests import pages
from tests.builders import hosts


def guest(*mib, cpus=8, threads=1):
    return shape_model.Shape(
        tuple(shape_model.GuestCell(cpus, 0, each, 2048) for each in mib),
        cpu_policy=shape_model.CPUPolicy.DEDICATED,
        topology=shape_model.GuestTopology(
            len(mib), cpus // threads, threads))


def offer(host, *mib, **more):
    return catalogue.Offer(guest(*mib, **more),
                           {host: cpu_partition.HostShare('cell')})


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
        self.assertEqual(self.merged(*offers), self.merged(*reversed(offers)))


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
        self.assertEqual(found.extra_specs, catalogue.mark_specs(
            found.vcpus, found.ram_mib, found.disk_gib, found.extra_specs))


def make_guest(vcpus=8, cells=1, mib=1024, page_kib=2048, sockets=None,
               threads=1, **more):
    sockets = sockets or cells
    return shape_model.Shape(
        (shape_model.GuestCell(vcpus // cells, 0, mib, page_kib),) * cells,
        cpu_policy=shape_model.CPUPolicy.DEDICATED,
        thread_policy=(shape_model.ThreadPolicy.REQUIRE if threads > 1
                       else None),
        topology=shape_model.GuestTopology(
            sockets, vcpus // (sockets * threads), threads), **more)


class NamesTest(unittest.TestCase):
    def test_the_parts_of_a_name(self):
        affinity = shape_model.PCIAffinity
        for expected, shape in (
                ('hpc.8c1n.2m', make_guest()),
                ('hpc.16c2n.1g', make_guest(16, 2, page_kib=1048576)),
                ('hpc.8c1n.64k', make_guest(mib=1920, page_kib=64)),
                ('hpc.8c2n.2m.skt',
                 make_guest(8, 2, numa_scope=shape_model.NUMAScope.SOCKET)),
                ('hpc.8c1n.2m.emu',
                 make_guest(
                     emulator_threads=shape_model.EmulatorThreads.ISOLATE)),
                *((f'hpc.8c1n.2m.{word}', make_guest(devices=(
                    shape_model.GuestDevices(*wanted),)))
                  for word, wanted in (
                      ('vf2', ('hpc-vf', 2, affinity.PREFERRED)),
                      ('vf1r', ('hpc-vf', 1, affinity.REQUIRED)),
                      ('ib-1', ('ib', 1, affinity.PREFERRED)),
                      ('gpu-4r', ('gpu', 4, affinity.REQUIRED)),
                      ('vgpu2', (None, 2, None, None, 'VGPU')),
                      ('port1s', (None, 1, affinity.SOCKET, 'net'))))):
            self.assertEqual(expected, catalogue.make_name(shape))

    def test_c_counts_cores_and_not_threads(self):
        self.assertEqual('hpc.8c2n1s2t.2m', catalogue.make_name(
            make_guest(16, 2, sockets=1, threads=2)))
        self.assertEqual('hpc.4c1n4t.2m',
                         catalogue.make_name(make_guest(16, threads=4)))

    def test_a_name_is_the_same_for_ever(self):
        # It stands in clouds: a change makes every flavor a new one.
        shape = dataclasses.replace(make_guest(16, 2), cells=(
            shape_model.GuestCell(10, 0, 1024, 2048),
            shape_model.GuestCell(6, 0, 1024, 2048)))
        self.assertEqual('hpc.16c2n.2m.xbd5a8b', catalogue.make_name(shape))

    def test_memory_is_named_where_flavors_differ_in_it_alone(self):
        guests = [make_guest(), make_guest(mib=1920), make_guest(mib=2048),
                  make_guest(16)]
        self.assertEqual(
            ('hpc.8c1n.2m.1g', 'hpc.8c1n.2m.1920m', 'hpc.8c1n.2m.2g',
             'hpc.16c1n.2m'), catalogue.assign_names(guests, 'hpc', 20))

    def test_a_template_has_the_fields_that_the_guide_lists(self):
        page = pages.read('user/profile')
        for field in profile.FIELDS:
            self.assertIn(f'``{{{field}}}``', page)
            catalogue.make_name(make_guest(), form=f'{{{field}}}')
        self.assertEqual('x-8-8-1-1-1-1g-1024-20d-2m-8c1n',
                         catalogue.make_name(
                             make_guest(), 'x', 20,
                             '{prefix}-{cores}-{vcpus}-{cells}-{sockets}-'
                             '{threads}-{memory}-{memory_mib}-{disk}-{page}-'
                             '{shape}'))

    def test_any_template_gives_different_guests_different_names(self):
        guests = [make_guest(vcpus, mib=mib, threads=threads)
                  for vcpus, mib, threads in itertools.product(
                      (8, 16), (1024, 2048), (1, 2))]
        for form in ('fixed', '{memory}', '{cores}c', '{prefix}', '{page}'):
            found = catalogue.assign_names(guests, 'hpc', 0, form)
            self.assertEqual(len(guests), len(set(found)))

    def test_a_template_that_makes_names_too_long_is_refused(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'Nova allows'):
            catalogue.assign_names([make_guest()], 'p' * 32, 0,
                                   '{prefix}' * 16)

    def test_different_flavors_have_different_names(self):
        guests = set()
        for cells, vcpus, mib, page, sockets, threads, emulator, devices in (
                itertools.product(
                    (1, 2), (8, 16), (1024, 1026, 2048), (4, 2048, 1048576),
                    (1, 2), (1, 2), (None, *shape_model.EmulatorThreads),
                    ((), *((shape_model.GuestDevices(*wanted),)
                           for wanted in itertools.product(
                               ('hpc-vf', 'other', None), (1, 2),
                               (None, *shape_model.PCIAffinity)))))):
            guests.add(make_guest(vcpus, cells, mib, page, sockets, threads,
                                  emulator_threads=emulator, devices=devices))
        found = catalogue.assign_names(sorted(guests, key=repr), 'hpc', 0)
        self.assertEqual(len(guests), len(set(found)))

    def test_over_many_plans_names_and_flavors_go_together(self):
        dice = random.Random(7)
        count = 0
        for number in range(60):
            machines = [hosts.any_host(dice, f'h{number}-{each}')
                        for each in range(dice.choice([1, 2, 3]))]
            try:
                plan = planner.plan(machines, hosts.any_profile(dice))
            except exception.InvalidInput:
                continue
            found = {row.flavor.name: row.guest for row in plan.flavors}
            self.assertEqual(len(plan.flavors), len(found))
            self.assertEqual(len(found), len(set(found.values())))
            count += len(found)
        self.assertGreater(count, 150)

    def test_the_digest_of_a_content_sees_every_part(self):
        content = (8, 1024, 0, {'hw:numa_nodes': '1', 'a': 'b'})
        digests = {catalogue.content_digest(*other) for other in (
            content, (9, *content[1:]), (8, 1025, *content[2:]),
            (8, 1024, 1, content[3]), (*content[:3], {'a': 'b'}),
            (*content[:3], {'hw:numa_nodes': '1', 'a': 'c'}))}
        self.assertEqual(6, len(digests))
        self.assertEqual(catalogue.content_digest(*content),
                         catalogue.content_digest(8, 1024, 0, dict(
                             reversed(content[3].items()))))

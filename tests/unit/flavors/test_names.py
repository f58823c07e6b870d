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
import itertools
import pathlib
import random
import unittest

from hpcvirt import exception
from hpcvirt.flavors import name_template
from hpcvirt.flavors import names
from hpcvirt.flavors import planner
from hpcvirt.model import shape as shape_model
from tests import hosts


def guest(vcpus=8, cells=1, mib=1024, page_kib=2048, sockets=None,
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
        for expected, shape in (
                ('hpc.8c1n.2m', guest()),
                ('hpc.16c2n.1g', guest(16, 2, page_kib=1048576)),
                ('hpc.8c1n.64k', guest(mib=1920, page_kib=64)),
                ('hpc.8c2n.2m.pkg',
                 guest(8, 2, numa_scope=shape_model.NUMAScope.PACKAGE)),
                ('hpc.8c1n.2m.emu',
                 guest(emulator_threads=shape_model.EmulatorThreads.ISOLATE)),
                ('hpc.8c1n.2m.vf2', guest(devices=(
                    shape_model.DeviceRequest(
                        'hpc-vf', 2, shape_model.PCIAffinity.PREFERRED),))),
                ('hpc.8c1n.2m.vf1r', guest(devices=(
                    shape_model.DeviceRequest(
                        'hpc-vf', 1, shape_model.PCIAffinity.REQUIRED),))),
                ('hpc.8c1n.2m.ib-1', guest(devices=(
                    shape_model.DeviceRequest(
                        'ib', 1, shape_model.PCIAffinity.PREFERRED),))),
                ('hpc.8c1n.2m.gpu-4r', guest(devices=(
                    shape_model.DeviceRequest(
                        'gpu', 4, shape_model.PCIAffinity.REQUIRED),))),
                ('hpc.8c1n.2m.vgpu2', guest(devices=(
                    shape_model.DeviceRequest(
                        None, 2, resource_class='VGPU'),))),
                ('hpc.8c1n.2m.port1s', guest(devices=(
                    shape_model.DeviceRequest(
                        None, 1, shape_model.PCIAffinity.SOCKET, 'net'),)))):
            self.assertEqual(expected, names.name(shape))

    def test_c_counts_cores_and_not_threads(self):
        self.assertEqual('hpc.8c2n1s2t.2m', names.name(
            guest(16, 2, sockets=1, threads=2)))
        self.assertEqual('hpc.4c1n4t.2m', names.name(guest(16, threads=4)))

    def test_what_the_parts_cannot_tell_gets_a_digest(self):
        uneven = guest(16, 2)
        for cells in itertools.permutations((10, 6)):
            shape = dataclasses.replace(uneven, cells=tuple(
                shape_model.GuestCell(cpus, 0, 1024, 2048) for cpus in cells))
            self.assertRegex(names.name(shape),
                             r'^hpc\.16c2n\.2m\.x[0-9a-f]{6}$')

    def test_a_name_is_the_same_for_ever(self):
        # It stands in clouds: a change makes every flavor a new one.
        shape = dataclasses.replace(guest(16, 2), cells=(
            shape_model.GuestCell(10, 0, 1024, 2048),
            shape_model.GuestCell(6, 0, 1024, 2048)))
        self.assertEqual('hpc.16c2n.2m.xbd5a8b', names.name(shape))

    def test_memory_is_named_where_flavors_differ_in_it_alone(self):
        guests = [guest(), guest(mib=1920), guest(mib=2048), guest(16)]
        self.assertEqual(
            ('hpc.8c1n.2m.1g', 'hpc.8c1n.2m.1920m', 'hpc.8c1n.2m.2g',
             'hpc.16c1n.2m'), names.assign(guests, 'hpc', 20))

    def test_a_template_has_the_fields_that_the_guide_lists(self):
        page = (pathlib.Path(__file__).parents[3]
                / 'docs/source/flavors.rst').read_text()
        for field in name_template.FIELDS:
            self.assertIn(f'``{{{field}}}``', page)
            names.name(guest(), form=f'{{{field}}}')
        self.assertEqual('x-8-8-1-1-1-1g-1024-20d-2m-8c1n', names.name(
            guest(), 'x', 20, '{prefix}-{cores}-{vcpus}-{cells}-{sockets}-'
            '{threads}-{memory}-{memory_mib}-{disk}-{page}-{shape}'))

    def test_any_template_gives_different_guests_different_names(self):
        guests = [guest(vcpus, mib=mib, threads=threads)
                  for vcpus, mib, threads in itertools.product(
                      (8, 16), (1024, 2048), (1, 2))]
        for form in ('fixed', '{memory}', '{cores}c', '{prefix}', '{page}'):
            found = names.assign(guests, 'hpc', 0, form)
            self.assertEqual(len(guests), len(set(found)))

    def test_a_template_that_makes_names_too_long_is_refused(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'Nova allows'):
            names.assign([guest()], 'p' * 32, 0, '{prefix}' * 16)

    def test_different_flavors_have_different_names(self):
        guests = set()
        for cells, vcpus, mib, page, sockets, threads, emulator, devices in (
                itertools.product(
                    (1, 2), (8, 16), (1024, 1026, 2048), (4, 2048, 1048576),
                    (1, 2), (1, 2), (None, *shape_model.EmulatorThreads),
                    ((), *((shape_model.DeviceRequest(*wanted),)
                           for wanted in itertools.product(
                               ('hpc-vf', 'other', None), (1, 2),
                               (None, *shape_model.PCIAffinity)))))):
            guests.add(guest(vcpus, cells, mib, page, sockets, threads,
                             emulator_threads=emulator, devices=devices))
        found = names.assign(sorted(guests, key=repr), 'hpc', 0)
        self.assertEqual(len(guests), len(set(found)))

    def test_over_many_plans_names_and_flavors_go_together(self):
        dice = random.Random(7)
        count = 0
        for number in range(120):
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
        self.assertGreater(count, 300)

    def test_the_digest_of_a_content_sees_every_part(self):
        content = (8, 1024, 0, {'hw:numa_nodes': '1', 'a': 'b'})
        digests = {names.content_digest(*other) for other in (
            content, (9, *content[1:]), (8, 1025, *content[2:]),
            (8, 1024, 1, content[3]), (*content[:3], {'a': 'b'}),
            (*content[:3], {'hw:numa_nodes': '1', 'a': 'c'}))}
        self.assertEqual(6, len(digests))
        self.assertEqual(names.content_digest(*content),
                         names.content_digest(8, 1024, 0, dict(
                             reversed(content[3].items()))))

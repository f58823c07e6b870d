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
import random
import unittest

from hpcvirt import exception
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
        for expected, shape, disk in (
                ('hpc.8c1n.1g.2m', guest(), 0),
                ('hpc.16c2n.2g.1g', guest(16, 2, page_kib=1048576), 0),
                ('hpc.16c2n1s2t.2g.2m', guest(16, 2, sockets=1, threads=2),
                 0),
                ('hpc.8c1n.1920m.64k', guest(mib=1920, page_kib=64), 0),
                ('hpc.8c1n.1g.2m.20d', guest(), 20),
                ('hpc.8c2n.2g.2m.pkg',
                 guest(8, 2, numa_scope=shape_model.NUMAScope.PACKAGE), 0),
                ('hpc.8c1n.1g.2m.emu',
                 guest(emulator_threads=shape_model.EmulatorThreads.ISOLATE),
                 0),
                ('hpc.8c1n.1g.2m.emushare',
                 guest(emulator_threads=shape_model.EmulatorThreads.SHARE), 0),
                ('hpc.8c1n.1g.2m.vf2', guest(devices=(
                    shape_model.DeviceRequest(
                        'hpc-vf', 2, shape_model.PCIAffinity.PREFERRED),)), 0),
                ('hpc.8c1n.1g.2m.vf1r', guest(devices=(
                    shape_model.DeviceRequest(
                        'hpc-vf', 1, shape_model.PCIAffinity.REQUIRED),)), 0)):
            self.assertEqual(expected, names.name('hpc', shape, disk))

    def test_what_the_parts_cannot_tell_gets_a_digest(self):
        uneven = guest(16, 2)
        for cells in itertools.permutations((10, 6)):
            shape = dataclasses.replace(uneven, cells=tuple(
                shape_model.GuestCell(cpus, 0, 1024, 2048) for cpus in cells))
            self.assertRegex(names.name('hpc', shape),
                             r'^hpc\.16c2n\.2g\.2m\.x[0-9a-f]{6}$')

    def test_a_name_is_the_same_for_ever(self):
        # It stands in clouds: a change makes every flavor a new one.
        shape = dataclasses.replace(guest(16, 2), cells=(
            shape_model.GuestCell(10, 0, 1024, 2048),
            shape_model.GuestCell(6, 0, 1024, 2048)))
        self.assertEqual('hpc.16c2n.2g.2m.xbd5a8b', names.name('hpc', shape))

    def test_different_flavors_have_different_names(self):
        found = {}
        for cells, vcpus, mib, page, sockets, threads, emulator, devices in (
                itertools.product(
                    (1, 2), (8, 16), (1024, 1026, 2048), (4, 2048, 1048576),
                    (1, 2), (1, 2), (None, *shape_model.EmulatorThreads),
                    ((), *((shape_model.DeviceRequest(*wanted),)
                           for wanted in itertools.product(
                               ('hpc-vf', 'other', None), (1, 2),
                               (None, *shape_model.PCIAffinity)))))):
            shape = guest(vcpus, cells, mib, page, sockets, threads,
                          emulator_threads=emulator, devices=devices)
            name = names.name('hpc', shape)
            self.assertEqual(shape, found.setdefault(name, shape), name)

    def test_over_many_plans_names_and_flavors_go_together(self):
        dice = random.Random(7)
        contents, found = {}, {}
        for number in range(120):
            machines = [hosts.any_host(dice, f'h{number}-{each}')
                        for each in range(dice.choice([1, 2, 3]))]
            try:
                plan = planner.plan(machines, hosts.any_profile(dice))
            except exception.InvalidInput:
                continue
            for row in plan.flavors:
                flavor = row.flavor
                content = (flavor.vcpus, flavor.ram_mib, flavor.disk_gib,
                           tuple(flavor.extra_specs.items()))
                self.assertEqual(
                    content, contents.setdefault(flavor.name, content))
                self.assertEqual(
                    flavor.name, found.setdefault(content, flavor.name))
        self.assertGreater(len(contents), 300)

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

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

from hpcvirt.fleet import count
from hpcvirt.fleet import free_room
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import metrics
from hpcvirt.fleet import verdict
from tests import fleets


class MetricsTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        fleet, self.flavors = fleets.a_fleet(random.Random(4), 3, load=1)
        # Hosts that are alike are judged once, and counted each.
        twin = dataclasses.replace(fleet.hosts[0], name='twin')
        self.fleet = dataclasses.replace(
            fleet, hosts=(*fleet.hosts, twin), broken={'h9': 'is broken'})
        self.found = count.count(self.fleet, self.flavors)
        self.samples = {
            family.name: family.samples for family
            in metrics.families(self.fleet, self.found)}

    def test_flavors_have_their_counts(self):
        for item in self.found:
            name = item.flavor.name
            self.assertEqual((item.total, item.by_sums), tuple(
                self.samples[metric][name, 'True'] for metric in (
                    'openstack_free_capacity_by_flavor_total',
                    'hpcvirt_capacity_by_sums')))
            self.assertEqual(
                {host: number for host, number in item.per_host.items()
                 if number},
                {host: number for (host, flavor, *_), number in self.samples[
                    'openstack_free_capacity_hypervisor_by_flavor'].items()
                 if flavor == name})

    def test_each_refusal_is_counted_by_step_and_reason(self):
        total = 0
        for flavor in self.flavors:
            expected = {}
            for each in verdict.judge(guests.of_flavor(flavor), self.fleet):
                if each.step is not None and each.name != 'h9':
                    key = flavor.name, each.step.value, each.root or each.code
                    expected[key] = expected.get(key, 0) + 1
            self.assertEqual(expected, {
                key: number for key, number
                in self.samples['hpcvirt_refusing_hypervisors'].items()
                if key[0] == flavor.name})
            total += sum(expected.values())
        self.assertGreater(total, 3)

    def test_hosts_have_what_is_free_and_broken_ones_are_named(self):
        rooms = free_room.of_hosts(self.fleet, self.found)
        for host, room in rooms.items():
            self.assertEqual(
                (*dataclasses.astuple(room.pcpus), room.cells.total,
                 room.cells.free, room.packages.free, room.hosts.free),
                tuple(self.samples[f'hpcvirt_hypervisor_{name}'][host,]
                      for name in ('pcpus', 'pcpus_free', 'pcpus_stranded',
                                   'cells', 'cells_free', 'packages_free',
                                   'empty')))
            for size, amount in room.pages.items():
                self.assertEqual(dataclasses.astuple(amount), tuple(
                    self.samples[f'hpcvirt_hypervisor_pages{part}'][
                        host, str(size)] for part in (
                            '', '_free', '_stranded')))
        self.assertEqual({**{(host,): 0 for host in rooms}, ('h9',): 1},
                         self.samples['hpcvirt_hypervisor_broken'])

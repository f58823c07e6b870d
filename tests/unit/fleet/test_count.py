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

from hpcvirt.fit import reasons
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import admission
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import count
from hpcvirt.fleet import guest as guests
from tests import fleets


def taken(host, flavor):
    """Ask the host for one instance after the other."""
    guest, left, number = guests.of_flavor(flavor), host.state, 0
    while True:
        placed = admission.admit(guest, left, host.packing)
        if isinstance(placed, reasons.Misfit):
            return number
        left = admission.take(guest, left, placed)
        number += 1


class CountTest(unittest.TestCase):

    def test_each_host_takes_what_it_takes_one_after_the_other(self):
        dice = random.Random(3)
        lost = 0
        for _ in range(25):
            fleet, flavors = fleets.a_fleet(dice, 3)
            for item in count.count(fleet, flavors):
                self.assertEqual(
                    {host.name: taken(host, item.flavor)
                     for host in fleet.hosts}, item.per_host)
                self.assertGreaterEqual(item.by_sums, item.total)
                lost += item.by_sums - item.total
        self.assertGreater(lost, 9)

    def test_sums_limit_what_no_cell_limits(self):
        fleet, _ = fleets.a_fleet(random.Random(5), 1)
        (host,) = fleet.hosts
        host = dataclasses.replace(host, state=dataclasses.replace(
            host.state, free=guests.Sums(0, 6, 100)))
        for flavor, expected in (
                (catalogue.Flavor('m', 1, 40, 0, {}), 2),
                (catalogue.Flavor('v', 2, 0, 0, {}), 3)):
            (item,) = count.count(
                dataclasses.replace(fleet, hosts=(host,)), [flavor])
            self.assertEqual((expected, expected),
                             (item.total, item.by_sums))

    def test_memory_that_the_host_keeps_is_not_counted(self):
        fleet, _ = fleets.a_fleet(random.Random(5), 1)
        (host,) = fleet.hosts
        flavor = catalogue.Flavor('x', 1, 64, 0, {
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': 'large'})
        full = dataclasses.replace(host, state=dataclasses.replace(
            host.state, free=host.state.free._replace(memory_mib=63)))
        (item,) = count.count(dataclasses.replace(fleet, hosts=(full,)),
                              [flavor])
        self.assertEqual(0, item.total)
        self.assertEqual(
            reasons.Code.RESOURCES, admission.admit(
                guests.of_flavor(flavor), full.state, False).code)

    def test_equal_hosts_are_counted_each(self):
        fleet, flavors = fleets.a_fleet(random.Random(5), 1)
        many = dataclasses.replace(fleet, hosts=tuple(
            dataclasses.replace(fleet.hosts[0], name=f'n{number}')
            for number in range(5)))
        for one, five in zip(count.count(fleet, flavors),
                             count.count(many, flavors), strict=True):
            self.assertEqual((5 * one.total, 5 * one.by_sums),
                             (five.total, five.by_sums))


class ReportTest(unittest.TestCase):

    def test_lines_keep_to_the_width(self):
        fleet, flavors = fleets.a_fleet(random.Random(9), 6)
        broken = dataclasses.replace(fleet, broken={'h9': 'f: ' + 'x ' * 70})
        text = capacity_report.text(broken, count.count(broken, flavors), 70)
        self.assertLessEqual(max(map(len, text.splitlines())), 70)
        self.assertIn('1 host left out, because', text)
        self.assertIn('  h9: f: x x', text)

    def test_a_document_has_all_hosts(self):
        fleet, flavors = fleets.a_fleet(random.Random(9), 2)
        document = capacity_report.document(fleet,
                                            count.count(fleet, flavors))
        self.assertEqual(1, document['schema_version'])
        for item in document['flavors']:
            self.assertEqual(['h0', 'h1'], [*item['per_host']])
            self.assertEqual(item['total'], sum(item['per_host'].values()))

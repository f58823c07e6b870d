# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import unittest

from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import count
from hpcvirt.model import flavor as flavor_model
from tests.builders import fleets


class ReportTest(unittest.TestCase):
    def test_lines_keep_to_the_width(self):
        fleet, flavors = fleets.a_fleet(random.Random(9), 6)
        broken = dataclasses.replace(fleet, broken={'h9': 'f: ' + 'x ' * 70})
        text = capacity_report.text(broken, count.count(broken, flavors), 70)
        self.assertLessEqual(max(map(len, text.splitlines())), 70)
        self.assertIn('1 host left out, because', text)
        self.assertIn('  h9: f: x x', text)

    def test_classes_have_a_column_and_a_table(self):
        fleet, flavors = fleets.a_fleet(random.Random(9), 6)
        own = [dataclasses.replace(host, fleet_class='ab'[number % 2])
               for number, host in enumerate(fleet.hosts)]
        fleet = dataclasses.replace(fleet, hosts=tuple(own))
        found = count.count(fleet, flavors)
        document = capacity_report.document(fleet, found)
        for item, plain in zip(found, document['flavors'], strict=True):
            for name in 'ab':
                self.assertEqual(plain['per_class'][name], sum(
                    item.per_host[host.name] for host in own
                    if host.fleet_class == name))
        for key in ('total', 'free', 'stranded'):
            self.assertEqual(document['free']['pcpus'][key], sum(
                each['pcpus'][key] for each in document['classes']))
        text = capacity_report.text(fleet, found, 100)
        self.assertRegex(text, r'Lost +By class +Where\n')
        self.assertRegex(text, r'\na +3 +\d')
        # A single class needs neither.
        plain = dataclasses.replace(fleet, hosts=tuple(
            dataclasses.replace(host, fleet_class='a') for host in own))
        self.assertNotIn('By class', capacity_report.text(plain, found, 100))

    def test_hosts_with_equal_room_are_in_natural_order(self):
        for per_host, where in (
                ({'c-1': 1, 'c-10': 1, 'c-2': 1, 'c-3': 2},
                 'c-3: 2, c-1: 1, c-2: 1, 1 more'),
                ({'c-1': 2, 'c-10': 2, 'c-2': 2, 'c-3': 2, 'c-4': 0},
                 'c-1 and 3 more: 2'),
                ({'c-1': 1, 'c-10': 2, 'c-2': 2, 'c-3': 2, 'c-4': 2},
                 'c-2 and 3 more: 2, 1 with fewer')):
            item = count.InstanceCount(
                compiled_flavor.make(flavor_model.Flavor('x', 1, 64, 0, {})),
                per_host, 9)
            self.assertEqual(where, capacity_report.row(item)[-1])

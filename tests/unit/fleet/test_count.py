# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import unittest

from hpcvirt.fit import admission
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import assemble
from hpcvirt.fleet import count
from hpcvirt.fleet import document
from hpcvirt.model import flavor as flavor_model
from hpcvirt.topology import snapshot
from tests.builders import fleets
from tests.builders import hosts


class CountTest(unittest.TestCase):
    def test_hosts_without_the_devices_promise_nothing(self):
        with_gpus, plain = (
            {'name': name, 'topology': snapshot.make_json(hosts.named(name))}
            for name in ('xeon-2s-20c-smt-8gpu', 'intel-2s-16c-smt'))
        fleet, flavors = assemble.make_fleet(document.read({
            'schema_version': 1, 'classes': {
                'gpu': {'hosts': [with_gpus], 'profile': {
                    'base': 'dense', 'devices': [{
                        'kind': 'whole', 'vendor_id': '10de',
                        'product_id': '1db1', 'alias': 'gpu'}]}},
                'plain': {'hosts': [plain], 'profile': 'dense'}}}, 'f'))
        found = {item.flavor.name: item
                 for item in count.count(fleet, flavors)}
        gpus = [item for name, item in found.items() if 'gpu' in name]
        self.assertEqual([(8, 8)], [
            (item.total, item.by_sums) for item in gpus])
        self.assertEqual(0, gpus[0].per_host['intel-2s-16c-smt'])
        self.assertGreater(len(found), 1)

    def test_each_host_takes_what_it_takes_one_after_the_other(self):
        dice = random.Random(3)
        lost = 0
        for _ in range(25):
            fleet, flavors = fleets.a_fleet(dice, 3)
            for item in count.count(fleet, flavors):
                guest = compiled_flavor.make(item.flavor)
                self.assertEqual(
                    {host.name: len(admission.place_guests(
                        guest, host.state, 999)) for host in fleet.hosts},
                    item.per_host)
                self.assertGreaterEqual(item.by_sums, item.total)
                lost += item.by_sums - item.total
        self.assertGreater(lost, 9)

    def test_sums_limit_what_no_cell_limits(self):
        for shared, flavor, expected in (
                (4, flavor_model.Flavor('m', 1, 40, 0, {}), 2),
                (4, flavor_model.Flavor('v', 2, 0, 0, {}), 3),
                # Placement has six, but gives none of them two.
                (1, flavor_model.Flavor('v', 2, 0, 0, {}), 0),
                (1, flavor_model.Flavor('v', 1, 0, 0, {}), 6)):
            fleet, host = self.fleet_with_shared_cpus(shared)
            (item,) = count.count(fleet, [flavor])
            self.assertEqual((expected, expected), (item.total, item.by_sums))
            placed = admission.predict(compiled_flavor.make(flavor),
                                       host.state)
            self.assertEqual(not expected,
                             isinstance(placed, reasons.Misfit))
            if not expected:
                self.assertEqual('the host has 1 VCPU in all, '
                                 '2 needed', placed.message)

    def fleet_with_shared_cpus(self, number):
        fleet, _ = fleets.a_fleet(random.Random(5), 1)
        (host,) = fleet.hosts
        first, *others = host.state.supply.cells
        host = fleets.changed(host, (
            first._replace(shared=frozenset(range(900, 900 + number))),
            *others), free=guests.Resources(0, 6, 100))
        return dataclasses.replace(fleet, hosts=(host,)), host

    def test_memory_that_the_host_keeps_is_not_counted(self):
        fleet, _ = fleets.a_fleet(random.Random(5), 1)
        (host,) = fleet.hosts
        flavor = fleets.flavor(1, 64, page_size='large')
        full = fleets.changed(
            host, free=host.state.free._replace(memory_mib=63))
        (item,) = count.count(dataclasses.replace(fleet, hosts=(full,)),
                              [flavor])
        self.assertEqual(0, item.total)
        self.assertEqual(
            reasons.Code.RESOURCES, admission.predict(
                compiled_flavor.make(flavor), full.state).code)

    def test_equal_hosts_are_counted_each(self):
        fleet, flavors = fleets.a_fleet(random.Random(5), 1)
        many = dataclasses.replace(fleet, hosts=tuple(
            dataclasses.replace(fleet.hosts[0], name=f'n{number}')
            for number in range(5)))
        for one, five in zip(count.count(fleet, flavors),
                             count.count(many, flavors), strict=True):
            self.assertEqual((5 * one.total, 5 * one.by_sums),
                             (five.total, five.by_sums))

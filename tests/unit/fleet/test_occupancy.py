# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import unittest

from hpcvirt import exception
from hpcvirt.fit import admission
from hpcvirt.fit import reasons
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.fleet import occupancy
from hpcvirt.fleet import state
from tests.builders import fleets
from tests.builders import hosts
from tests.builders import set_hosts

WITH_VFS = profiles.Profile(
    shared_cores_per_cell=0, smallest_cores=1, devices=(hosts.VFS,))


class OccupancyTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.host = hosts.build(cells=2, cores=4, mib=4096, vfs={1: 2})
        self.flavor = fleets.flavor(2, 1024)

    def fleet(self, *instances):
        document, _ = fleets.plan_of([self.host], WITH_VFS)
        return fleets.fleet_of([self.host], document, instances)

    def instance(self, name='a', cells=(0,), cpus=(0, 1), pages_kib=2048,
                 devices=()):
        return state.Instance(
            name, f'instances[{name}]', 'host',
            compiled_flavor.make(self.flavor),
            fleets.hold(cells, cpus, pages_kib), devices)

    def broken(self, *instances):
        fleet = self.fleet(*instances)
        self.assertEqual((), fleet.hosts)
        return fleet.broken['host']

    def test_a_host_has_left_what_the_claims_of_its_instances_left(self):
        dice = random.Random(7)
        taken = 0
        for _ in range(20):
            machines = fleets.machines(dice, 1)
            document, flavors = fleets.plan_of(machines)
            (host,) = fleets.fleet_of(machines, document).hosts
            left = host.state
            instances = []
            for number in range(6):
                flavor = dice.choice(flavors)
                guest = compiled_flavor.make(flavor)
                placed = admission.predict(guest, left)
                if isinstance(placed, reasons.Misfit):
                    continue
                instances.append(fleets.an_instance(
                    f'i{number}', flavor, state.FleetHost(host.name, left),
                    placed))
                left = admission.take(guest, left, placed)
                (host,) = fleets.fleet_of(machines, document,
                                          instances).hosts
                self.assertEqual(left, host.state)
                taken += 1
        self.assertGreater(taken, 30)

    def test_devices_are_taken_by_the_bus_of_their_address(self):
        (device,) = self.host.devices
        bus = device.address.rpartition(':')[0]
        for taken, free in ((), [2]), ((f'{bus}:02.1',), [1]), (
                (f'{bus}:02.1', f'{bus}:02.2'), [0]):
            (host,) = self.fleet(self.instance(devices=taken)).hosts
            self.assertEqual(free, [pool.free for pool
                                    in host.state.supply.pools])

    def test_more_devices_than_there_are_break_the_record(self):
        (device,) = self.host.devices
        bus = device.address.rpartition(':')[0]
        self.assertIn('have all functions', self.broken(self.instance(
            devices=tuple(f'{bus}:02.{n}' for n in range(3)))))

    def test_a_contradiction_breaks_the_record_and_names_the_instance(self):
        for instance, message in (
                (self.instance(cells=(7,)), 'cell 7, which the host does'),
                (self.instance(cpus=(0,)), '1 dedicated CPU of cell 0, wh'),
                (self.instance(cpus=(0, 1, 99)), 'CPU 99, which is not a'),
                (self.instance(cells=(1,)), '0 dedicated CPUs of cell 1'),
                (self.instance(pages_kib=77), 'pages of 77 KiB, but cell'),
                (self.instance(pages_kib=1 << 20), '1 pages of 1048576 KiB')):
            reason = self.broken(instance)
            self.assertIn(message, reason)
            self.assertTrue(reason.startswith('instances[a]: a '), reason)

    def test_no_cpu_belongs_to_two_instances(self):
        self.assertIn('b has CPU 1, and so has a', self.broken(
            self.instance('a'), self.instance('b', cpus=(1, 2))))


    def test_no_virtual_function_belongs_to_two_instances(self):
        (device,) = self.host.devices
        function = device.address.rpartition(':')[0] + ':02.A'
        self.assertIn(
            f'b has the device {function.lower()}, and so has a',
            self.broken(
                self.instance('a', devices=(function,)),
                self.instance('b', cpus=(2, 3), devices=(function.lower(),))))

    def test_isolated_emulator_threads_have_a_cpu(self):
        self.flavor = fleets.flavor(2, 1024, {
            'hw:emulator_threads_policy': 'isolate'})
        self.assertIn('2 dedicated CPUs of cell 0, where its guest cell has 2 '
                      'dedicated vCPUs and isolated emulator threads',
                      self.broken(self.instance()))
        self.assertEqual({}, self.fleet(
            self.instance(cpus=(0, 1, 2))).broken)


class SetsTest(unittest.TestCase):
    def test_an_instance_whose_devices_are_unknown_has_a_set(self):
        host = set_hosts.with_instances('h', (
            set_hosts.FLAVORS[0], 'gpu1'))
        one = state.Instance(
            'a', '', 'h', set_hosts.GUESTS[set_hosts.FLAVORS[3].name],
            fleets.hold((0,), (5, 6)))
        left, (found,) = occupancy.charge(host.state, [one], [
            pool.provider for pool in host.state.supply.pools])
        self.assertEqual(['gpu4', 'gpu5', 'gpu6', 'gpu7'],
                         set_hosts.held(found, host))
        with self.assertRaisesRegex(exception.InvalidInput, 'too few left'):
            occupancy.charge(left, [dataclasses.replace(
                one, holding=fleets.hold((0,), (3, 4)))], [])

    def test_devices_are_found_in_the_pools_that_nova_reports(self):
        host = set_hosts.with_instances('h', (
            set_hosts.FLAVORS[1], 'gpu2', 'gpu3'))
        (one,) = host.instances
        reported = [pool._replace(tags={**pool.tags, 'address': pool.provider})
                    for pool in host.state.supply.pools]
        unknown = dataclasses.replace(
            one, devices=('gpu2', 'gpu3'), holding=dataclasses.replace(
                one.holding, devices=()))
        self.assertEqual(one.holding, occupancy.find_devices(
            unknown, reported).holding)
        for pools in (host.state.supply.pools,
                      # A card and its virtual functions.
                      [*reported, *reported], reported[4:]):
            self.assertEqual(unknown, occupancy.find_devices(unknown, pools))


class EmptyHostTest(unittest.TestCase):
    def test_an_empty_host_is_as_the_plan_supposes(self):
        for host, profile in (
                *((host, profile) for host in hosts.shipped()
                  for profile in profiles.BUILT_IN.values()),
                (hosts.build(vfs={0: 4, 1: 8}), WITH_VFS)):
            document, _ = fleets.plan_of([host], profile)
            fleet = fleets.fleet_of([host], document)
            (planned,) = planner.plan([host], profile).hosts
            self.assertEqual({}, fleet.broken)
            self.assertEqual(planned.state, fleet.hosts[0].state)

    def test_a_host_that_is_not_that_of_the_plan_is_broken(self):
        document, _ = fleets.plan_of([hosts.build(cells=4, name='h')])
        fleet = fleets.fleet_of([hosts.build(cells=2, name='h')], document)
        self.assertEqual((), fleet.hosts)
        self.assertIn('has no CPU 32-63', fleet.broken['h'])

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import device_choice
from hpcvirt.fleet import count
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.fleet import verdict
from hpcvirt.model import flavor as flavor_model
from tests.builders import fleets
from tests.builders import hosts

GPU = {'vendor_id': '10de', 'product_id': '20b0'}
KINDS = {
    'vf': device_choice.Devices(vendor_id='15b3', product_id='101e',
                                per_instance=2, vfs_per_device=5),
    'whole': device_choice.Devices(device_choice.DeviceKind.WHOLE,
                                   alias='gpu', **GPU),
    'vgpu': device_choice.Devices(
        device_choice.DeviceKind.VGPU, 2, mdev_type='nvidia-474',
        vgpus_per_device=5, resource_class='CUSTOM_VGPU_10C', **GPU),
}


def planned(kind):
    """Plan a host with two cards of each kind of device."""
    host = hosts.build(vfs={0: 64, 1: 64}, gpus={0: 1, 1: 1}, gpu_vfs=0)
    return host, *fleets.plan_of([host], dataclasses.replace(
        fleets.SMALL, devices=(KINDS[kind],)))


def fleet_of(host, document, *instances):
    return fleets.fleet_of([host], document, instances)


def an_instance(flavor, *devices):
    guest = compiled_flavor.make(flavor)
    return state.Instance(
        'a', 'here', 'host', guest,
        fleets.hold((0,), range(guest.sums.pcpus)), devices)


class GivenToGuestsTest(unittest.TestCase):
    def test_an_empty_host_takes_what_its_plan_says(self):
        for kind in KINDS:
            host, document, flavors = planned(kind)
            found = count.count(fleet_of(host, document), flavors)
            self.assertEqual(
                {item['name']: item['per_host']
                 for item in document['flavors']},
                {item.flavor.name: dict(item.per_host) for item in found},
                kind)
            self.assertIn(4 if kind != 'whole' else 2,
                          [item.total for item in found], kind)

    def test_an_instance_has_devices_of_its_flavor_wherever_they_are(self):
        for kind, address in (('vf', '0000:41:00.3'), ('whole', None),
                              ('vgpu', '0001:00:00.0')):
            host, document, flavors = planned(kind)
            flavor = min(flavors, key=lambda flavor: flavor.vcpus)
            (before,) = fleet_of(host, document).hosts
            wanted = sum(request.count for request
                         in compiled_flavor.make(flavor).demand.requests)
            functions = [address] * wanted
            if kind == 'vf':
                functions = [f'{address[:-1]}{number}'
                             for number in range(wanted)]
            for devices in ((), tuple(functions)):
                if None in devices:
                    continue
                fleet = fleet_of(host, document, an_instance(flavor, *devices))
                self.assertEqual({}, fleet.broken)
                # Each card gets back what is its own.
                left = moving.leave(fleet.hosts[0].instances[0],
                                    fleet.hosts[0])
                self.assertEqual(
                    *(sorted(pools, key=str) for pools in (
                        before.state.supply.pools,
                        left.state.supply.pools)))
                free, first = ([pool.free for pool in each.supply.pools]
                               for each in (before.state,
                                            fleet.hosts[0].state))
                self.assertEqual(sum(free), sum(first) + wanted, kind)

    def test_vgpus_of_an_instance_are_of_one_card(self):
        host, document, (flavor, *_) = planned('vgpu')
        three = dataclasses.replace(flavor, extra_specs={
            **flavor.extra_specs, 'resources:CUSTOM_VGPU_10C': '3'})
        six = dataclasses.replace(flavor, extra_specs={
            **flavor.extra_specs, 'resources:CUSTOM_VGPU_10C': '6'})
        fleet = fleet_of(host, document)
        for wanted, total in ((three, 2), (six, 0)):
            (item,) = count.count(fleet, [wanted])
            self.assertEqual((total, total), (item.total, item.by_sums))
        (refused,) = verdict.judge(compiled_flavor.make(six), fleet)
        self.assertEqual(
            ('placement', 'the host has 5 CUSTOM_VGPU_10C free, 6 needed'),
            (refused.step, refused.reason))

    def test_a_host_without_devices_takes_no_guest_that_wants_some(self):
        host, document, _ = planned('vf')
        plain = flavor_model.Flavor('x', 1, 512, 0, {
            'hw:cpu_policy': 'dedicated', 'resources:VGPU': '1'})
        (item,) = count.count(fleet_of(host, document), [plain])
        self.assertEqual((0, 0), (item.total, item.by_sums))

    def test_a_plan_without_the_number_of_vgpus_is_asked_for_again(self):
        host, document, _ = planned('vgpu')
        del document['host_config']['host']['device_counts']
        self.assertIn('does not say how many vGPUs 0001:00:00.0 gives',
                      fleet_of(host, document).broken['host'])

    def test_devices_that_the_plan_does_not_give_do_not_matter(self):
        host, document, _ = planned('whole')
        flavor = fleets.flavor(1, 512, {'pci_passthrough:alias': 'other:1'})
        (empty,) = fleet_of(host, document).hosts
        for devices in ((), ('0000:fe:00.1',)):
            (used,) = fleet_of(host, document,
                               an_instance(flavor, *devices)).hosts
            self.assertEqual(empty.state.supply.pools, used.state.supply.pools)

    def test_more_devices_than_the_host_has_break_the_record(self):
        host, document, (flavor, *_) = planned('vgpu')
        six = dataclasses.replace(flavor, extra_specs={
            **flavor.extra_specs, 'resources:CUSTOM_VGPU_10C': '6'})
        self.assertIn('a has a flavor with 6 CUSTOM_VGPU_10C, but the '
                      'host has too few left', fleet_of(
                          host, document, an_instance(six)).broken['host'])

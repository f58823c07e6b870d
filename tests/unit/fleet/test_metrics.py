# SPDX-License-Identifier: Apache-2.0

"""What the metrics say about a fleet."""

import dataclasses
import itertools
import random
import unittest

from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import count
from hpcvirt.fleet import free_resources
from hpcvirt.fleet import metrics
from hpcvirt.fleet import state
from hpcvirt.fleet import verdict
from tests.builders import fleets


def families(fleet, flavors):
    return {family.name: family for family in metrics.families(
        fleet, count.count(fleet, flavors))}


class FamiliesTest(unittest.TestCase):

    def test_an_empty_fleet_is_the_fleet_without_instances(self):
        checked = 0
        for seed in range(20):
            made = fleets.a_fleet(random.Random(seed), 3)
            if made is None:
                continue
            fleet, flavors = made
            machines = fleets.machines(random.Random(seed), 3)
            empty = fleets.fleet_of(machines, fleets.plan_of(machines)[0])
            found = families(fleet, flavors)
            self.assertEqual(
                {(item.flavor.name, 'True'): item.total
                 for item in count.count(empty, flavors)},
                found['hpcvirt_capacity_if_empty'].samples)
            checked += any(host.instances for host in fleet.hosts)
        self.assertGreater(checked, 5)

    def test_devices_of_instances_that_are_unknown_count_nowhere(self):
        fleet, _ = fleets.with_devices()
        flavors = [fleet.hosts[0].instances[0].flavor, dataclasses.replace(
            fleet.hosts[0].instances[0].flavor, name='plain', extra_specs={
                'hw:cpu_policy': 'dedicated'})]
        for known, expected in ((True, {'vf': 2, 'plain': 3}),
                                (False, {'plain': 3})):
            if not known:
                first, *others = fleet.hosts
                fleet = dataclasses.replace(fleet, hosts=(dataclasses.replace(
                    first, instances=tuple(dataclasses.replace(
                        item, holding=dataclasses.replace(
                            item.holding, devices=()))
                        for item in first.instances)), *others))
            found = families(fleet, flavors)['hpcvirt_capacity_if_empty']
            self.assertEqual(expected, {
                name: value for (name, _), value in found.samples.items()})

    def test_hypervisors_have_their_zone_and_their_project_aggregate(self):
        fleet, flavors = fleets.a_fleet(random.Random(9), 2)
        fleet = dataclasses.replace(fleet, hosts=tuple(
            dataclasses.replace(host, zone=f'az-{host.name}',
                                project_aggregate='of bio')
            for host in fleet.hosts))
        seen = 0
        for family in families(fleet, flavors).values():
            if 'hypervisor' in family.labels and (
                    family.name != 'hpcvirt_hypervisor_broken'):
                for sample in family.samples:
                    labels = dict(zip(family.labels, sample, strict=True))
                    self.assertEqual(
                        (f'az-{labels["hypervisor"]}', 'of bio'),
                        (labels['az_aggregate'], labels['project_aggregate']))
                    seen += 1
        self.assertGreater(seen, 20)

    def test_the_instances_of_a_project_are_added_up(self):
        fleet, flavors = fleets.a_fleet(random.Random(9), 8)
        owners = itertools.cycle(('bio', 'chem', None))
        hosts = tuple(dataclasses.replace(host, instances=tuple(
            dataclasses.replace(item, project=next(owners))
            for item in host.instances)) for host in fleet.hosts)
        found = families(state.Fleet(hosts, {}), flavors)
        for project in ('bio', 'chem'):
            own = [item for host in hosts for item in host.instances
                   if item.project == project]
            self.assertTrue(own)
            self.assertEqual(
                (len(own), sum(item.flavor.vcpus for item in own)),
                (found['hpcvirt_project_instances'].samples[project,],
                 found['hpcvirt_project_pcpus'].samples[project,]))
        self.assertEqual(2, len(found['hpcvirt_project_pcpus'].samples))


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
            for each in verdict.judge(compiled_flavor.make(flavor),
                                      self.fleet):
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
        rooms = free_resources.describe_hosts(self.fleet, self.found)
        places = {host.name: (host.name, host.zone, host.project_aggregate)
                  for host in self.fleet.hosts}
        for host, room in rooms.items():
            place = places[host]
            self.assertEqual(
                (*dataclasses.astuple(room.pcpus), room.cells.total,
                 room.cells.free, room.sockets.free, room.hosts.free),
                tuple(self.samples[f'hpcvirt_hypervisor_{name}'][place]
                      for name in ('pcpus', 'pcpus_free', 'pcpus_stranded',
                                   'cells', 'cells_free', 'sockets_free',
                                   'empty')))
            for size, amount in room.pages.items():
                self.assertEqual(dataclasses.astuple(amount), tuple(
                    self.samples[f'hpcvirt_hypervisor_pages{part}'][
                        *place, str(size)] for part in (
                            '', '_free', '_stranded')))
        self.assertEqual({**{(host,): 0 for host in rooms}, ('h9',): 1},
                         self.samples['hpcvirt_hypervisor_broken'])

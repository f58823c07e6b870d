# SPDX-License-Identifier: Apache-2.0

"""What strategies are worth on fleets of the machines in ``etc``."""

import pathlib
import unittest

from hpcvirt.flavors import device_choice
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import shape
from hpcvirt.simulate import mapping
from hpcvirt.simulate import replay
from hpcvirt.simulate import requests as requestss
from hpcvirt.simulate import strategy
from hpcvirt.simulate import synthetic
from hpcvirt.simulate import totals
from hpcvirt.topology import collection

TOPOLOGIES = pathlib.Path(__file__).parents[3] / 'etc/hpcvirt/topologies'


class Scene:
    """Equal hosts, and random requests for the flavors planned for them."""

    def __init__(self, kind, count, load=0.8, jobs=1500, **profile):
        host = collection.read_source(str(TOPOLOGIES / f'{kind}.json'))
        plans = [planner.plan([host], profiles.Profile(**profile))]
        if 'devices' in profile:
            # Every second host has no devices; half of the guests need none.
            plans.append(planner.plan([host], profiles.Profile()))
        states = [plan.hosts[0].state for plan in plans]
        self.fleet = [states[number % len(states)]
                      for number in range(count)]
        flavors = [item.flavor for plan in plans for item in plan.flavors
                   if len(item.guest.cells) == 1 or not item.guest.devices]
        requests = mapping.map_jobs(
            synthetic.Model(jobs).workload(5, flavors), flavors)
        cpus = sum(host.free.pcpus for host in self.fleet)
        self.requests = requestss.scale_to_load(requests, cpus, load)

    def lost(self, name):
        """Return the percent of the core-hours that are lost."""
        return self.totals(name)['lost_percent']

    def totals(self, name, moves=0):
        outcome = replay.replay(strategy.parse(name, moves)[0], self.fleet,
                                self.requests)
        return totals.count_totals([totals.Replay(self.requests, outcome)])


class StrategiesTest(unittest.TestCase):
    def test_less_than_half_is_lost_of_what_upstream_loses(self):
        for kind, count in (('hs06-2s-16c', 24), ('opteron-4s-12c', 14)):
            with self.subTest(kind=kind):
                scene = Scene(kind, count)
                self.assertLess(scene.lost('hpcvirt'), scene.lost('nova') / 2)

    def test_periodic_less_is_lost_where_flavors_are_small(self):
        scene = Scene('epyc-2s-64c-nps4', 10, smallest_cores=2)
        for fullest in ('', '+fullest'):
            with self.subTest(fullest=fullest):
                self.assertLess(scene.lost(f'hpcvirt{fullest}'),
                                0.9 * scene.lost(f'packing{fullest}'))

    def test_less_is_lost_than_by_packing_where_devices_are_few(self):
        scene = Scene('intel-2s-16c-smt', 20, devices=(device_choice.Devices(
            affinity=shape.PCIAffinity.REQUIRED),))
        self.assertLess(scene.lost('hpcvirt'), 0.9 * scene.lost('packing'))

    def test_moves_recover_most_of_what_fragmentation_costs(self):
        scene = Scene('xeon-2s-24c-snc2-1g', 14, 0.9, 500)
        none = scene.totals('hpcvirt')
        one, two = (scene.totals('hpcvirt+moves', moves) for moves in (1, 2))
        self.assertLess(one['lost_percent'], none['lost_percent'])
        fragmented, left = (found['core_hours']['lost_to_fragmentation']
                            for found in (none, two))
        self.assertLess(left, fragmented / 2)

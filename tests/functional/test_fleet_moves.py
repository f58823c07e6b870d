# SPDX-License-Identifier: Apache-2.0

"""Carry out the moves of make-room on hosts that claim as Nova does."""

import random
import unittest

from hpcvirt.flavors import plan_document
from hpcvirt.fleet import assemble
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import make_room
from hpcvirt.fleet import verdict
from tests.builders import fleets
from tests.functional import planned_nova
from tests.functional import test_fleet_capacity

SEED = 20261123


class FleetMovesTest(unittest.TestCase):
    def test_nova_claims_each_move_and_then_the_guest_as_planned(self):
        dice = random.Random(SEED)
        counts = []
        for _ in range(25):
            document, fleet, flavors, nova, running = self.a_fleet(dice)
            before = {name: host.topology for name, host in nova.items()}
            for flavor in flavors:
                for name, host in nova.items():
                    host.topology = before[name]
                shown = next(item for item in document['flavors']
                             if item['name'] == flavor.name)
                self.assert_carried_out(fleet, flavor, shown, nova,
                                        dict(running), counts)
        self.assertGreater(counts.count(1), 3)

    def a_fleet(self, dice):
        """Let instances come and go on three hosts."""
        machines = fleets.machines(dice, 3)
        document, flavors = fleets.plan_of(machines)
        nova = {host.name: planned_nova.ComputeHost(
            host, document['host_config'][host.name]) for host in machines}
        running = {}
        for number in range(dice.randrange(10, 40)):
            flavor = dice.choice(document['flavors'])
            name = dice.choice(list(nova))
            placed = nova[name].place(flavor)
            if placed is not None:
                running[f'i{number}'] = name, flavor, placed
            elif running and dice.random() < 0.5:
                gone = running.pop(dice.choice(list(running)))
                nova[gone[0]].delete(gone[2])
        instances = fleets.read_instances(
            test_fleet_capacity.record(name, *each)
            for name, each in running.items())
        return document, assemble.fleet(
            {host.name: host for host in machines},
            plan_document.load(document, 'plan').host_config,
            instances), flavors, nova, running

    def assert_carried_out(self, fleet, flavor, shown, nova, running, counts):
        guest = guests.compile_flavor(flavor)
        taking = [item.name for item in verdict.judge(guest, fleet)
                  if item.fits]
        for name, host in nova.items():
            empty = host.topology
            self.assertEqual(name in taking, host.claim(shown))
            host.topology = empty
        plan = make_room.search(guest, fleet.hosts, 1)
        if plan is None:
            return
        counts.append(len(plan.moves))
        for move in plan.moves:
            source, moving, resident = running[move.id]
            self.assertEqual(source, move.source)
            placed = nova[move.target].place(moving)
            self.assertEqual(list(move.cells),
                             [cell.id for cell in placed.cells])
            nova[source].delete(resident)
        placed = nova[plan.host].place(shown)
        self.assertEqual(list(plan.cells), [cell.id for cell in placed.cells])

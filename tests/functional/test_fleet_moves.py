# SPDX-License-Identifier: Apache-2.0

"""Carry out the moves of make-room on hosts that claim as Nova does."""

import random
import unittest

from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import make_room
from hpcvirt.fleet import verdict
from tests.builders import fleets
from tests.functional import planned_nova

SEED = 20261123


class FleetMovesTest(unittest.TestCase):
    def test_nova_claims_each_move_and_then_the_guest_as_planned(self):
        dice = random.Random(SEED)
        counts = []
        for _ in range(25):
            machines = fleets.machines(dice, 3)
            document, flavors = fleets.plan_of(machines)
            nova = planned_nova.compute_hosts(machines, document)
            planned_nova.come_and_go(dice, nova, document['flavors'],
                                     dice.randrange(10, 40), leaving=0.5)
            fleet = planned_nova.read_fleet(machines, document, nova)
            before = {name: host.snapshot() for name, host in nova.items()}
            for flavor in flavors:
                for name, host in nova.items():
                    host.restore(before[name])
                shown = next(item for item in document['flavors']
                             if item['name'] == flavor.name)
                self.assert_carried_out(fleet, flavor, shown, nova, counts)
        self.assertGreater(counts.count(1), 3)

    def assert_carried_out(self, fleet, flavor, shown, nova, counts):
        guest = guests.compile_flavor(flavor)
        taking = [item.name for item in verdict.judge(guest, fleet)
                  if item.fits]
        for name, host in nova.items():
            self.assertEqual(name in taking, host.would_take(shown))
        plan = make_room.search(guest, fleet.hosts, 1)
        if plan is None:
            return
        counts.append(len(plan.moves))
        for move in plan.moves:
            moving = nova[move.source].running[move.id].flavor
            claimed = nova[move.target].take(moving)
            self.assertEqual(list(move.cells), claimed.cells)
            nova[move.source].stop(move.id)
        self.assertEqual(list(plan.cells), nova[plan.host].take(shown).cells)

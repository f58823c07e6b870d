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


import random
import unittest

from hpcvirt.fleet import admission
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import make_room
from hpcvirt.fleet import standing
from tests import fleets


class StandingTest(unittest.TestCase):

    def test_all_kinds_fit_at_once_after_the_moves(self):
        dice = random.Random(3)
        moves = several = 0
        for _ in range(25):
            fleet, flavors = fleets.a_fleet(dice, 3)
            wanted = [standing.Wanted(flavor, dice.choice((1, 1, 2)))
                      for flavor in dice.sample(flavors, min(
                          3, len(flavors)))]
            found = standing.search(wanted, fleet.hosts, 1)
            self.assertEqual(
                sorted((one.flavor.vcpus for one in wanted), reverse=True),
                [kept.wanted.flavor.vcpus for kept in found])
            self.assertEqual(found[0].plan, make_room.search(
                guests.of_flavor(found[0].wanted.flavor), fleet.hosts, 1,
                found[0].wanted.count))
            hosts = {host.name: host for host in fleet.hosts}
            fits = [kept for kept in found if kept.plan]
            several += len(fits) > 1
            for kept in fits:
                moves += len(kept.plan.moves)
                self.carry_out(kept, hosts)
        self.assertGreater(moves, 2)
        self.assertGreater(several, 5)

    def carry_out(self, kept, hosts):
        """Make the moves and claim the places, on hosts built anew."""
        for move in kept.plan.moves:
            source, target = hosts[move.source], hosts[move.target]
            (instance,) = (item for item in source.instances
                           if item.id == move.id)
            placed = admission.admit(instance.guest, target.state, False)
            self.assertEqual(move.cells, placed.cells)
            hosts[move.target] = fleets.rebuilt(target, (
                *target.instances, fleets.an_instance(
                    move.id, instance.flavor, target, placed)))
            hosts[move.source] = fleets.rebuilt(source, tuple(
                item for item in source.instances if item is not instance))
        flavor = kept.wanted.flavor
        self.assertEqual(kept.wanted.count, len(kept.plan.places))
        for name, cells in kept.plan.places:
            host = hosts[name]
            placed = admission.admit(guests.of_flavor(flavor), host.state,
                                     False)
            self.assertEqual(cells, placed.cells)
            hosts[name] = fleets.rebuilt(host, (
                *host.instances, fleets.an_instance(
                    f'new{len(host.instances)}', flavor, host, placed)))

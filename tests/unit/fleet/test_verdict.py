# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import unittest

from hpcvirt.fit import claim
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import verdict
from tests.builders import fleets


class VerdictTest(unittest.TestCase):
    def test_each_host_has_the_verdict_of_placement_and_claim(self):
        dice = random.Random(21)
        steps = set()
        for _ in range(25):
            fleet, flavors = fleets.a_fleet(dice, 4)
            for flavor in flavors:
                guest = compiled_flavor.make(flavor)
                for host, found in zip(
                        fleet.hosts, verdict.judge(guest, fleet), strict=True):
                    self.assertEqual(host.name, found.name)
                    steps.add(found.step)
                    short = any(need > free for need, free in zip(
                        guest.sums, host.state.free, strict=True))
                    placed = claim.predict(guest.demand, host.state.supply)
                    self.assertEqual(
                        short, found.step == verdict.SchedulingStep.PLACEMENT)
                    if not short and isinstance(placed, reasons.Misfit):
                        self.assertEqual(
                            (verdict.SchedulingStep.FILTER, placed.code,
                             str(placed)),
                            (found.step, found.code, found.reason))
                    elif not short:
                        self.assertEqual((True, placed.cells),
                                         (found.fits, found.cells))
        self.assertEqual({None, verdict.SchedulingStep.PLACEMENT,
                          verdict.SchedulingStep.FILTER},
                         steps)

    def test_a_defect_of_the_claim_is_a_step_of_its_own(self):
        fleet, _ = fleets.a_fleet(random.Random(1), 1)
        (host,) = fleet.hosts
        flavor = fleets.flavor(3, 192, {
            'hw:numa_nodes': '2',
            'hw:numa_cpus.0': '0', 'hw:numa_cpus.1': '1,2',
            'hw:numa_mem.0': '64', 'hw:numa_mem.1': '128'})
        steps = set()
        for free in ((1, 2), (2, 1), (2, 1, 1), (1, 2, 1)):
            cells = (
                host.state.supply.cells[0]._replace(
                    id=number, dedicated=frozenset(range(8)),
                    free=frozenset(range(count)),
                    siblings=tuple(frozenset([cpu]) for cpu in range(8)))
                for number, count in enumerate(free))
            odd = fleets.changed(
                host, cells, free=guests.Resources(8, 8, 1 << 20))
            (found,) = verdict.judge(
                compiled_flavor.make(flavor),
                dataclasses.replace(fleet, hosts=(odd,)))
            steps.add(found.step)
            if found.step is verdict.SchedulingStep.CLAIM:
                self.assertIn("Nova's defect A", found.reason)
        self.assertIn(verdict.SchedulingStep.CLAIM, steps)

    def test_a_broken_record_has_the_reason(self):
        fleet, flavors = fleets.a_fleet(random.Random(1), 1)
        fleet = dataclasses.replace(fleet, broken={'h7': 'f: bad'})
        found = verdict.judge(compiled_flavor.make(flavors[0]), fleet)
        self.assertEqual(('h7', False, 'record', 'f: bad'), (
            found[-1].name, found[-1].fits, found[-1].step,
            found[-1].reason))

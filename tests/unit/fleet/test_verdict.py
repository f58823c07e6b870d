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

import dataclasses
import random
import unittest

from hpcvirt.fit import claim
from hpcvirt.fit import reasons
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import explain_report
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state
from hpcvirt.fleet import verdict
from tests import fleets


class VerdictTest(unittest.TestCase):

    def test_each_host_has_the_verdict_of_placement_and_claim(self):
        dice = random.Random(21)
        steps = set()
        for _ in range(25):
            fleet, flavors = fleets.a_fleet(dice, 4)
            for flavor in flavors:
                guest = guests.of_flavor(flavor)
                for host, found in zip(
                        fleet.hosts, verdict.judge(guest, fleet),
                        strict=True):
                    self.assertEqual(host.name, found.name)
                    steps.add(found.step)
                    short = any(need > free for need, free in zip(
                        guest.sums, host.state.free, strict=True))
                    placed = claim.predict(guest.demand, host.state.supply)
                    self.assertEqual(short,
                                     found.step == verdict.Step.PLACEMENT)
                    if not short and isinstance(placed, reasons.Misfit):
                        self.assertEqual(
                            (verdict.Step.FILTER, placed.code, str(placed)),
                            (found.step, found.code, found.reason))
                    elif not short:
                        self.assertEqual((True, placed.cells),
                                         (found.fits, found.cells))
        self.assertEqual({None, verdict.Step.PLACEMENT, verdict.Step.FILTER},
                         steps)

    def test_a_defect_of_the_claim_is_a_step_of_its_own(self):
        fleet, _ = fleets.a_fleet(random.Random(1), 1)
        (host,) = fleet.hosts
        flavor = catalogue.Flavor('x', 3, 192, 0, {
            'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2',
            'hw:numa_cpus.0': '0', 'hw:numa_cpus.1': '1,2',
            'hw:numa_mem.0': '64', 'hw:numa_mem.1': '128',
            'hw:mem_page_size': '2048'})
        steps = set()
        for free in ((1, 2), (2, 1), (2, 1, 1), (1, 2, 1)):
            cells = tuple(
                host.state.supply.cells[0]._replace(
                    id=number, dedicated=frozenset(range(8)),
                    free=frozenset(range(count)),
                    siblings=tuple(frozenset([cpu]) for cpu in range(8)))
                for number, count in enumerate(free))
            odd = dataclasses.replace(host, state=state.State(
                dataclasses.replace(host.state.supply, cells=cells),
                guests.Sums(8, 8, 1 << 20)))
            (found,) = verdict.judge(
                guests.of_flavor(flavor),
                dataclasses.replace(fleet, hosts=(odd,)))
            steps.add(found.step)
            if found.step is verdict.Step.CLAIM:
                self.assertIn("Nova's defect A", found.reason)
        self.assertIn(verdict.Step.CLAIM, steps)

    def test_a_broken_record_has_the_reason(self):
        fleet, flavors = fleets.a_fleet(random.Random(1), 1)
        fleet = dataclasses.replace(fleet, broken={'h7': 'f: bad'})
        found = verdict.judge(guests.of_flavor(flavors[0]), fleet)
        self.assertEqual(('h7', False, 'record', 'f: bad'), (
            found[-1].name, found[-1].fits, found[-1].step,
            found[-1].reason))


class ReportTest(unittest.TestCase):

    def test_hosts_that_fail_alike_share_a_line(self):
        found = [verdict.Verdict(
            f'n{number}', verdict.Step.FILTER, reasons.Code.NO_CELL,
            reasons.Code.FREE_PCPUS, f'reason {number}')
            for number in range(400)]
        found.append(verdict.Verdict('m', None, cells=(3, 1)))
        text = explain_report.text('x', found, (), 80)
        self.assertIn('x fits on 1 of 401 hosts.', text)
        self.assertRegex(text, r'\n +1  m +- +it fits on cells 3, 1\n'
                         r' +400  400 hosts \(n0, n1, \.\.\.\)  filter +'
                         r'for example n0: reason 0\n')
        self.assertLess(len(text.splitlines()), 9)
        document = explain_report.document(found, ())
        self.assertEqual((True, 401), (document['fits'],
                                       len(document['hosts'])))

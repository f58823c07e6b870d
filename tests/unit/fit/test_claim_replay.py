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

"""The claim, replayed: against its algorithm without any shortcut."""

import itertools
import random
import unittest

from hpcvirt.fit import affinity_check
from hpcvirt.fit import claim
from hpcvirt.fit import claim_replay
from hpcvirt.fit import devices
from hpcvirt.fit import order
from hpcvirt.fit import placement
from hpcvirt.model import shape
from tests import cases
from tests import oracle
from tests.unit.fit import builders


def claimed(case, mapping):
    """What ``numa_fit_instance_to_host`` returns, attempt by attempt.

    For guests with dedicated CPUs and without isolated emulator threads or
    page sizes by class, whose cells the claim either fits or does not.

    :returns: for each guest cell its host cell; None if it is refused
    """
    numbers = list(range(len(case.guest)))
    results = {}
    for arrangement in itertools.permutations(oracle.in_order(case),
                                              len(case.guest)):
        for guest, cell in enumerate(arrangement):
            pair = cell.id, numbers[guest]
            if pair not in results:
                results[pair] = oracle.fits(case, guest, cell)
            if not results[pair]:
                break
            numbers[guest] = cell.id
        else:
            chosen = {cell.id for cell in arrangement}
            if (oracle.networks_near(case, chosen) and
                    oracle.devices_near(case, mapping, chosen)):
                return tuple(cell.id for cell in arrangement)
    return None


class AgainstAlgorithmTest(unittest.TestCase):

    def test_attempts_that_are_skipped_do_not_change_the_outcome(self):
        refused = accepted = unsound = 0
        for seed in range(4000):
            case = cases.a_case(random.Random(f'replay {seed}'))
            if (case.policy != 'dedicated' or case.isolated_emulator or
                    (case.page_kib or 0) < 0 or
                    len(case.guest) > len(case.host) or
                    not all(cell.siblings for cell in case.host)):
                continue
            mapping = case.mappings[0]
            demand, supply = cases.demand(case), cases.supply(case)
            ordered = order.claim_order(demand, supply, case.packing)
            outcome = claim_replay.replay(
                demand, supply, ordered, affinity_check.AffinityCheck(
                    demand, supply, cases.providers(case, mapping)))
            ranks = outcome.ranks
            with self.subTest(seed=seed, case=case):
                self.assertFalse(outcome.given_up)
                self.assertEqual(
                    claimed(case, mapping), ranks and tuple(
                        ordered[rank].id for rank in ranks))
            refused += ranks is None
            accepted += outcome.sound
            unsound += ranks is not None and not outcome.sound
        self.assertGreater(min(refused, accepted), 100)
        self.assertGreater(unsound, 0)


class ReplayTest(unittest.TestCase):

    def test_attempts_that_can_only_end_alike_are_skipped(self):
        # There are 16 * 15 * 14 * 13 arrangements; each failure of a small
        # cell is examined only once.
        guest = builders.guest(8, 8, 8, 1)
        supply = builders.host(*[4] * 12, 0, 0, 0, 0)
        self.assertIsInstance(claim.predict(guest, supply, packing=True),
                              placement.Placement)

    def test_pins_that_a_late_refusal_leaves_behind_do_no_harm(self):
        # A mixed guest cell is pinned on cell 0 before its shared vCPUs are
        # refused there; its placement on cell 1 is sound nevertheless.
        cells = tuple(builders.host_cell(
            number, shared=frozenset({60 + number}), cpu_usage=usage)
            for number, usage in enumerate((1, 0, 0)))
        guest = type(builders.guest())(tuple(
            builders.guest_cell(pcpus, policy=shape.CPUPolicy.MIXED, vcpus=1)
            for pcpus in (2, 1)))
        predicted = claim.predict(guest, type(builders.host())(cells))
        self.assertEqual((1, 2), predicted.cells)

    def test_the_providers_of_an_allocation_candidate_decide(self):
        pools = (devices.pool(0, 1, 'gpu')._replace(provider='x'),
                 devices.pool(1, 1, 'gpu')._replace(provider='y'))
        guest = builders.guest(4, requests=(builders.request(),))
        supply = builders.host(0, 0, pools=pools)
        for provider, cell in (('x', 0), ('y', 1)):
            predicted = claim.predict(guest, supply,
                                      providers=((provider,),))
            self.assertEqual((cell,), predicted.cells)

    def test_arrangements_are_counted_as_nova_takes_them(self):
        for host_cells, guest_cells in ((1, 1), (4, 1), (5, 3), (6, 4)):
            for number, ranks in enumerate(itertools.permutations(
                    range(host_cells), guest_cells)):
                self.assertEqual(number, claim_replay.arrangements_before(
                    ranks, host_cells))

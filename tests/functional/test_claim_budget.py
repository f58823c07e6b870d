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

"""The arrangements that Nova's claim goes through, counted in Nova."""

import itertools
import types

import fixtures
from nova.virt import hardware

from hpcvirt.fit import claim_replay
from hpcvirt.fit import order
from tests import cases
from tests.functional import soundness
from tests.functional import test_filter


class ClaimBudgetTest(soundness.ClaimingTestCase):

    def count(self, case):
        """Run Nova's claim.

        :returns: the ids of the host cells, and the number of arrangements
            that the claim took
        """
        taken = []

        def permutations(*arguments):
            for each in itertools.permutations(*arguments):
                taken.append(each)
                yield each

        counting = types.SimpleNamespace(permutations=permutations,
                                         chain=itertools.chain)
        with fixtures.MonkeyPatch('nova.virt.hardware.itertools', counting):
            self.assertIs(counting, hardware.itertools)
            claimed = soundness.Claims(case).claim({})
        return [cell.id for cell in claimed.cells], len(taken)

    def test_the_claim_takes_as_many_arrangements_as_predicted(self):
        for taken, guest, packing in (
                ((8, 8, 8, 0, 0, 0), (4, 4), True),
                ((8, 0, 8, 0, 8, 0, 0), (4, 4, 4), True),
                ((8, 8, 8, 8, 0, 2, 4), (4, 4), True),
                ((8, 8, 8, 0, 0, 0), (4, 4), False),
                ((0, 8, 0, 8, 0), (4, 4, 4), False)):
            question = test_filter.case(test_filter.host(*taken), guest,
                                        packing=packing)
            with self.subTest(taken=taken, packing=packing):
                cells, count = self.count(question)
                ordered = [cell.id for cell in order.claim_order(
                    cases.demand(question), cases.supply(question), packing)]
                ranks = [ordered.index(cell) for cell in cells]
                self.assertEqual(count - 1, claim_replay.arrangements_before(
                    ranks, len(taken)))

    def test_full_cells_cost_a_packing_claim_all_that_begin_with_them(self):
        question = test_filter.case(test_filter.host(*[8] * 4, *[0] * 4),
                                    (4, 4, 4), packing=True)
        self.assertEqual(([4, 5, 6], 4 * 7 * 6 + 4 * 6 + 4 + 1),
                         self.count(question))

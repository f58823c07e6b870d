# SPDX-License-Identifier: Apache-2.0

"""The arrangements that Nova's claim goes through, counted in Nova."""

import itertools
import types

import fixtures
from nova.virt import hardware

from hpcvirt.fit import claim
from hpcvirt.fit import engine
from hpcvirt.fit import reasons
from tests.builders import cases
from tests.functional import filtering
from tests.functional import soundness


class ClaimBudgetTest(soundness.ClaimingTestCase):
    def count(self, case):
        """Run Nova's claim.

        :returns: the ids of the host cells, and the number of arrangements
            that the claim took
        """
        claimed, taken = self.claim(case)
        return [cell.id for cell in claimed.cells], taken

    def claim(self, case, most=None):
        """Run Nova's claim, but not beyond a number of arrangements.

        :returns: its result, and the number of arrangements that it took
        """
        taken = itertools.count()

        def permutations(*arguments):
            for each in itertools.permutations(*arguments):
                if next(taken) == most:
                    return
                yield each

        counting = types.SimpleNamespace(permutations=permutations,
                                         chain=itertools.chain)
        with fixtures.MonkeyPatch('nova.virt.hardware.itertools', counting):
            self.assertIs(counting, hardware.itertools)
            claimed = soundness.Claims(case).claim({})
        return claimed, next(taken)

    def test_the_claim_takes_as_many_arrangements_as_predicted(self):
        for taken, guest, packing in (
                ((8, 8, 8, 0, 0, 0), (4, 4), True),
                ((8, 0, 8, 0, 8, 0, 0), (4, 4, 4), True),
                ((8, 8, 8, 8, 0, 2, 4), (4, 4), True),
                ((8, 8, 8, 0, 0, 0), (4, 4), False),
                ((0, 8, 0, 8, 0), (4, 4, 4), False)):
            question = filtering.case(filtering.host(*taken), guest,
                                      packing=packing)
            with self.subTest(taken=taken, packing=packing):
                cells, count = self.count(question)
                ordered = [cell.id for cell in engine.claim_order(
                    cases.demand(question), cases.supply(question))]
                ranks = [ordered.index(cell) for cell in cells]
                self.assertEqual(count - 1, claim.arrangements_before(
                    ranks, len(taken)))

    def test_full_cells_cost_a_packing_claim_all_that_begin_with_them(self):
        question = filtering.case(filtering.host(*[8] * 4, *[0] * 4),
                                  (4, 4, 4), packing=True)
        self.assertEqual(([4, 5, 6], 4 * 7 * 6 + 4 * 6 + 4 + 1),
                         self.count(question))

    def test_periodic_24_cells_are_packed_as_long_as_claims_end(self):
        for cells, guests in ((2, 12), (4, 6), (6, 1), (8, 1)):
            with self.subTest(cells=cells):
                question = filtering.case(filtering.host(*[0] * 24),
                                          (8,) * cells, packing=True)
                for _ in range(guests):
                    self.assertIsNone(self.refused(question))
                    question = soundness.Claims(question).settle({})
                misfit = self.refused(question)
                if cells * guests == 24:
                    self.assertIs(reasons.Code.NO_CELL, misfit.code)
                    continue
                # Nova would start the guest, but not in time.
                self.assertIs(reasons.Code.CLAIM_TOO_LONG, misfit.code)
                most = claim.MAX_ARRANGEMENTS
                self.assertEqual((None, most + 1), self.claim(question, most))

    def refused(self, case):
        return claim.check(cases.demand(case), cases.supply(case))

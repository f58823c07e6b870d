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

"""Predictions of Nova's claim: one example of each of its defects."""

import dataclasses
import unittest

from hpcvirt.fit import claim
from hpcvirt.fit import claim_replay
from hpcvirt.fit import engine
from hpcvirt.fit import placement
from hpcvirt.fit import reasons
from hpcvirt.model import shape
from tests.unit.fit import builders


class ClaimTest(unittest.TestCase):

    def assert_placed(self, cells, guest, supply, **arguments):
        predicted = claim.predict(guest, supply, **arguments)
        self.assertIsInstance(predicted, placement.Placement, predicted)
        self.assertEqual(cells, predicted.cells)
        self.assertIsNone(claim.check(guest, supply, **arguments))
        return predicted

    def assert_defect(self, message, guest, supply):
        """The guest fits, but Nova's claim would not succeed."""
        self.assertIsInstance(engine.place(guest, supply),
                              placement.Placement)
        misfit = claim.predict(guest, supply)
        self.assertIsInstance(misfit, reasons.Misfit, misfit)
        self.assertEqual(message, misfit.message)
        self.assertEqual(misfit, claim.check(guest, supply))


class SoundClaimTest(ClaimTest):

    def test_equal_cells_go_to_the_first_cells_with_room(self):
        predicted = self.assert_placed(
            (3, 1), builders.guest(4, 4), builders.host(5, 3, 6, 0))
        self.assertEqual((2048, 2048), predicted.pages_kib)

    def test_unequal_cells_are_sound_with_the_largest_first(self):
        self.assert_placed((2, 0), builders.guest(8, 2),
                           builders.host(1, 4, 0))

    def test_a_guest_that_does_not_fit_is_refused_for_its_own_reason(self):
        misfit = claim.check(builders.guest(8, 8), builders.host(0, 5))
        self.assertEqual(
            'the host has room on 1 of the 2 cells needed: '
            'cell 1 has 3 of the 8 free PCPUs needed', misfit.message)

    def test_a_host_with_too_few_cells_is_refused_for_its_size(self):
        for guest in (builders.guest(1, 1), builders.guest(1, 2)):
            self.assertEqual(reasons.Code.HOST_CELLS,
                             claim.check(guest, builders.host(0)).code)

    def test_a_guest_without_cells_goes_anywhere(self):
        self.assert_placed((), builders.guest(), builders.host(8))

    def test_devices_may_be_on_the_first_cells(self):
        self.assert_placed(
            (1, 0), builders.guest(4, 4, requests=(builders.request(),)),
            builders.host(0, 0, 0, pools=builders.gpus(0, 1)))

    def test_devices_may_be_on_cells_tried_later(self):
        # Because of other devices Nova tries cell 0 first.
        pools = builders.gpus(9, alias='nic') + builders.gpus(0, 0, 1)
        self.assert_placed(
            (0, 2), builders.guest(4, 4, requests=(builders.request(),)),
            builders.host(0, 0, 0, pools=pools))

    def test_the_scope_applies_to_the_predicted_cells(self):
        guest = builders.guest(4, 4, numa_scope=shape.NUMAScope.PACKAGE)
        self.assert_placed((2, 3), guest, builders.host(1, 1, 0, 0))
        self.assertEqual(
            reasons.Code.SCOPE_PACKAGE,
            claim.check(guest, builders.host(0, 1, 0, 1)).code)


class DefectTest(ClaimTest):

    def test_a_unequal_cells_get_results_of_other_cells(self):
        # The guest cells have 2 and 4 CPUs. The small one has been tried on
        # cells 0 and 2 under the numbers that the large one has later.
        supply = type(builders.host())(tuple(
            builders.host_cell(
                number, taken=8 - free, memory_used_mib=16384 - free_mib,
                pages=(builders.pages(2048, 4096,
                                      used=4096 - free_mib // 2),))
            for number, (free, free_mib) in enumerate(
                ((3, 1024), (8, 6144), (2, 4096)))))
        guest = type(builders.guest())((
            builders.guest_cell(2, memory_mib=2048),
            builders.guest_cell(4, memory_mib=4096)))
        self.assert_defect(
            'the guest fits on cells 2, 1, but the claim on the compute host '
            "would refuse it (Nova's defect A)", guest, supply)
        # With the largest guest cell first the guest is placed.
        self.assert_placed(
            (1, 2), type(guest)(tuple(reversed(guest.cells))), supply)

    def test_b_equal_cells_with_distant_devices_get_wrong_pins(self):
        # The host is empty; because of other devices Nova tries cells 3 and
        # 0 early.
        pools = (builders.gpus(0, 1, alias='nic') +
                 builders.gpus(0, 0, 1, alias='gpu') +
                 builders.gpus(2, 2, 1, 6, alias='disk'))
        guest = builders.guest(2, 2, requests=(
            builders.request('gpu'), builders.request('nic')))
        self.assert_defect(
            'the claim on the compute host would place guest cell 1 on cell '
            '2 with CPUs or memory that are not free there '
            "(Nova's defect B)", guest,
            builders.host(0, 0, 0, 0, pools=pools))

    def test_c_the_first_cell_tried_fixes_the_page_size(self):
        # Cell 0 has room in giant pages but no CPUs; cell 1 the reverse.
        supply = type(builders.host())(tuple(
            builders.host_cell(number, taken=taken, memory_used_mib=used,
                               pages=(builders.pages(4, 1 << 20),
                                      builders.pages(2048, 2048),
                                      builders.pages(1 << 20, giant)))
            for number, (taken, used, giant) in enumerate(
                ((5, 0, 4), (5, 0, 0), (4, 1024, 0)))))
        guest = type(builders.guest())((
            builders.guest_cell(4, page_kib=shape.PageClass.LARGE),))
        self.assert_placed((2,), guest, supply)
        busy = type(supply)((
            builders.host_cell(0, taken=3, pages=supply.cells[0].pages,
                               siblings=(frozenset({3, 4}),)),
            supply.cells[2]))
        self.assert_defect(
            'the guest fits on cell 2, but the claim on the compute host '
            "would refuse it (Nova's defect C)", guest, busy)

    def test_d_a_claim_with_too_many_attempts_is_refused(self):
        # Four devices are on the four cells that are tried last.
        pools = builders.gpus(*range(30, 18, -1), alias='disk')
        for number, alias in enumerate('abcd'):
            pools += builders.gpus(*[0] * (8 + number), 1, alias=alias)
        guest = builders.guest(1, 1, 1, 1, requests=tuple(
            builders.request(alias) for alias in 'abcd'))
        self.assert_defect(
            'the claim on the compute host would try more than '
            f'{claim_replay.MOST_TRIES} arrangements of cells '
            "(Nova's defect D)", guest, builders.host(*[0] * 12, pools=pools))

    def test_d_a_claim_that_begins_with_full_cells_takes_too_long(self):
        # Packing, the claim tries the full cells first: 23 * 22 * 21 * 20 *
        # 19 arrangements begin with each.
        guest = builders.guest(*[4] * 6)
        half_full = builders.host(*[8] * 12, *[0] * 12)
        self.assert_placed((12, 13, 14, 15, 16, 17), guest, half_full)
        predicted = claim.predict(guest, half_full, packing=True)
        self.assertIs(reasons.Code.CLAIM_TOO_LONG, predicted.code)
        self.assertEqual(predicted, claim.check(guest, half_full,
                                                packing=True))
        small = builders.guest(*[4] * 4)
        self.assertIsNone(claim.check(small, half_full, packing=True))

    def test_d_full_cells_without_devices_are_tried_first(self):
        guest = builders.guest(*[4] * 6)
        supply = builders.host(*[8] * 12, *[0] * 12, pools=builders.gpus(
            *[0] * 12, *[1] * 12))
        self.assertIs(reasons.Code.CLAIM_TOO_LONG,
                      claim.check(guest, supply).code)

    def test_f_isolated_emulator_threads_get_a_core_in_use(self):
        # Legacy SMT host: a sibling of the first core is taken.
        supply = type(builders.host())((builders.host_cell(
            threads=2, taken=1, shared=frozenset(range(8))),))
        guest = type(builders.guest())((builders.guest_cell(
            2, threads=shape.ThreadPolicy.ISOLATE, emulator_pcpus=1),))
        self.assert_defect(
            'the claim on the compute host would give the emulator threads '
            'a CPU of cell 0 whose SMT sibling belongs to another instance '
            "(Nova's defect F)", guest, supply)
        tidy = type(supply)((builders.host_cell(
            threads=2, taken=2, shared=frozenset(range(8))),))
        self.assert_placed((0,), guest, tidy)

    def test_g_a_cell_without_cores_makes_the_claim_raise(self):
        cells = (builders.host_cell(0, pcpus=0, shared=frozenset({60}),
                                    siblings=()),
                 builders.host_cell(1, shared=frozenset({61})))
        guest = type(builders.guest())((builders.guest_cell(
            0, policy=shape.CPUPolicy.MIXED, vcpus=1),) * 1)
        supply = type(builders.host())(cells)
        # The emptiest cell comes first, which is cell 1.
        self.assert_placed((1,), guest, supply)
        self.assert_defect(
            'the claim on the compute host would fail on cell 0, which has '
            "no cores (Nova's defect G)", guest,
            dataclasses.replace(supply, cells=(
                cells[0], cells[1]._replace(memory_used_mib=1024,
                                            free=frozenset()))))

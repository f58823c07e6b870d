# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.fit import admission
from hpcvirt.fit import demand as demands
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from tests.builders import tiny
from tests.builders import used_hosts

EMPTY = used_hosts.state(supplies.Supply((
    tiny.host_cell(0), tiny.host_cell(1))))


class AdmissionTest(unittest.TestCase):
    GUEST = used_hosts.equal_cells(1, 2, 64)

    def test_placement_answers_first(self):
        few = dataclasses.replace(EMPTY, free=guests.Resources(1, 0, 999))
        self.assertIs(reasons.Code.RESOURCES,
                      admission.predict(self.GUEST, few).code)

    def test_the_claim_chooses_the_cells(self):
        placed = admission.predict(self.GUEST, EMPTY)
        self.assertIsInstance(placed, demands.CellAssignment)
        self.assertEqual(1, len(placed.cells))

    def test_another_claim_can_be_asked(self):
        refused = reasons.Misfit(reasons.Code.NO_TOPOLOGY)
        self.assertIs(refused, admission.predict(
            self.GUEST, EMPTY, lambda *_: refused))

    def test_what_a_guest_takes_is_gone(self):
        placed = admission.predict(self.GUEST, EMPTY)
        left = admission.take(self.GUEST, EMPTY, placed)
        self.assertEqual(EMPTY.free.minus(self.GUEST.sums), left.free)
        free = [sum(len(cell.free) for cell in host.supply.cells)
                for host in (EMPTY, left)]
        self.assertEqual(2, free[0] - free[1])

    def test_guests_are_placed_until_one_is_refused(self):
        pcpus = sum(len(cell.free) for cell in EMPTY.supply.cells)
        found = admission.place_guests(self.GUEST, EMPTY, 999)
        self.assertEqual(pcpus // 2, len(found))
        self.assertEqual(1, len(admission.place_guests(self.GUEST, EMPTY, 1)))

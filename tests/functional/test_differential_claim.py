# SPDX-License-Identifier: Apache-2.0

"""Compare predicted claims with Nova's, on random hosts and guests.

Most blocks of cases are claimed by ``nova.compute.claims.Claim`` of the
installed Nova. One is for compute hosts of a release that orders cells in the
other way.
"""

import collections
import dataclasses
import random

from hpcvirt.fit import allocation
from hpcvirt.fit import claim
from hpcvirt.fit import reasons
from hpcvirt.nova import filters
from tests import oracle
from tests.builders import cases
from tests.functional import nova_objects
from tests.functional import soundness

CASES = 200
DEVICE_CASES = 260

#: Which of Nova's defects may be named for what, in which kind of guest.
DEFECTS = {
    'A': lambda case: not case.equal_cells,
    'B': lambda case: case.equal_cells and (
        case.requests or case.physnets or case.tunneled),
    'C': lambda case: case.page_kib is not None and case.page_kib < 0,
    'D': lambda case: len(case.host) > 4,
    'F': lambda case: case.threads == 'isolate' and case.isolated_emulator,
    'G': lambda case: any(not cell.siblings for cell in case.host),
    'L': lambda case: any(request.count > 1 for request in case.requests),
}


class ClaimTestCase(soundness.ClaimingTestCase):
    """Each test has its own random cases, to run in parallel."""

    def roll(self, blocks, spares_devices=soundness.SPARES_DEVICES):
        accepted = explained = deviceless = 0
        seeds = range(blocks.start * CASES, blocks.stop * CASES)
        for seed in seeds:
            case = dataclasses.replace(cases.a_case(random.Random(seed)),
                                       spares_devices=spares_devices)
            if not seed % 10:
                case = cases.without_numa(case)
            claims = soundness.Claims(case)
            for mapping in case.mappings:
                with self.subTest(seed=seed, case=case, mapping=mapping):
                    verdict = self.compare(claims, mapping)
                    accepted += verdict is None
                    explained += verdict in DEFECTS
                    deviceless += verdict is soundness.NO_DEVICES
        # The cases must cover enough that is worth comparing.
        self.assertGreater(accepted, len(seeds) // 10)
        self.assertGreater(explained, len(seeds) // 500)
        self.assertGreater(deviceless, len(seeds) // 500)

    def compare(self, claims, mapping):
        """Compare a prediction with what Nova does.

        :returns: None for a guest that is accepted, else the defect
        """
        case = claims.case
        claimed = claims.claim(mapping)
        fault = soundness.fault(case, claimed)
        demand, supply = cases.demand(case), cases.supply(case)
        providers = cases.providers(case, mapping)
        predicted = claim.predict(demand, supply, providers)
        checked = claim.check(demand, supply, providers)
        if fault is None:
            self.assertIsNone(checked)
            self.assertEqual(tuple(cell.id for cell in claimed.cells),
                             predicted.cells)
            self.compare_cells(case, claimed, demand, supply, predicted)
            return None
        self.assertEqual(predicted, checked)
        self.assertIsInstance(predicted, reasons.Misfit, fault)
        self.assertTrue(predicted.message)
        if not oracle.devices_anywhere(case, mapping):
            self.assertIn(predicted.code, (reasons.Code.DEVICES,
                                           reasons.Code.DEVICES_TAKEN))
            return fault
        if case.guest and oracle.first(case, mapping) is None:
            # Nova may well accept it, but it does not fit.
            self.assertNotIn('defect', predicted.details)
            return 'misfit'
        defect = predicted.details['defect']
        self.assertTrue(DEFECTS[defect](case), defect)
        self.assertIn(f'defect {defect}', predicted.message)
        return defect

    def compare_cells(self, case, claimed, demand, supply, predicted):
        by_id = {cell.id: cell for cell in supply.cells}
        for wanted, cell, home, page_kib in zip(
                demand.cells, claimed.cells, predicted.cells,
                predicted.pages_kib, strict=True):
            if case.page_kib:
                self.assertEqual(cell.pagesize, page_kib)
            if case.policy in ('dedicated', 'mixed'):
                chosen = allocation.choose_pins(wanted, by_id[home])
                self.assertEqual(
                    [cpu for _, cpu in sorted((cell.cpu_pinning
                                               or {}).items())],
                    list(chosen.cpus))
                self.assertEqual(cell.cpuset_reserved or set(),
                                 chosen.emulator)

    def test_first_block_of_cases(self):
        self.roll(range(1))

    def test_periodic_84_more_blocks_of_cases(self):
        self.roll(range(1, 85))

    def test_periodic_13_blocks_of_cases_for_another_release(self):
        self.roll(range(85, 98), not soundness.SPARES_DEVICES)


class DevicesTestCase(soundness.ClaimingTestCase):
    """Guests with several devices: what they have after the claim."""

    def setUp(self):
        super().setUp()
        self.filter = filters.HPCTopologyFilter()

    def roll(self, first, count):
        found = collections.Counter()
        for number in range(first, first + count):
            with self.subTest(number=number):
                found += self.compare(soundness.as_installed(
                    cases.a_case_with_devices(
                        random.Random(f'devices {number}'))))
        self.assertGreater(found[None], count // 4)
        for fault in (soundness.FEWER_DEVICES, soundness.CLAIM_FAILED,
                      soundness.REFUSED, soundness.NO_DEVICES):
            self.assertGreater(found[fault], count // 400, fault)

    def compare(self, case):
        """Send a request to the host, and claim each of its candidates."""
        soundness.CONF.set_override(
            'packing_host_numa_cells_allocation_strategy', case.packing,
            'compute')
        state = nova_objects.host_state(case)
        offered = state.allocation_candidates
        list(self.filter.filter_all([state, nova_objects.idle_host()],
                                    nova_objects.request_spec(case)))
        claims = soundness.Claims(case)
        found = collections.Counter()
        for candidate in offered:
            mapping = candidate['mappings']
            fault = soundness.fault(case, claims.claim(
                mapping, nova_objects.requests_with_allocation(case, mapping)))
            self.assertEqual(candidate in state.allocation_candidates,
                             fault is None, (fault, mapping, case))
            found[fault] += 1
        return found

    def test_guests_with_devices(self):
        self.roll(0, DEVICE_CASES)

    def test_periodic_100_000_candidates_of_guests_with_devices(self):
        self.roll(DEVICE_CASES, 40_400)

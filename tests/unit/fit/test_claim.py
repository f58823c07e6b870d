# SPDX-License-Identifier: Apache-2.0

"""Predictions of Nova's claim: one example of each of its defects."""

import dataclasses
import itertools
import random
import unittest
from unittest import mock

from hpcvirt.fit import cell_search
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import engine
from hpcvirt.fit import reasons
from hpcvirt.model import shape
from tests import oracle
from tests.builders import cases
from tests.builders import tiny


class ClaimTest(unittest.TestCase):
    def assert_placed(self, cells, guest, supply, **arguments):
        predicted = claim.predict(guest, supply, **arguments)
        self.assertIsInstance(predicted, demands.CellAssignment,
                              predicted)
        self.assertEqual(cells, predicted.cells)
        self.assertIsNone(claim.check(guest, supply, **arguments))
        return predicted

    def assert_defect(self, message, guest, supply):
        """The guest fits, but Nova's claim would not succeed."""
        self.assertIsInstance(engine.place(guest, supply),
                              demands.CellAssignment)
        misfit = claim.predict(guest, supply)
        self.assertIsInstance(misfit, reasons.Misfit, misfit)
        self.assertEqual(message, misfit.message)
        self.assertEqual(misfit, claim.check(guest, supply))


class SoundClaimTest(ClaimTest):
    def test_equal_cells_go_to_the_first_cells_with_room(self):
        predicted = self.assert_placed(
            (3, 1), tiny.guest(4, 4), tiny.host(5, 3, 6, 0))
        self.assertEqual((2048, 2048), predicted.pages_kib)

    def test_unequal_cells_are_sound_with_the_largest_first(self):
        self.assert_placed((2, 0), tiny.guest(8, 2), tiny.host(1, 4, 0))

    def test_a_guest_that_does_not_fit_is_refused_for_its_own_reason(self):
        misfit = claim.check(tiny.guest(8, 8), tiny.host(0, 5))
        self.assertEqual(
            'the host has room on 1 of the 2 cells needed: '
            'cell 1 has 3 of the 8 free PCPUs needed', misfit.message)

    def test_a_host_with_too_few_cells_is_refused_for_its_size(self):
        for guest in (tiny.guest(1, 1), tiny.guest(1, 2)):
            self.assertEqual(reasons.Code.HOST_CELLS,
                             claim.check(guest, tiny.host(0)).code)

    def test_a_guest_without_cells_goes_anywhere(self):
        self.assert_placed((), tiny.guest(), tiny.host(8))

    def test_devices_may_be_on_the_first_cells(self):
        self.assert_placed(
            (1, 0), tiny.guest(4, 4, requests=(tiny.request(),)),
            tiny.host(0, 0, 0, pools=tiny.gpus(0, 1)))

    def test_devices_may_be_on_cells_tried_later(self):
        # Because of other devices Nova tries cell 0 first.
        pools = tiny.gpus(9, alias='nic') + tiny.gpus(0, 0, 1)
        self.assert_placed(
            (0, 2), tiny.guest(4, 4, requests=(tiny.request(),)),
            tiny.host(0, 0, 0, pools=pools))

    def test_the_scope_applies_to_the_predicted_cells(self):
        guest = tiny.guest(4, 4, numa_scope=shape.NUMAScope.SOCKET)
        self.assert_placed((2, 3), guest, tiny.host(1, 1, 0, 0))
        self.assertEqual(
            reasons.Code.SCOPE_SOCKET,
            claim.check(guest, tiny.host(0, 1, 0, 1)).code)


class DefectTest(ClaimTest):
    def test_a_unequal_cells_get_results_of_other_cells(self):
        # The guest cells have 2 and 4 CPUs. The small one has been tried on
        # cells 0 and 2 under the numbers that the large one has later.
        supply = type(tiny.host())(tuple(
            tiny.host_cell(
                number, taken=8 - free, memory_used_mib=16384 - free_mib,
                pages=(tiny.pages(2048, 4096, used=4096 - free_mib // 2),))
            for number, (free, free_mib) in enumerate(
                ((3, 1024), (8, 6144), (2, 4096)))))
        guest = type(tiny.guest())((
            tiny.guest_cell(2, memory_mib=2048),
            tiny.guest_cell(4, memory_mib=4096)))
        self.assert_defect(
            'the guest fits on cells 2, 1, but the claim on the compute host '
            "would refuse it (Nova's defect A)", guest, supply)
        # With the largest guest cell first the guest is placed.
        self.assert_placed(
            (1, 2), type(guest)(tuple(reversed(guest.cells))), supply)

    def test_b_equal_cells_with_distant_devices_get_wrong_pins(self):
        # The host is empty; because of other devices Nova tries cells 3 and
        # 0 early.
        pools = (tiny.gpus(0, 1, alias='nic') +
                 tiny.gpus(0, 0, 1, alias='gpu') +
                 tiny.gpus(2, 2, 1, 6, alias='disk'))
        guest = tiny.guest(2, 2, requests=(
            tiny.request('gpu'), tiny.request('nic')))
        self.assert_defect(
            'the claim on the compute host would place guest cell 1 on cell '
            '2 with CPUs or memory that are not free there '
            "(Nova's defect B)", guest,
            tiny.host(0, 0, 0, 0, pools=pools))

    def test_c_the_first_cell_tried_fixes_the_page_size(self):
        # Cell 0 has room in giant pages but no CPUs; cell 1 the reverse.
        supply = type(tiny.host())(tuple(
            tiny.host_cell(number, taken=taken, memory_used_mib=used,
                           pages=(tiny.pages(4, 1 << 20),
                                  tiny.pages(2048, 2048),
                                  tiny.pages(1 << 20, giant)))
            for number, (taken, used, giant) in enumerate(
                ((5, 0, 4), (5, 0, 0), (4, 1024, 0)))))
        guest = type(tiny.guest())((
            tiny.guest_cell(4, page_kib=shape.PageClass.LARGE),))
        self.assert_placed((2,), guest, supply)
        busy = type(supply)((
            tiny.host_cell(0, taken=3, pages=supply.cells[0].pages,
                           siblings=(frozenset({3, 4}),)),
            supply.cells[2]))
        self.assert_defect(
            'the guest fits on cell 2, but the claim on the compute host '
            "would refuse it (Nova's defect C)", guest, busy)

    def test_d_a_claim_with_too_many_attempts_is_refused(self):
        # Four devices are on the four cells that are tried last.
        pools = tiny.gpus(*range(30, 18, -1), alias='disk')
        for number, alias in enumerate('abcd'):
            pools += tiny.gpus(*[0] * (8 + number), 1, alias=alias)
        guest = tiny.guest(1, 1, 1, 1, requests=tuple(
            tiny.request(alias) for alias in 'abcd'))
        self.assert_defect(
            'the claim on the compute host would try more than '
            f'{claim.MAX_TRIES} arrangements of cells '
            "(Nova's defect D)", guest, tiny.host(*[0] * 12, pools=pools))

    def test_d_as_many_attempts_as_allowed_are_made(self):
        # The claim tries cells 0 and 1 before the one near the network.
        guest = tiny.guest(4, physnets=frozenset('a'))
        cells = tuple(tiny.host_cell(number, physnets=frozenset(physnets))
                      for number, physnets in enumerate(('', '', 'a')))
        supply = type(tiny.host())(cells)
        for most, code in ((3, None), (2, reasons.Code.CLAIM_TOO_LONG)):
            with mock.patch.object(claim, 'MAX_TRIES', most):
                misfit = claim.check(guest, supply)
            self.assertIs(code, misfit and misfit.code)

    def test_d_a_claim_that_begins_with_full_cells_takes_too_long(self):
        # Packing, the claim tries the full cells first: 23 * 22 * 21 * 20 *
        # 19 arrangements begin with each.
        guest = tiny.guest(*[4] * 6)
        half_full = tiny.host(*[8] * 12, *[0] * 12)
        self.assert_placed((12, 13, 14, 15, 16, 17), guest, half_full)
        packing = tiny.host(*[8] * 12, *[0] * 12, packing=True)
        predicted = claim.predict(guest, packing)
        self.assertIs(reasons.Code.CLAIM_TOO_LONG, predicted.code)
        self.assertEqual(predicted, claim.check(guest, packing))
        small = tiny.guest(*[4] * 4)
        self.assertIsNone(claim.check(small, packing))

    def test_d_full_cells_without_devices_are_tried_first(self):
        guest = tiny.guest(*[4] * 6)
        supply = tiny.host(*[8] * 12, *[0] * 12, pools=tiny.gpus(
            *[0] * 12, *[1] * 12))
        self.assertIs(reasons.Code.CLAIM_TOO_LONG,
                      claim.check(guest, supply).code)

    def test_f_isolated_emulator_threads_get_a_core_in_use(self):
        # Legacy SMT host: a sibling of the first core is taken.
        supply = type(tiny.host())((tiny.host_cell(
            threads=2, taken=1, shared=frozenset(range(8))),))
        guest = type(tiny.guest())((tiny.guest_cell(
            2, threads=shape.ThreadPolicy.ISOLATE, emulator_pcpus=1),))
        self.assert_defect(
            'the claim on the compute host would give the emulator threads '
            'a CPU of cell 0 whose SMT sibling belongs to another instance '
            "(Nova's defect F)", guest, supply)
        tidy = type(supply)((tiny.host_cell(
            threads=2, taken=2, shared=frozenset(range(8))),))
        self.assert_placed((0,), guest, tidy)

    def test_f_the_claim_takes_a_guest_that_does_not_fit(self):
        # Each vCPU has a core of its own, and one thread is left.
        cells = (tiny.guest_cell(
            3, threads=shape.ThreadPolicy.ISOLATE, emulator_pcpus=1),
            tiny.guest_cell(4, threads=shape.ThreadPolicy.ISOLATE))
        for taken, expected in ((1, ((0, 1), 0)), (2, (None, None))):
            supply = type(tiny.host())(tuple(
                tiny.host_cell(number, threads=2, taken=count,
                               shared=tiny.host_cell(number).dedicated)
                for number, count in enumerate((taken, 0))))
            guest = type(tiny.guest())(cells)
            self.assertIsInstance(engine.place(guest, supply), reasons.Misfit)
            outcome = claim.ClaimReplay(guest, supply, supply.cells).run(
                cell_search.AffinityCheck(guest, supply),
                cell_search.Effort())
            self.assertEqual(expected, (outcome.ranks, outcome.misaccounted))
            misfit = claim.find_defect(guest, supply)
            self.assertEqual(expected[0] is None, misfit is None)

    def test_g_a_cell_without_cores_makes_the_claim_raise(self):
        cells = (tiny.host_cell(0, pcpus=0, shared=frozenset({60}),
                                siblings=()),
                 tiny.host_cell(1, shared=frozenset({61})))
        guest = type(tiny.guest())((tiny.guest_cell(
            0, policy=shape.CPUPolicy.MIXED, vcpus=1),) * 1)
        supply = type(tiny.host())(cells)
        # The emptiest cell comes first, which is cell 1.
        self.assert_placed((1,), guest, supply)
        self.assert_defect(
            'the claim on the compute host would fail on cell 0, which has '
            "no cores (Nova's defect G)", guest,
            dataclasses.replace(supply, cells=(
                cells[0], cells[1]._replace(memory_used_mib=1024,
                                            free=frozenset()))))


def claimed(case, mapping):
    """What ``numa_fit_instance_to_host`` returns, attempt by attempt.

    For guests without isolated emulator threads or page sizes by class, on
    hosts whose cells have cores: the claim then raises nowhere.

    :returns: for each guest cell its host cell, and whether each of them fits
        there and was pinned there; None if the guest is refused
    """
    numbers = list(range(len(case.guest)))
    pinned = dict.fromkeys(numbers)
    results = {}
    for arrangement in itertools.permutations(oracle.in_order(case),
                                              len(case.guest)):
        for guest, cell in enumerate(arrangement):
            pair = cell.id, numbers[guest]
            if pair not in results:
                results[pair] = oracle.fits(case, guest, cell)
                if results[pair]:
                    pinned[guest] = cell.id
                elif (case.policy == 'mixed'
                      and fits_without_ratios(case, guest, cell)):
                    # Its vCPUs are pinned before a ratio refuses it.
                    pinned[guest] = None
                    numbers[guest] = cell.id
            if not results[pair]:
                break
            numbers[guest] = cell.id
        else:
            chosen = tuple(cell.id for cell in arrangement)
            if (oracle.networks_near(case, set(chosen)) and
                    oracle.devices_near(case, mapping, set(chosen))):
                return chosen, all(
                    oracle.fits(case, guest, cell)
                    and (not case.guest[guest].pcpus
                         or pinned[guest] == cell.id)
                    for guest, cell in enumerate(arrangement))
    return None


def fits_without_ratios(case, number, cell):
    guest = case.guest[number]
    return (oracle.memory_fits(case, guest, cell)
            and guest.vcpus <= len(cell.shared)
            and oracle.pins_exist(case, number, cell))


def a_case_of_mixed_cells(dice):
    """Create a guest whose cells are pinned before a ratio refuses them."""
    count = dice.choice((3, 3, 4))
    case = cases.a_case(dice)
    return dataclasses.replace(
        case, policy='mixed', threads=None, isolated_emulator=False,
        guest=cases.a_guest(dice, count, 'mixed'),
        host=cases.a_host(dice, count + dice.choice((0, 1)), 'mixed'),
        page_kib=None, pools=(), requests=(), mappings=({},),
        physnets=frozenset(), tunneled=False,
        cpu_ratio=dice.choice((0.75, 1.0, 1.5)), ram_ratio=2.0)


class AgainstAlgorithmTest(unittest.TestCase):
    """The claim, replayed: against its algorithm without any shortcut."""

    def test_attempts_that_are_skipped_do_not_change_the_outcome(self):
        self.compare(cases.a_case)

    def test_attempts_that_leave_pins_behind_are_not_skipped(self):
        self.compare(a_case_of_mixed_cells)

    def compare(self, create):
        refused = accepted = unsound = 0
        for seed in range(4000):
            case = create(random.Random(f'replay {seed}'))
            if (case.isolated_emulator or (case.page_kib or 0) < 0 or
                    len(case.guest) > len(case.host) or
                    not all(cell.siblings for cell in case.host)):
                continue
            mapping = case.mappings[0]
            demand, supply = cases.demand(case), cases.supply(case)
            ordered = engine.claim_order(demand, supply)
            outcome = claim.ClaimReplay(demand, supply, ordered).run(
                cell_search.AffinityCheck(
                    demand, supply, cases.providers(case, mapping)),
                cell_search.Effort())
            ranks = outcome.ranks
            with self.subTest(seed=seed, case=case):
                self.assertFalse(outcome.given_up)
                self.assertEqual(claimed(case, mapping), ranks and (
                    tuple(ordered[rank].id for rank in ranks),
                    outcome.sound))
            refused += ranks is None
            accepted += outcome.sound
            unsound += ranks is not None and not outcome.sound
        self.assertGreater(min(refused, accepted), 100)
        self.assertGreater(unsound, 10)


class ReplayTest(unittest.TestCase):
    def test_attempts_that_can_only_end_alike_are_skipped(self):
        # There are 16 * 15 * 14 * 13 arrangements; each failure of a small
        # cell is examined only once.
        guest = tiny.guest(8, 8, 8, 1)
        supply = tiny.host(*[4] * 12, 0, 0, 0, 0, packing=True)
        self.assertIsInstance(claim.predict(guest, supply),
                              demands.CellAssignment)

    def test_pins_that_a_late_refusal_leaves_behind_do_no_harm(self):
        # A mixed guest cell is pinned on cell 0 before its shared vCPUs are
        # refused there; its placement on cell 1 is sound nevertheless.
        cells = tuple(tiny.host_cell(
            number, shared=frozenset({60 + number}), cpu_usage=usage)
            for number, usage in enumerate((1, 0, 0)))
        guest = type(tiny.guest())(tuple(
            tiny.guest_cell(pcpus, policy=shape.CPUPolicy.MIXED, vcpus=1)
            for pcpus in (2, 1)))
        predicted = claim.predict(guest, type(tiny.host())(cells))
        self.assertEqual((1, 2), predicted.cells)

    def test_the_providers_of_an_allocation_candidate_decide(self):
        pools = (devices.pool(0, 1, 'gpu')._replace(provider='x'),
                 devices.pool(1, 1, 'gpu')._replace(provider='y'))
        guest = tiny.guest(4, requests=(tiny.request(),))
        supply = tiny.host(0, 0, pools=pools)
        for provider, cell in (('x', 0), ('y', 1)):
            predicted = claim.predict(guest, supply, providers=((provider,),))
            self.assertEqual((cell,), predicted.cells)

    def test_arrangements_are_counted_as_nova_takes_them(self):
        for host_cells, guest_cells in ((1, 1), (4, 1), (5, 3), (6, 4)):
            for number, ranks in enumerate(itertools.permutations(
                    range(host_cells), guest_cells)):
                self.assertEqual(number, claim.arrangements_before(
                    ranks, host_cells))


class ClaimOrderTest(unittest.TestCase):
    """The order in which Nova's claim tries host cells."""

    def order(self, guest, supply, **arguments):
        return [cell.id for cell in
                engine.claim_order(guest, dataclasses.replace(
                    supply, **arguments))]

    def supply(self, *cells, pools=()):
        return type(tiny.host())(tuple(
            tiny.host_cell(number, **fields)
            for number, fields in enumerate(cells)), pools)

    def test_free_pcpus_count_before_free_memory(self):
        supply = self.supply({'taken': 2}, {'memory_used_mib': 512}, {})
        self.assertEqual([2, 1, 0], self.order(tiny.guest(1), supply))
        self.assertEqual([0, 1, 2], self.order(tiny.guest(1), supply,
                                               packing=True))

    def test_shared_vcpus_count_for_a_shared_guest(self):
        shared = type(tiny.guest())((tiny.guest_cell(
            0, vcpus=1, policy=shape.CPUPolicy.SHARED),))
        supply = self.supply({'cpu_usage': 2}, {'cpu_usage': 1, 'taken': 8},
                             {'cpu_usage': 1, 'memory_used_mib': 512})
        self.assertEqual([1, 2, 0], self.order(shared, supply))
        self.assertEqual([0, 2, 1], self.order(shared, supply, packing=True))

    def test_equal_cells_keep_their_order(self):
        for packing in (False, True):
            self.assertEqual(
                [0, 1, 2], self.order(tiny.guest(1), tiny.host(3, 3, 3),
                                      packing=packing))

    def test_vgpus_are_no_devices_of_the_claim(self):
        guest = tiny.guest(1, requests=(devices.request(
            shape.GuestDevices(None, 1, resource_class='VGPU')),))
        cards = devices.pool(2, 4, resource_class='VGPU')
        supply = tiny.host(0, 0, 0, pools=(cards,))
        self.assertEqual([0, 1, 2], self.order(guest, supply))
        supply = tiny.host(0, 0, 0, pools=(*tiny.gpus(1), cards))
        self.assertEqual([1, 2, 0], self.order(guest, supply))
        # Placement's record of a PCI device has a resource class as well.
        supply = tiny.host(0, 0, 0, pools=(devices.Pool(
            0, 1, {'resource_class': 'CUSTOM_GPU', 'vendor_id': '10de'}),))
        self.assertEqual([1, 2, 0], self.order(guest, supply))

    def test_cells_with_devices_come_first_for_guests_with_devices(self):
        guest = tiny.guest(1, requests=(tiny.request(),))
        supply = tiny.host(0, 1, 2, pools=tiny.gpus(0, 1, 2))
        for packing in (False, True):
            self.assertEqual([2, 1, 0], self.order(guest, supply,
                                                   packing=packing))

    def test_cells_with_devices_come_last_for_other_guests(self):
        supply = tiny.host(2, 1, 0, pools=tiny.gpus(0, 1, 2))
        for packing in (False, True):
            self.assertEqual([0, 1, 2], self.order(tiny.guest(1), supply,
                                                   packing=packing))

    def test_devices_are_ignored_for_other_guests_before_nova_34(self):
        supply = dataclasses.replace(
            tiny.host(0, 1, 2, pools=tiny.gpus(0, 1, 2)), spares_devices=False)
        self.assertEqual([0, 1, 2], self.order(tiny.guest(1), supply))
        self.assertEqual([2, 1, 0], self.order(tiny.guest(1), supply,
                                               packing=True))
        guest = tiny.guest(1, requests=(tiny.request(),))
        self.assertEqual([2, 1, 0], self.order(guest, supply))

    def test_cells_are_not_sorted_if_all_are_needed(self):
        self.assertEqual([0, 1], self.order(tiny.guest(1, 1), tiny.host(5, 0)))


class StartTest(unittest.TestCase):
    """Whether it matters from which demand a claim starts."""

    def test_it_does_not_for_equal_cells_with_dedicated_cpus(self):
        self.assertFalse(claim.depends_on_start(tiny.guest()))
        self.assertFalse(claim.depends_on_start(tiny.guest(4, 4)))
        for expected in (
                tiny.guest(4, 2), tiny.guest(4, requests=(tiny.request(),)),
                tiny.guest(4, physnets=frozenset('a')),
                demands.Demand((tiny.guest_cell(
                    0, vcpus=4, policy=shape.CPUPolicy.SHARED),)),
                demands.Demand((tiny.guest_cell(
                    2, vcpus=4, policy=shape.CPUPolicy.MIXED),)),
                demands.Demand((tiny.guest_cell(
                    4, page_kib=shape.PageClass.LARGE),))):
            self.assertTrue(claim.depends_on_start(expected), expected)


class EffortTest(unittest.TestCase):
    def test_a_replay_without_effort_left_is_undecided(self):
        effort = cell_search.Effort()
        while effort.spend():
            pass
        guest = tiny.guest(4, 2)
        misfit = claim.Claim(guest, tiny.host(0, 0), effort).find_defect()
        self.assertIs(reasons.Code.UNDECIDED, misfit.code)

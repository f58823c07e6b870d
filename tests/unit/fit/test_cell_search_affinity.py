# SPDX-License-Identifier: Apache-2.0

"""The conditions of devices and networks, against the oracle."""

import itertools
import random
import unittest

from hpcvirt.fit import cell_search
from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from tests import oracle
from tests.builders import cases
from tests.builders import tiny


class AgainstOracleTest(unittest.TestCase):
    """All sets of host cells of random cases."""

    def questions(self):
        for seed in range(600):
            case = cases.a_case(random.Random(f'affinity {seed}'))
            ids = [cell.id for cell in case.host]
            for mapping in case.mappings[:2]:
                affinity = cell_search.AffinityCheck(
                    cases.demand(case), cases.supply(case),
                    cases.providers(case, mapping))
                truth = {
                    cells: oracle.networks_near(case, set(cells)) and
                    oracle.devices_near(case, mapping, set(cells))
                    for size in range(len(ids) + 1)
                    for cells in itertools.combinations(ids, size)}
                with self.subTest(seed=seed, mapping=mapping):
                    yield affinity, truth

    def test_a_set_of_cells_meets_the_conditions_if_the_oracle_says_so(self):
        met = refused = 0
        for affinity, truth in self.questions():
            for cells, expected in truth.items():
                self.assertEqual(expected, affinity.met(cells), cells)
                met += expected
                refused += not expected
        self.assertGreater(min(met, refused), 500)

    def test_only_the_deciding_cells_change_the_answer(self):
        for affinity, truth in self.questions():
            for cells, expected in truth.items():
                deciding = tuple(cell for cell in cells
                                 if cell in affinity.deciding)
                self.assertEqual(truth[deciding], expected, cells)

    def test_what_counting_rules_out_no_set_of_cells_meets(self):
        ruled_out = 0
        for affinity, truth in self.questions():
            usable = max(truth, key=len)
            for most in range(1, len(usable) + 1):
                if affinity.ruled_out(usable, most):
                    ruled_out += 1
                    self.assertFalse(any(
                        met for cells, met in truth.items()
                        if len(cells) <= most))
        self.assertGreater(ruled_out, 50)

    def test_the_second_look_ignores_cells(self):
        found = refused = 0
        for seed in range(600):
            case = cases.a_case(random.Random(f'second look {seed}'))
            for mapping in case.mappings:
                misfit = cell_search.AffinityCheck(
                    cases.demand(case), cases.supply(case),
                    cases.providers(case, mapping)).second_look()
                expected = oracle.devices_anywhere(case, mapping)
                with self.subTest(seed=seed, mapping=mapping):
                    self.assertEqual(expected, misfit is None, misfit)
                found += expected
                refused += not expected
        self.assertGreater(min(found, refused), 100)


class AllocatorTest(unittest.TestCase):
    def test_there_is_none_without_requests_or_without_accounting(self):
        guest = tiny.guest(4, requests=(tiny.request(),))
        self.assertIsNone(cell_search.device_allocator(
            tiny.guest(4), tiny.host(0, pools=tiny.gpus(1))))
        self.assertIsNone(cell_search.device_allocator(
            guest, tiny.host(0, pools=None)))
        self.assertIsInstance(cell_search.device_allocator(
            guest, tiny.host(0)), devices.Allocator)


class MisfitTest(unittest.TestCase):
    def misfit(self, guest, supply):
        matrix = cell_search.FitMatrix(guest, supply, supply.cells)
        return cell_search.AffinityCheck(guest, supply).misfit(matrix)

    def test_too_few_devices_on_the_host_are_the_first_reason(self):
        guest = tiny.guest(4, requests=(tiny.request(count=3),),
                           physnets=frozenset({'a'}))
        misfit = self.misfit(guest, tiny.host(8, 8, pools=tiny.gpus(1, 1)))
        self.assertEqual(
            (reasons.Code.DEVICES, {'request': 'gpu', 'free': 2, 'needed': 3}),
            (misfit.code, misfit.details))

    def test_a_network_without_usable_cells_comes_before_devices(self):
        supply = type(tiny.host())((
            tiny.host_cell(0),
            tiny.host_cell(1, taken=8, physnets=frozenset({'a'}))),
            tiny.gpus(0, 1))
        guest = tiny.guest(4, requests=(tiny.request(),),
                           physnets=frozenset({'a'}))
        misfit = self.misfit(guest, supply)
        self.assertEqual(reasons.Code.NETWORK_AFFINITY, misfit.code)
        self.assertEqual({'networks': 'physical network a', 'cells': 'cell 1'},
                         misfit.details)
        self.assertEqual([1], [cause.details['cell']
                               for cause in misfit.causes])


class AffinityTest(unittest.TestCase):
    """Networks with affinity to host cells."""

    CELLS = (
        tiny.host_cell(0, physnets=frozenset({'a'})),
        tiny.host_cell(1, physnets=frozenset({'a', 'b'})),
        tiny.host_cell(2, tunneled=True))

    def met(self, cells, **networks):
        affinities = cell_search.find_affinities(
            tiny.guest(1, **networks), self.CELLS)
        return cell_search.are_satisfied(affinities, cells)

    def test_one_of_the_cells_of_a_network_is_enough(self):
        networks = {'physnets': frozenset({'a'})}
        self.assertTrue(self.met({0}, **networks))
        self.assertTrue(self.met({1, 2}, **networks))
        self.assertFalse(self.met({2}, **networks))

    def test_each_network_needs_one_of_its_cells(self):
        networks = {'physnets': frozenset({'a', 'b'})}
        self.assertTrue(self.met({1}, **networks))
        self.assertFalse(self.met({0}, **networks))

    def test_affinitieswithout_affinity_accept_any_cells(self):
        self.assertTrue(self.met({2}, physnets=frozenset({'c'})))

    def test_tunnelled_affinitieshave_cells_of_their_own(self):
        self.assertTrue(self.met({2}, tunneled=True))
        self.assertFalse(self.met({0, 1}, tunneled=True))

    def test_a_guest_without_affinitiessets_no_condition(self):
        self.assertEqual((), cell_search.find_affinities(
            tiny.guest(1), self.CELLS))

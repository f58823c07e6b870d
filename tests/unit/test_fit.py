# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import random
import unittest

from hpcvirt.fit import affinity_check
from hpcvirt.fit import allocation
from hpcvirt.fit import capacity
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import claim
from hpcvirt.fit import demand
from hpcvirt.fit import devices
from hpcvirt.fit import engine
from hpcvirt.fit import fit_matrix
from hpcvirt.fit import late_misfit
from hpcvirt.fit import move_check
from hpcvirt.fit import pins
from hpcvirt.fit import reasons
from hpcvirt.fit import scarcity
from hpcvirt.fit import score
from hpcvirt.fit import supply as fit_supply
from hpcvirt.fit import supply as supplies
from hpcvirt.model import host as host_model
from hpcvirt.model import host as model_host
from hpcvirt.model import shape
from hpcvirt.model import usage
from tests import oracle
from tests.builders import cases
from tests.builders import tiny


class AllocateTest(unittest.TestCase):
    """What is left of a host once a guest has been placed on it."""

    def allocate(self, guest, supply):
        return allocation.allocate(guest, supply, claim.predict(guest, supply))

    def test_cpus_memory_and_pages_are_used(self):
        left = self.allocate(tiny.guest(4), tiny.host(0, 4)).cells[0]
        self.assertEqual({4, 5, 6, 7}, left.free)
        self.assertEqual(1024, left.memory_used_mib)
        self.assertEqual([(0, 2 << 20), (512, 3584)],
                         [(pool.used, pool.free) for pool in left.pages])

    def test_other_cells_are_unchanged(self):
        before = tiny.host(0, 4)
        self.assertEqual(before.cells[1],
                         self.allocate(tiny.guest(4), before).cells[1])

    def test_a_guest_without_page_size_takes_the_smallest_pages(self):
        guest = type(tiny.guest())((tiny.guest_cell(page_kib=None),))
        left = self.allocate(guest, tiny.host(0)).cells[0]
        self.assertEqual([1 << 18, 0], [pool.used for pool in left.pages])

    def test_shared_vcpus_are_counted(self):
        guest = type(tiny.guest())((tiny.guest_cell(
            0, vcpus=2, policy=shape.CPUPolicy.SHARED),))
        supply = type(tiny.host())((tiny.host_cell(
            shared=frozenset({60, 61})),))
        self.assertEqual(2, self.allocate(guest, supply).cells[0].cpu_usage)

    def test_devices_are_used(self):
        guest = tiny.guest(4, requests=(tiny.request(count=2),))
        supply = tiny.host(0, 0, pools=tiny.gpus(3, 1))
        left = self.allocate(guest, supply)
        self.assertEqual([(0, 1), (1, 1)],
                         [(pool.cell, pool.free) for pool in left.pools])

    def test_an_empty_pool_is_dropped_as_in_nova(self):
        guest = tiny.guest(4, requests=(tiny.request(count=2),))
        supply = tiny.host(0, pools=tiny.gpus(2))
        self.assertEqual((), self.allocate(guest, supply).pools)

    def test_a_host_fills_guest_by_guest(self):
        guest, supply = tiny.guest(4), tiny.host(0, 2)
        cells = []
        while True:
            where = claim.predict(guest, supply)
            if not hasattr(where, 'cells'):
                break
            cells += where.cells
            supply = allocation.allocate(guest, supply, where)
        self.assertEqual([0, 1, 0], cells)


def supply(*cells):
    """A host whose cells have (CPUs, pages of 2 MiB)."""
    first = 0
    found, used = [], []
    for number, (count, pages) in enumerate(cells):
        cpus = frozenset(range(first, first + count))
        first += count
        found.append(host_model.Cell(
            number, number, cpus, tuple(frozenset({cpu}) for cpu in cpus),
            (cpus,), 65536, (host_model.PagePool(4, 1000),
                             host_model.PagePool(2048, pages))))
        used.append(usage.CellUsage(number, cpus))
    return supplies.make_supply(host_model.Host('host', tuple(found)),
                                usage.Usage(tuple(used)))


def guest(cells, cpus, mib):
    return shape.Shape((shape.GuestCell(cpus, 0, mib, 2048),) * cells,
                       cpu_policy=shape.CPUPolicy.DEDICATED)


class FillTest(unittest.TestCase):
    def test_cpus_run_out(self):
        found = capacity.fill(guest(1, 3, 2), supply((8, 99), (8, 99)))
        self.assertEqual((4, 4), (found.count, found.free_pcpus))
        self.assertIs(reasons.Code.FREE_PCPUS, found.misfit.root)

    def test_pages_run_out(self):
        found = capacity.fill(guest(1, 1, 20), supply((8, 25), (8, 9)))
        self.assertEqual((2, 14), (found.count, found.free_pcpus))

    def test_every_guest_cell_needs_a_host_cell_of_its_own(self):
        found = capacity.fill(guest(2, 4, 2), supply((8, 99), (4, 99)))
        self.assertEqual((1, 4), (found.count, found.free_pcpus))

    def test_guests_spread_so_that_the_most_fit(self):
        found = capacity.fill(guest(2, 4, 2),
                              supply((8, 99), (8, 99), (8, 99)))
        self.assertEqual(3, found.count)

    def test_filling_stops_at_the_limit(self):
        found = capacity.fill(guest(1, 1, 2), supply((8, 99)), limit=3)
        self.assertEqual((3, 5, None), (found.count, found.free_pcpus,
                                        found.misfit))

    def test_filling_can_continue_from_what_is_left(self):
        first = capacity.fill(guest(1, 6, 2), supply((8, 99)))
        second = capacity.fill(guest(1, 1, 2), first.supply)
        self.assertEqual((1, 2), (first.count, second.count))

    def test_a_guest_without_cells_needs_a_limit(self):
        with self.assertRaises(ValueError):
            capacity.fill(shape.Shape(()), supply((8, 99)))
        found = capacity.fill(shape.Shape(()), supply((8, 99)), limit=2)
        self.assertEqual(2, found.count)

    def test_a_host_without_room_takes_none(self):
        found = capacity.fill(guest(1, 9, 2), supply((8, 99)))
        self.assertEqual(0, found.count)
        self.assertIn('of the 9 PCPUs needed', found.misfit.message)


def compiled(*cells, **fields):
    return demand.compile_shape(shape.Shape(
        tuple(shape.GuestCell(*cell) for cell in cells),
        **{'cpu_policy': shape.CPUPolicy.DEDICATED, **fields}))


class OfShapeTest(unittest.TestCase):
    """A Demand compiled from a Shape."""

    def test_equal_cells_are_uniform(self):
        self.assertTrue(compiled((4, 0, 512), (4, 0, 512)).uniform)
        self.assertFalse(compiled((4, 0, 512), (4, 0, 513)).uniform)

    def test_isolated_emulator_threads_belong_to_the_first_cell(self):
        guest = compiled((4, 0, 512), (4, 0, 512), emulator_threads=(
            shape.EmulatorThreads.ISOLATE))
        self.assertEqual([1, 0], [cell.emulator_pcpus for cell in guest.cells])
        self.assertFalse(guest.uniform)

    def test_shared_guests_isolate_nothing(self):
        guest = compiled((0, 4, 512), cpu_policy=shape.CPUPolicy.SHARED,
                         emulator_threads=shape.EmulatorThreads.ISOLATE)
        self.assertEqual(0, guest.cells[0].emulator_pcpus)

    def test_page_sizes_by_class_are_recognized(self):
        self.assertTrue(compiled(
            (4, 0, 512, shape.PageClass.LARGE)).pages_by_class)
        for size in (None, 4, 2048):
            self.assertFalse(compiled((4, 0, 512, size)).pages_by_class)

    def test_a_guest_with_conditions_on_its_cells_is_selective(self):
        self.assertFalse(compiled((4, 0, 512)).selective)
        for fields in ({'devices': (shape.GuestDevices('gpu'),)},
                       {'numa_scope': shape.NUMAScope.SOCKET},
                       {'exclusive_cells': True}):
            self.assertTrue(compiled((4, 0, 512), **fields).selective)
        self.assertTrue(tiny.guest(4, physnets=frozenset({'a'})).selective)
        self.assertTrue(tiny.guest(4, tunneled=True).selective)

    def test_the_default_affinity_is_that_of_nova(self):
        guest = compiled((4, 0, 512), devices=(shape.GuestDevices('gpu'),))
        self.assertEqual(shape.PCIAffinity.LEGACY, guest.requests[0].affinity)


class AgainstOracleTest(unittest.TestCase):
    """The matrix of guest cells and host cells, against the oracle."""

    def test_pairs_and_shortages_are_those_of_the_oracle(self):
        short = 0
        for seed in range(2000):
            case = cases.a_case(random.Random(f'matrix {seed}'))
            demand, supply = cases.demand(case), cases.supply(case)
            matrix = fit_matrix.FitMatrix(demand, supply, supply.cells)
            fitting = [
                tuple(rank for rank, cell in enumerate(case.host)
                      if oracle.fits(case, number, cell))
                for number in range(len(case.guest))]
            with self.subTest(seed=seed):
                self.assertEqual(fitting, matrix.fitting)
                arranged = any(
                    all(rank in ranks for rank, ranks
                        in zip(arrangement, fitting, strict=True))
                    for arrangement in itertools.permutations(
                        range(len(case.host)), len(fitting)))
                shortage = matrix.shortage()
                self.assertEqual(arranged, shortage is None)
                short += not arranged
        self.assertGreater(short, 200)
        self.assertLess(short, 1800)


class ObstaclesTest(unittest.TestCase):
    def matrix(self):
        # Guest cells 1 and 2 are equal; only cell 1 has room for them.
        supply = tiny.host(4, 0, 6)
        return fit_matrix.FitMatrix(tiny.guest(2, 8, 8), supply, supply.cells)

    def test_equal_obstacles_are_listed_once_in_the_order_of_cells(self):
        obstacles = self.matrix().obstacles()
        self.assertEqual([0, 2], [obstacle.details['cell']
                                  for obstacle in obstacles])

    def test_guest_cells_and_host_cells_can_be_selected(self):
        matrix = self.matrix()
        self.assertEqual((), matrix.obstacles(guests=[0]))
        self.assertEqual([2], [obstacle.details['cell'] for obstacle
                               in matrix.obstacles(ranks=[1, 2])])

    def test_a_shortage_names_the_guest_cells_that_contend(self):
        shortage = self.matrix().shortage()
        self.assertEqual(reasons.Code.CELLS_CONTENDED, shortage.code)
        self.assertEqual({'guest_cells': '1, 2', 'free': 1, 'needed': 2},
                         shortage.details)


class MatchTest(unittest.TestCase):
    """Bipartite matching."""

    def test_every_left_node_gets_a_neighbor_of_its_own(self):
        neighbors = [(0, 1), (0,), (1, 2)]
        partner = fit_matrix.match(neighbors)
        self.assertEqual({0: 1, 1: 0, 2: 2}, partner)

    def test_too_few_neighbors_make_no_matching(self):
        self.assertIsNone(fit_matrix.match([(0, 1), (0, 1), (0, 1)]))

    def test_excluded_nodes_are_not_used(self):
        self.assertEqual({1: 0}, fit_matrix.match([(0, 1)], {0}))
        self.assertIsNone(fit_matrix.match([(0,)], {0}))

    def test_an_empty_graph_is_matched(self):
        self.assertEqual({}, fit_matrix.match([]))

    def test_contenders_have_too_few_neighbors_between_them(self):
        self.assertEqual([1, 2], fit_matrix.contenders([(0, 1), (2,), (2,)]))
        self.assertEqual([], fit_matrix.contenders([(0, 1), (1,)]))

    def test_it_agrees_with_trying_all_assignments(self):
        dice = random.Random(1)
        for _ in range(2000):
            size = dice.randint(1, 4)
            neighbors = [tuple(right for right in range(dice.randint(1, 5))
                            if dice.random() < 0.5) for _ in range(size)]
            possible = any(
                all(right in nodes for right, nodes in
                    zip(choice, neighbors, strict=True))
                for choice in itertools.permutations(range(5), size))
            self.assertEqual(possible, fit_matrix.match(neighbors) is not None)
            contenders = fit_matrix.contenders(neighbors)
            self.assertEqual(possible, not contenders)
            if contenders:
                adjacent = set().union(*(neighbors[c] for c in contenders))
                self.assertLess(len(adjacent), len(contenders))


class MixTest(unittest.TestCase):
    """The mix of requests that a scheduler has seen."""

    def setUp(self):
        super().setUp()
        self.mix = scarcity.Mix()

    def observe(self, *pcpus, times=1):
        for _ in range(times):
            self.mix.observe(tiny.guest(*pcpus))

    def test_a_kind_weighs_as_many_cpus_as_were_requested(self):
        self.observe(4, times=3)
        self.observe(8, 8)
        self.assertEqual((tiny.guest(4), tiny.guest(8, 8)), self.mix.kinds)
        self.assertEqual((12 / 28, 16 / 28), self.mix.weights())

    def test_names_of_devices_make_no_kinds(self):
        wanted = tiny.request()
        for request in (wanted, dataclasses.replace(wanted, name='other')):
            self.mix.observe(tiny.guest(4, requests=(request,)))
        self.mix.observe(tiny.guest(4, requests=(tiny.request(count=2),)))
        self.assertEqual((2 / 3, 1 / 3), self.mix.weights())

    def test_old_requests_are_forgotten(self):
        self.observe(4, times=scarcity.MEMORY)
        self.observe(8, times=8 * scarcity.MEMORY)
        self.assertLess(self.mix.weights()[0], 0.01)

    def test_the_kinds_stay_the_same_object_until_they_change(self):
        self.observe(4)
        before = self.mix.kinds
        self.observe(4, times=3 * scarcity.MEMORY)
        self.assertIs(before, self.mix.kinds)

    def test_the_kinds_with_the_most_cpus_matter(self):
        for pcpus in range(1, 2 * scarcity.MAX_KINDS + 1):
            self.observe(pcpus)
        self.observe(1, times=scarcity.REVIEW)
        kinds = [kind.cells[0].pcpus for kind in self.mix.kinds]
        self.assertEqual(scarcity.MAX_KINDS, len(kinds))
        self.assertEqual([1, *range(scarcity.MAX_KINDS + 2,
                                    2 * scarcity.MAX_KINDS + 1)], kinds)
        self.assertAlmostEqual(1.0, sum(self.mix.weights()))

    def test_what_it_remembers_is_bounded(self):
        for pcpus in range(1, 5 * scarcity.MAX_COUNTED):
            self.observe(pcpus)
        self.assertLessEqual(len(self.mix._counts),
                             scarcity.MAX_COUNTED + scarcity.REVIEW)

    def test_equal_histories_give_equal_mixes(self):
        other = scarcity.Mix()
        for number in range(500):
            demand = tiny.guest(1 + number * 7 % 40)
            self.mix.observe(demand)
            other.observe(demand)
        self.assertEqual(other.kinds, self.mix.kinds)
        self.assertEqual(other.weights(), self.mix.weights())


class AffinityTest(unittest.TestCase):
    """Networks with affinity to host cells."""

    CELLS = (
        tiny.host_cell(0, physnets=frozenset({'a'})),
        tiny.host_cell(1, physnets=frozenset({'a', 'b'})),
        tiny.host_cell(2, tunneled=True))

    def met(self, cells, **networks):
        affinities = affinity_check.find_affinities(
            tiny.guest(1, **networks), self.CELLS)
        return affinity_check.are_satisfied(affinities, cells)

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
        self.assertEqual((), affinity_check.find_affinities(
            tiny.guest(1), self.CELLS))


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


REQUIRE = shape.ThreadPolicy.REQUIRE
ISOLATE = shape.ThreadPolicy.ISOLATE


class ChooseTest(unittest.TestCase):
    """The CPUs to which Nova pins a guest."""

    def choose(self, guest, host):
        chosen = pins.choose(guest, host)
        return chosen.cpus, set(chosen.emulator), set(chosen.idle)

    def test_siblings_are_filled_core_by_core(self):
        host = tiny.host_cell(threads=2, free=frozenset({1, 2, 3, 6, 7}))
        self.assertEqual(((2, 3, 6, 7), set(), set()),
                         self.choose(tiny.guest_cell(4), host))

    def test_single_threads_are_used_if_siblings_are_too_few(self):
        host = tiny.host_cell(threads=2, free=frozenset({1, 2, 3, 6, 7}))
        self.assertEqual(((1, 2, 3, 6, 7), set(), set()),
                         self.choose(tiny.guest_cell(5), host))

    def test_part_of_a_wide_core_is_used_before_a_narrow_core(self):
        host = tiny.host_cell(threads=4, free=frozenset({0, 1, 2, 4, 5}))
        self.assertEqual(
            ((0, 1, 4, 5), set(), set()),
            self.choose(tiny.guest_cell(4, threads=REQUIRE), host))

    def test_emulator_threads_get_the_first_cpu_left(self):
        host = tiny.host_cell(threads=2, free=frozenset({1, 2, 3}))
        self.assertEqual(
            ((2, 3), {1}, set()),
            self.choose(tiny.guest_cell(2, emulator_pcpus=1), host))

    def test_isolate_keeps_siblings_idle(self):
        host = tiny.host_cell(threads=2, taken=2, shared=frozenset(range(8)))
        self.assertEqual(
            ((2, 4), {6}, {3, 5, 7}),
            self.choose(tiny.guest_cell(2, threads=ISOLATE,
                                        emulator_pcpus=1), host))
        self.assertEqual(
            {2, 3, 4, 5}, pins.choose(tiny.guest_cell(
                2, threads=ISOLATE), host).taken)

    def test_shared_vcpus_are_not_pinned(self):
        guest = tiny.guest_cell(0, vcpus=2, policy=shape.CPUPolicy.SHARED)
        self.assertEqual(((), set(), set()),
                         self.choose(guest, tiny.host_cell()))


SIZES = (2048, 2048)


class RetryCheckTest(unittest.TestCase):
    def check(self, guest, host, sizes=SIZES):
        return move_check.check_retry(guest, host, [sizes])

    def test_guests_that_any_claim_serves_well_do_not_matter(self):
        self.assertFalse(move_check.needs_retry_check(tiny.guest(4, 4)))
        self.assertFalse(move_check.needs_retry_check(tiny.guest(4)))
        self.assertTrue(move_check.needs_retry_check(tiny.guest(4, 2)))
        self.assertFalse(move_check.needs_retry_check(tiny.guest(
            4, 4, requests=(tiny.request(),))))

    def test_unequal_cells_can_be_confused(self):
        guest, host = tiny.guest(2, 4), tiny.host(0, 6, 6)
        self.assertIsNone(claim.check(guest, host))
        misfit = self.check(guest, host)
        self.assertEqual(
            "wrong if the build fails on another host (Nova's defect H): the "
            'claim on the compute host would place guest cell 1 on cell 0 '
            'with CPUs or memory that are not free there '
            "(Nova's defect A)", misfit.message)
        self.assertEqual(claim.find_defect(dataclasses.replace(
            guest, numbers=(-1, -1)), host), misfit.causes[0])

    def test_equal_cells_and_empty_hosts_are_safe(self):
        self.assertIsNone(self.check(tiny.guest(4, 4), tiny.host(8, 0, 2)))
        self.assertIsNone(self.check(tiny.guest(2, 4), tiny.host(0, 0, 0)))

    def test_a_claim_that_refuses_the_guest_is_harmless(self):
        self.assertIsNone(self.check(tiny.guest(2, 4), tiny.host(8, 8, 8)))
        self.assertIsNone(self.check(tiny.guest(2, 4), tiny.host(0)))

    def test_page_sizes_are_those_of_the_other_host(self):
        guest = dataclasses.replace(tiny.guest(2, 2), cells=(
            tiny.guest_cell(2, page_kib=shape.PageClass.LARGE),) * 2)
        self.assertEqual(SIZES, move_check.predict_pages(
            guest, tiny.host(0, 0)))
        self.assertIsNone(move_check.predict_pages(guest, tiny.host(8, 8)))
        self.assertIsNone(self.check(guest, tiny.host(0, 0)))
        giant = (tiny.GIANT_KIB,) * 2
        self.assertIsNone(self.check(guest, tiny.host(0, 0), giant))


def cell(number=0, pcpus=8, taken=0, **fields):
    """A host cell whose 2 MiB pages are taken in proportion to its CPUs."""
    pages = (tiny.pages(4, 2 << 20),
             tiny.pages(tiny.HUGE_KIB, 512 * pcpus, 512 * taken))
    return tiny.host_cell(number, pcpus, taken, **{'pages': pages, **fields})


def host(*cells, pools=(), **fields):
    """A host of cells, each (PCPUs, taken); two cells make a socket."""
    return type(tiny.host())(
        tuple(cell(number, *counts) for number, counts in enumerate(cells)),
        pools, **fields)


def score_guest(*pcpus, requests=(), memory_mib=1024):
    """A guest with so many CPUs in each cell, and 1 GiB for each CPU."""
    return type(tiny.guest())(
        tuple(tiny.guest_cell(count, count * memory_mib)
              for count in pcpus), requests=requests)


class LocalityTest(unittest.TestCase):
    """How near the devices of a guest are."""

    def locality(self, supply, *cells, count=1, affinity='preferred'):
        demand = score_guest(4, requests=(
            tiny.request(count=count, affinity=affinity),))
        return score.locality(demand, supply,
                              cell_assignments.CellAssignment(cells))

    def test_devices_of_the_guests_own_cells_are_local(self):
        supply = host((8, 0), (8, 0), pools=tiny.gpus(1, 4))
        self.assertEqual(1.0, self.locality(supply, 0))

    def test_devices_of_other_cells_are_not(self):
        supply = host((8, 0), (8, 0), pools=tiny.gpus(0, 4))
        self.assertEqual(0.0, self.locality(supply, 0))

    def test_some_of_both_count_in_proportion(self):
        supply = host((8, 0), (8, 0), pools=tiny.gpus(1, 4))
        self.assertEqual(0.5, self.locality(supply, 0, count=2))

    def test_a_device_that_tells_no_cell_is_not_local(self):
        supply = host((8, 0), pools=(tiny.devices.pool(None, 2, 'gpu'),))
        self.assertEqual(0.0, self.locality(supply, 0, affinity='legacy'))

    def test_only_devices_that_may_be_distant_leave_a_choice(self):
        for affinity, choice in (('required', False), ('preferred', True),
                                 ('socket', True), ('legacy', True)):
            self.assertIs(choice, score.has_choice(
                score_guest(4, requests=(tiny.request(affinity=affinity),))))
        self.assertIs(False, score.has_choice(score_guest(4)))

    def test_a_guest_without_devices_has_none(self):
        self.assertEqual(0.0, score.locality(
            score_guest(4), host((8, 0)),
            cell_assignments.CellAssignment((0,))))

    def test_devices_that_cannot_be_had_are_not_local(self):
        supply = host((8, 0), pools=tiny.gpus(1))
        self.assertEqual(0.0, self.locality(supply, 0, count=2))


class OfHostTest(unittest.TestCase):
    """A Supply computed from a Host and its Usage."""

    HOST = model_host.Host('machine', cells=tuple(
        model_host.Cell(
            id=number, socket=number,
            cpus=frozenset(range(number, number + 4)),
            siblings=(frozenset({number, number + 1}),
                      frozenset({number + 2, number + 3})),
            llc=(), memory_mib=1024,
            pages=(model_host.PagePool(4, 1 << 18),
                   model_host.PagePool(2048, 256)))
        for number in (0, 8)))

    def only(self, **fields):
        used = usage.Usage((usage.CellUsage(**{
            'cell': 8, 'dedicated_cpus': frozenset({9, 10, 11}),
            **fields}),), cpu_ratio=4.0, ram_ratio=1.5)
        cell, = fit_supply.make_supply(self.HOST, used).cells
        return cell

    def test_cells_that_the_usage_leaves_out_are_not_available(self):
        self.assertEqual(8, self.only().id)

    def test_cores_are_limited_to_the_cpus_for_guests(self):
        self.assertEqual(({9}, {10, 11}), self.only().siblings)
        self.assertEqual(({8, 9}, {10, 11}),
                         self.only(shared_cpus=frozenset({8})).siblings)
        self.assertEqual(
            ({10},), self.only(dedicated_cpus=frozenset({10})).siblings)

    def test_pinned_cpus_are_not_free(self):
        cell = self.only(pinned_cpus=frozenset({9}))
        self.assertEqual(({9, 10, 11}, {10, 11}), (cell.dedicated, cell.free))

    def test_pages_that_the_usage_leaves_out_are_free(self):
        cell = self.only(pages=(usage.PageUsage(2048, used=6, reserved=50),))
        self.assertEqual([(4, 1 << 18, 0, 1 << 18), (2048, 256, 6, 200)],
                         list(map(tuple, cell.pages)))

    def test_ratios_are_those_of_the_usage(self):
        whole = fit_supply.make_supply(self.HOST, usage.Usage((), 4.0, 1.5))
        self.assertEqual((4.0, 1.5), (whole.cpu_ratio, whole.ram_ratio))

    def test_a_cell_is_empty_if_no_instance_uses_it(self):
        self.assertTrue(self.only().empty)
        for taken in ({'pinned_cpus': frozenset({9})}, {'cpu_usage': 1},
                      {'memory_used_mib': 1},
                      {'pages': (usage.PageUsage(4, used=1),)}):
            self.assertFalse(self.only(**taken).empty, taken)

    def test_a_cell_without_cores_has_no_threads(self):
        self.assertEqual(0, tiny.host_cell(siblings=()).threads_per_core)
        self.assertEqual(2, tiny.host_cell(threads=2).threads_per_core)


class LateMisfitTest(unittest.TestCase):
    """A refusal whose reason is looked for when it is read."""

    def setUp(self):
        super().setUp()
        self.looked = 0
        self.misfit = engine.check(tiny.guest(6, 6), tiny.host(3, 4, 0))
        self.late = late_misfit.LateMisfit(self.explain)

    def explain(self):
        self.looked += 1
        return self.misfit

    def test_nothing_is_looked_for_before_it_is_read(self):
        self.assertTrue(self.late)
        self.assertEqual(0, self.looked)

    def test_it_reads_like_the_refusal_and_is_looked_for_once(self):
        for name in ('code', 'details', 'causes', 'message', 'root'):
            self.assertEqual(getattr(self.misfit, name),
                             getattr(self.late, name))
        self.assertEqual(str(self.misfit), f'{self.late}')
        self.assertEqual(1, self.looked)

    def test_it_equals_the_refusal(self):
        self.assertEqual(self.misfit, self.late)
        self.assertEqual(self.late, late_misfit.LateMisfit(self.explain))
        self.assertEqual({self.misfit}, {self.late})
        self.assertNotEqual(self.late, engine.check(
            tiny.guest(7), tiny.host(3)))

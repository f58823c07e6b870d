# SPDX-License-Identifier: Apache-2.0

"""The count of cells with room, held against the fit engine."""

import collections
import contextlib
import copy
import random
from unittest import mock

from nova import objects

from hpcvirt.fit import cell as cells
from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.model import shape
from hpcvirt.nova import adapter
from hpcvirt.nova import decision
from tests.builders import cases
from tests.functional import filtering
from tests.functional import nova_objects
from tests.functional import soundness
from tests.functional import test_malformed_hosts

REQUESTS, MANY_REQUESTS = 120, 4000
HOSTS = 4


class ReadCells(list):
    """Counts the cells that are looked at."""

    read = 0

    def __iter__(self):
        for cell in super().__iter__():
            self.read += 1
            yield cell


class ShortageTest(filtering.FilterTestCase):
    """What free CPUs and pages alone show."""

    def is_short(self, taken, pcpus, change=id, **fields):
        state, = self.states(filtering.case(filtering.host(*taken)))
        for cell in state.numa_topology.cells:
            change(cell)
        guest = tuple(demands.CellDemand(**{
            'policy': shape.CPUPolicy.DEDICATED, 'threads': None,
            'pcpus': count, 'vcpus': 0, 'memory_mib': 1024,
            'page_kib': 2048, **fields}) for count in pcpus)
        test = decision.make_shortage_test(demands.Demand(guest))
        return test(state.numa_topology)

    def test_free_pcpus_are_counted(self):
        free = [len(cell.free_pcpus) for cell in self.states(
            filtering.case(filtering.host(0)))[0].numa_topology.cells]
        most = free[0]
        self.assertFalse(self.is_short((0, 0, 1), (most, most)))
        self.assertTrue(self.is_short((0, 1, 1), (most, most)))

    def test_a_pcpu_of_the_emulator_threads_is_counted(self):
        free = [len(cell.free_pcpus) for cell in self.states(
            filtering.case(filtering.host(0)))[0].numa_topology.cells]
        most = free[0]
        self.assertFalse(self.is_short((0,), (most - 1,), emulator_pcpus=1))
        self.assertTrue(self.is_short((0,), (most,), emulator_pcpus=1))

    def test_pages_of_the_requested_size_are_counted(self):
        self.assertFalse(self.is_short((0,), (1,)))
        self.assertTrue(self.is_short((0,), (1,), memory_mib=1 << 24))
        self.assertTrue(self.is_short((0,), (1,), page_kib=16384))

    def test_pages_that_are_reserved_are_not_free(self):
        def reserve(cell):
            for pages in cell.mempages:
                pages.reserved = pages.total - 511
        self.assertFalse(self.is_short((0,), (1,), reserve, memory_mib=1022))
        self.assertTrue(self.is_short((0,), (1,), reserve, memory_mib=1024))

    def test_smt_siblings_are_counted(self):
        def half(cell):
            cell.pinned_cpus = {min(core) for core in cell.siblings}
        require = {'threads': shape.ThreadPolicy.REQUIRE}

        def pair(cell):
            cpus = sorted(cell.pcpuset)
            cell.siblings = [set(cpus[at:at + 2])
                             for at in range(0, len(cpus), 2)]
        self.assertFalse(self.is_short((0,), (2,), pair, **require))
        self.assertTrue(self.is_short(
            (0,), (2,), lambda cell: (pair(cell), half(cell)), **require))

    def test_unequal_cells_are_not_counted(self):
        first, second = (demands.CellDemand(
            policy=shape.CPUPolicy.DEDICATED, threads=None, pcpus=count,
            vcpus=0, memory_mib=1024) for count in (99, 100))
        self.assertIsNone(decision.make_shortage_test(
            demands.Demand((first, second))))

    def test_a_pinned_cpu_that_is_not_dedicated_is_malformed(self):
        state, = self.states(filtering.case(filtering.host(0)))
        cell, = state.numa_topology.cells
        cell.pinned_cpus = {9999}
        spec = nova_objects.request_spec(filtering.case(
            (), (len(cell.pcpuset),)))
        (_, misfit), = decision.FilterDecision(spec).judge([state])
        self.assertIs(reasons.Code.MALFORMED_HOST, misfit.code)
        self.assertIn('not dedicated', str(misfit))

    def test_no_more_cells_are_looked_at_than_necessary(self):
        for taken, read in (((0,) * 8, 2), ((1, 1, *(0,) * 6), 4),
                            ((*(1,) * 7, 0), 7)):
            state, = self.states(filtering.case(filtering.host(*taken)))
            most = len(state.numa_topology.cells[0].pcpuset)
            state.numa_topology._obj_cells = found = ReadCells(
                state.numa_topology._obj_cells)
            spec = nova_objects.request_spec(filtering.case(
                (), (most, most)))
            decision.make_shortage_test(adapter.demand(spec))(
                state.numa_topology)
            self.assertEqual(read, found.read)


class AgainstTheEngineTest(soundness.ClaimingTestCase):
    """Random fleets, some hosts of which are damaged."""

    def test_a_cell_that_is_short_has_an_obstacle(self):
        short = 0
        for seed in range(REQUESTS):
            case = cases.a_case(random.Random(f'obstacle {seed}'))
            demand = adapter.demand(nova_objects.request_spec(case))
            for guest in demand.cells:
                is_short = decision.make_shortage_test(
                    demands.Demand((guest,)))
                for cell in nova_objects.host_topology(case).cells:
                    if is_short(objects.NUMATopology(cells=[cell])):
                        short += 1
                        self.assertIsNotNone(cells.obstacle(
                            guest, adapter._cell(cell), 1e9, 1e9))
        self.assertGreater(short, REQUESTS)

    def test_verdicts_and_reasons_are_those_without_it(self):
        self.assert_are_those_without_it(REQUESTS)

    def test_periodic_so_are_those_of_many_requests(self):
        self.assert_are_those_without_it(MANY_REQUESTS)

    def assert_are_those_without_it(self, requests):
        quick = collections.Counter()
        for seed in range(requests):
            dice = random.Random(f'quick {seed}')
            first = dice.choice((cases.a_case, cases.a_plain_case))(dice)
            fleet = [first, *(cases.on_another_host(dice, first)
                              for _ in range(HOSTS - 1))]
            soundness.CONF.set_override(
                'packing_host_numa_cells_allocation_strategy', first.packing,
                'compute')
            spec = nova_objects.request_spec(first)
            spec.num_instances = dice.choice((1, 1, 2))
            with self.subTest(seed=seed):
                quick += self.compare(fleet, spec, seed)
        self.assertGreater(quick['short'], requests // 4)
        self.assertGreater(quick['damaged'], requests // 50)
        self.assertGreater(quick['passed'], requests // 4)

    def compare(self, fleet, spec, seed):
        """Judge a fleet for each guest of a request, in both ways.

        :returns: how the quick way has ended
        """
        ways = [self.judge_all(fleet, copy.deepcopy(spec), seed, quick)
                for quick in (True, False)]
        ended = collections.Counter()
        for quick, slow in zip(*ways, strict=True):
            # The engine is late where it says what the claim would refuse.
            short = (isinstance(quick[0], reasons.LateMisfit)
                     and not isinstance(slow[0], reasons.LateMisfit))
            self.assertEqual(slow[1:3], quick[1:3])
            # One that is malformed keeps candidates if it is not short.
            self.assertEqual([] if short else slow[3], quick[3])
            ended['short'] += short
            ended['passed'] += quick[0] is None
            ended['damaged'] += short and (
                quick[0].code is reasons.Code.MALFORMED_HOST)
        return ended

    def judge_all(self, fleet, spec, seed, quick):
        dice = random.Random(seed)
        states = [nova_objects.host_state(case, f'host{number}')
                  for number, case in enumerate(fleet)]
        for state in states:
            if dice.random() < 0.2:
                name = dice.choice(sorted(test_malformed_hosts.BROKEN))
                test_malformed_hosts.BROKEN[name][0](state, dice)
        for _ in range(spec.num_instances):
            with contextlib.ExitStack() as stack:
                if not quick:
                    stack.enter_context(mock.patch.object(
                        decision, 'make_shortage_test', lambda _: None))
                request = decision.FilterDecision(spec)
            verdicts = list(request.judge(states))
            for state, misfit in verdicts:
                limits = state.limits.get('numa_topology')
                yield (misfit, misfit and (misfit.code, str(misfit)),
                       limits and limits.obj_to_primitive(),
                       state.allocation_candidates)
            # The quick way may have removed the candidates of these.
            states = [state for state, misfit in verdicts if not misfit or
                      misfit.code is not reasons.Code.MALFORMED_HOST]
            passed = [state for state, misfit in verdicts if misfit is None]
            if not passed:
                return
            # Nova's record of a pick may fail.
            with contextlib.suppress(Exception):
                passed[0].consume_from_request(spec)

    def test_the_guest_of_a_move_is_not_judged_at_once(self):
        spec = nova_objects.request_spec(filtering.case(
            filtering.host(0, 0), (4, 4), policy='shared'))
        self.assertIsNotNone(decision.FilterDecision(spec)._is_short)
        spec.requested_destination = objects.Destination(
            allow_cross_cell_move=True)
        request = decision.FilterDecision(spec)
        self.assertIsNotNone(request.start.move)
        self.assertIsNone(request._is_short)

# SPDX-License-Identifier: Apache-2.0

"""Hostile requests and malformed hosts against the plug-ins of the scheduler.

Nothing is raised, and what one tenant requests or one host reports does not
change what becomes of the others.
"""

import contextlib
import copy
import gc
import logging
import math
import random
import tracemalloc
import uuid

import fixtures
from nova.pci import request as pci_request

from benchmarks import candidates
from benchmarks import fleet
from benchmarks import hostile_memory
from hpcvirt.fit import rating
from hpcvirt.fit import reasons
from hpcvirt.fit import room
from hpcvirt.nova import config
from hpcvirt.nova import decision
from hpcvirt.nova import filters
from hpcvirt.nova import host_record
from hpcvirt.nova import weights
from tests.builders import cases
from tests.functional import filtering
from tests.functional import hostile
from tests.functional import nova_objects
from tests.functional import soundness

USUAL, PERIODIC = 100, 10_000
#: Malformed hosts are refused with one warning, or a few if they change.
MAX_STATES = 300
MAX_KNOWN = 300


class HostileTestCase(soundness.ClaimingTestCase):

    def setUp(self):
        super().setUp()
        config.register()
        soundness.CONF.set_override('alias', hostile.ALIASES, 'pci')
        self.addCleanup(soundness.CONF.clear_override, 'alias', 'pci')
        pci_request.get_alias_from_config.cache_clear()
        self.addCleanup(pci_request.get_alias_from_config.cache_clear)
        host_record._warned.clear()
        self.enterContext(fixtures.MonkeyPatch(
            'hpcvirt.fit.room.MAX_STATES', MAX_STATES))
        self.enterContext(fixtures.MonkeyPatch(
            'hpcvirt.nova.weights.MAX_KNOWN', MAX_KNOWN))
        self.filter = filters.HPCTopologyFilter()
        self.weigher = weights.HPCTopologyWeigher()

    def schedule(self, spec, states):
        """Filter and weigh hosts.

        :returns: the hosts that pass, and their weights
        """
        passed = list(self.filter.filter_all(states, spec))
        return [state.host for state in passed], self.weigh(spec, passed)

    def weigh(self, spec, states):
        found = self.weigher._weigh(states, spec)
        self.assertEqual(len(states), len(found))
        self.assertTrue(all(map(math.isfinite, found)), found)
        return found


class RequestTest(HostileTestCase):
    """Whatever a tenant requests, all requests are served."""

    def test_random_requests(self):
        self.serve(USUAL, 'usual')

    def test_periodic_random_requests(self):
        self.serve(PERIODIC, 'periodic')

    def serve(self, count, name):
        """Schedule random requests.

        :param name: of this series of random numbers
        """
        dice = random.Random(f'requests {name}')
        good = nova_objects.request_spec(
            filtering.case(filtering.host(0)), filtering.PINNED)
        home = nova_objects.host_state(
            filtering.case(filtering.host(0, 0)), 'home')
        made = placed = zeros = 0
        while made < count:
            states = hostile.a_fleet(dice)
            spec = hostile.a_request(dice)
            if spec is None:
                continue
            made += 1
            zeros += any(request.count <= 0
                         for request in spec.pci_requests.requests)
            with self.subTest(number=made, specs=spec.flavor.extra_specs):
                fresh = hostile.fresh(states)
                soundness.CONF.set_override(
                    'packing_host_numa_cells_allocation_strategy',
                    dice.random() < 0.3, 'compute')
                passed, _ = self.schedule(spec, fresh)
                placed += bool(passed)
                # A second guest of the request, and another tenant's.
                self.schedule(spec, [state for state in fresh
                                     if state.host in passed])
                self.weigh(spec, hostile.fresh(states))
                names, _ = self.schedule(good, hostile.fresh([home]))
                self.assertEqual(['home'], names)
                vars(good).pop(weights._OBSERVED, None)
        self.assertGreater(placed, count // 10)
        self.assertGreater(zeros, count // 20)
        self.assertEqual({}, host_record._warned)


class CountZeroTest(HostileTestCase):
    """Requests for no device, which nova-api accepts."""

    def spec(self, alias):
        """A request for a guest with NUMA topology and an alias."""
        spec = nova_objects.request_spec(filtering.case(
            filtering.host(0)), {**filtering.PINNED,
                                 'pci_passthrough:alias': alias})
        spec.pci_requests = pci_request.get_pci_requests_from_flavor(
            spec.flavor)
        return spec

    def states(self, *pools):
        """Two hosts."""
        return [nova_objects.host_state(filtering.case(
            filtering.host(0, 0), pools=pools), f'host{number}')
            for number in range(2)]

    def test_later_requests_of_others_are_weighed(self):
        pool = cases.Pool(0, 2, {
            'vendor_id': '8086', 'product_id': '1515',
            'dev_type': 'type-PCI', 'address': '0000:01:00.0'})
        for alias in ('gpu:0', 'gpu:1,gpu:-1', 'gpu:-1'):
            self.assertEqual(['host0', 'host1'], self.schedule(
                self.spec(alias), self.states(pool))[0])
            _, found = self.schedule(nova_objects.request_spec(
                filtering.case(filtering.host(0))), self.states(pool))
            self.assertEqual([1.0, 1.0], found)

    def test_the_filter_decides_as_novas(self):
        spec = self.spec('gpu:0')
        for state in self.states():
            # Nova wants a pool that matches, of which it takes no device.
            self.assertFalse(state.pci_stats.support_requests(
                spec.pci_requests.requests, {}))
        self.assertEqual([], self.schedule(spec, self.states())[0])


class IsolationTest(HostileTestCase):
    """A host that cannot be rated."""

    def test_it_comes_last_and_changes_no_other(self):
        spec = nova_objects.request_spec(
            filtering.case(filtering.host(0), (2,)), filtering.PINNED)
        states = [nova_objects.host_state(filtering.case(
            filtering.host(*taken)), f'host{number}')
            for number, taken in enumerate(((0, 0), (2, 2), (4, 4)))]
        usual = self.weigh(spec, hostile.fresh(states[:2]))
        self.assertNotEqual(*usual)
        real = room.RoomCounter.prospects

        def fail_for_four(counter, supply, *others):
            if len(supply.cells[0].free) == 4:
                raise ZeroDivisionError('four')
            return real(counter, supply, *others)

        logging.disable(logging.NOTSET)
        log = self.enterContext(fixtures.FakeLogger(
            'hpcvirt.nova.host_record', level=logging.WARNING))
        with fixtures.MonkeyPatch('hpcvirt.fit.room.RoomCounter.prospects',
                                  fail_for_four):
            for _ in range(3):
                self.assertEqual([*usual, 0.0], self.weigh(
                    spec, hostile.fresh(states)))
        self.assertEqual(1, log.output.count('host2, '))


class Forgetful(weights.HPCTopologyWeigher):
    """A weigher that remembers only the mix of requests."""

    def _rate(self, _, *arguments):
        self._counter = room.RoomCounter(self._mix.kinds)
        return super()._rate({}, *arguments)


class RememberingTest(HostileTestCase):
    """What a weigher remembers changes no weight."""

    def test_weights_are_those_without_memory(self):
        self.compare_weights(12, 'usual')

    def test_periodic_weights_are_those_without_memory(self):
        self.compare_weights(500, 'periodic')

    def compare_weights(self, fleets, name):
        dice = random.Random(f'remembering {name}')
        self.told_apart = self.reused = 0
        for number in range(fleets):
            with self.subTest(number=number):
                self.compare_fleet(dice)
        self.assertGreater(self.told_apart, fleets // 2)
        self.assertGreater(self.reused, fleets)

    def compare_fleet(self, dice):
        """Weigh hosts for requests that return, while the hosts change."""
        case = cases.a_case(dice)
        specs = [nova_objects.request_spec(case)]
        states = hostile.a_fleet(dice) + [
            nova_objects.host_state(case, f'equal{number}')
            for number in range(3)]
        for number in range(3):
            case = cases.a_case(dice)
            states.append(nova_objects.host_state(case, f'other{number}'))
            spec = hostile.a_request(dice)
            specs += [nova_objects.request_spec(case), *([spec] * bool(spec))]
        if dice.random() < 0.5:
            hostile.break_host(dice, states[0])
        weigher, truth = weights.HPCTopologyWeigher(), Forgetful()
        for _ in range(12):
            soundness.CONF.set_override(
                'packing_host_numa_cells_allocation_strategy',
                dice.random() < 0.3, 'compute')
            spec = dice.choice(specs)
            some = dice.sample(states, dice.randint(1, len(states)))
            ours, theirs = hostile.fresh(some), hostile.fresh(some)
            for state in (*ours, *theirs):
                # A pick changes them in place.
                if hasattr(state.pci_stats, 'pools'):
                    state.pci_stats = copy.copy(state.pci_stats)
                    state.pci_stats.pools = list(map(
                        copy.copy, state.pci_stats.pools))
            if dice.random() < 0.5:
                ours = list(self.filter.filter_all(ours, spec))
                theirs = list(self.filter.filter_all(theirs, spec))
            found = weigher._weigh(ours, spec)
            self.assertEqual(truth._weigh(theirs, spec), found)
            self.told_apart += len(set(found)) > 2
            self.reused += sum(map(len, weigher._known.values()))
            if found:
                # The next guest of the request; then the host reports it.
                pick = found.index(max(found))
                for state in (ours[pick], theirs[pick]):
                    with contextlib.suppress(Exception):
                        state.consume_from_request(spec.obj_clone())
                found = weigher._weigh(ours, spec)
                self.assertEqual(truth._weigh(theirs, spec), found)
                own, = (state for state in some
                        if state.host == ours[pick].host)
                own.numa_topology = ours[pick].numa_topology
                own.pci_stats = ours[pick].pci_stats


class HostTest(HostileTestCase):
    """A malformed host changes nothing for the others."""

    def test_random_hosts(self):
        self.break_hosts(USUAL, 'usual', hostile.break_host)

    def test_random_records(self):
        self.break_hosts(USUAL, 'usual', hostile.break_json)

    def test_periodic_random_hosts(self):
        self.break_hosts(PERIODIC, 'periodic', hostile.break_host)

    def test_periodic_random_records(self):
        self.break_hosts(PERIODIC, 'periodic', hostile.break_json)

    def break_hosts(self, count, name, break_it):
        """Schedule requests on a malformed host and two others.

        :param name: of this series of random numbers
        :param break_it: a function of :mod:`tests.functional.hostile`
        """
        dice = random.Random(f'hosts {name} {break_it.__name__}')
        made = refused = 0
        while made < count:
            states = hostile.a_fleet(dice)
            spec = hostile.a_request(dice, True)
            case = cases.a_case(dice)
            if spec is None or dice.random() < 0.7:
                spec = nova_objects.request_spec(case)
                states = [nova_objects.host_state(case, f'host{number}')
                          for number in range(3)]
            what = break_it(dice, states[0])
            if what is None:
                continue
            made += 1
            with self.subTest(number=made, what=what):
                refused += self.compare(spec, states)
        self.assertGreater(refused, count // 200)
        self.assertLess(len(host_record._warned), count)

    def compare(self, spec, states):
        """Hold the verdicts on good hosts with a bad one to those without.

        :returns: whether the bad one is refused as malformed
        """
        alone = self.schedule(spec, hostile.fresh(states[1:]))[0]
        together, _ = self.schedule(spec, hostile.fresh(states))
        self.assertEqual(alone, [name for name in together
                                 if name != 'host0'])
        self.weigh(spec, hostile.fresh(states))
        misfit = decision.FilterDecision(spec).refuse(
            hostile.fresh(states[:1])[0])
        if misfit is None or misfit.code is not reasons.Code.MALFORMED_HOST:
            return False
        self.assertNotIn('host0', together)
        return True


class MemoryTest(HostileTestCase):
    """What requests and hosts leave behind is bounded."""

    def test_periodic_memory_stays_level(self):
        dice = random.Random('memory')
        used = []
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for _ in range(4):
            made = 0
            while made < 800:
                spec = hostile.a_request(dice)
                if spec is None:
                    continue
                made += 1
                states = hostile.a_fleet(dice, 2)
                hostile.break_host(dice, states[0])
                self.schedule(spec, states)
            del spec, states
            gc.collect()
            used.append(tracemalloc.get_traced_memory()[0])
        self.assertLess(used[3] - used[1], 1 << 20, used)

    def test_what_is_remembered_is_bounded(self):
        dice = random.Random('remembered')
        for _ in range(USUAL):
            spec = nova_objects.request_spec(cases.a_case(dice))
            states = hostile.a_fleet(dice, 2)
            hostile.break_host(dice, states[0])
            self.weigh(spec, states)
            self.assertLess(len(self.weigher._mix._demands),
                            rating.MAX_COUNTED + rating.REVIEW)
            known = sum(map(len, self.weigher._known.values()))
            self.assertLessEqual(known, MAX_KNOWN + len(states))
            self.assertLessEqual(len(self.weigher._counter._rooms),
                                 MAX_STATES)
            self.assertLessEqual(len(host_record._warned),
                                 host_record._MAX_WARNINGS)


class LongTextTest(HostileTestCase):
    """Hosts that report longer text than is read."""

    def refuse(self, change, extra_specs=None):
        """Return why a host is refused whose record was changed."""
        pool = filtering.gpu(0, str(uuid.UUID(int=7)))
        request = filtering.gpu_request()
        case = filtering.case(
            filtering.host(0), pools=(pool,), requests=(request,),
            mappings=({'': ['root'], f'{request.id}-0': [pool.provider]},))
        spec = nova_objects.request_spec(case, {
            **filtering.PINNED, **(extra_specs or {})})
        state = nova_objects.host_state(case)
        self.assertIsNone(decision.FilterDecision(spec).refuse(state))
        state = nova_objects.host_state(case)
        change(state)
        return decision.FilterDecision(spec).refuse(state)

    def test_the_host_is_refused_with_the_reason(self):
        def change_pool(**tags):
            return lambda state: state.pci_stats.pools[0].update(tags)

        def name_networks(state):
            state.numa_topology.cells[0].network_metadata.physnets = {
                'x' * 2000}

        def add_sizes(state):
            cell = state.numa_topology.cells[0]
            cell.mempages = cell.mempages * 20

        for change, reason in (
                (change_pool(hpcvirt_device_sets='gpu2:0:2,' * 6000),
                 'a tag of a pool has more than 1024 characters'),
                (change_pool(hpcvirt_device_sets=','.join(
                    f'g:{number}:2' for number in range(65))),
                 'names 65 sets, and at most 64 are read'),
                (change_pool(physical_network='x' * 60_000),
                 'a tag of a pool has more than 1024 characters'),
                (lambda state: state.pci_stats.pools.extend(
                    state.pci_stats.pools * 2000), '2001 pools'),
                (name_networks, 'the name of a physical network has more'),
                (add_sizes, '40 page sizes')):
            with self.subTest(reason):
                misfit = self.refuse(change)
                self.assertIs(reasons.Code.MALFORMED_HOST, misfit.code)
                self.assertIn(reason, misfit.message)


class HostileUpdatesTest(HostileTestCase):
    """A host that reports something else at each update."""

    def test_periodic_memory_does_not_grow_with_updates(self):
        # The bounds are reached sooner than in a scheduler.
        self.enterContext(fixtures.MonkeyPatch(
            'hpcvirt.nova.host_record.MAX_CPUS', 1 << 12))
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        used = []
        scheduler = hostile_memory.Scheduler()
        for _ in range(3):
            for _ in range(40):
                scheduler.update()
            gc.collect()
            used.append(tracemalloc.get_traced_memory()[0])
        self.assertLess(used[2] - used[1], 3 << 20, used)

    def test_allocations_of_like_devices_are_remembered_once(self):
        case = hostile_memory.CASE
        spec = candidates.make_request(case)
        host = candidates.make_host(case, fleet.busy())
        weigher = weights.HPCTopologyWeigher()
        for number in range(20):
            fleet.prepare([host])
            host.allocation_candidates = candidates.list_candidates(
                host, spec.pci_requests.requests, 100)[number:]
            weigher._weigh([host], spec)
        known, = weigher._known.values()
        # Both devices on one of four cells, or on two of them.
        self.assertLessEqual(len(known), 10)
        for key in known:
            self.assertLess(len(repr(key)), 300)

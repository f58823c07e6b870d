# SPDX-License-Identifier: Apache-2.0

"""Hosts whose data cannot be read, as Nova's own objects."""

import random
import unittest

import fixtures
from nova import objects

from hpcvirt.fit import reasons
from hpcvirt.nova import decision
from hpcvirt.nova import filters
from hpcvirt.nova import host_record
from hpcvirt.nova import weights
from tests.builders import cases
from tests.functional import filtering
from tests.functional import nova_objects
from tests.functional import soundness

CASES, MANY_CASES = 300, 5000


def without(thing, field):
    """Unset a field of an object of Nova."""
    delattr(thing, f'_obj_{field}')


def cells_without(field):
    def break_it(state, dice):
        without(dice.choice(state.numa_topology.cells), field)
    return break_it


def pages_without(field):
    def break_it(state, _dice):
        # Pages are read where they are needed.
        for cell in state.numa_topology.cells:
            pages = objects.NUMAPagesTopology(size_kb=4, total=1, used=0)
            without(pages, field)
            cell.mempages = [pages]
    return break_it


def pools_without(tag):
    def break_it(state, _dice):
        pool = {'vendor_id': '8086', 'product_id': '1', 'count': 1,
                'dev_type': 'type-PCI', 'numa_node': 0}
        del pool[tag]
        state.pci_stats = nova_objects.Stats(state.numa_topology)
        state.pci_stats.pools = [pool]
    return break_it


def replaced(attribute, value):
    def break_it(state, _dice):
        setattr(state, attribute, value)
    return break_it


#: What is broken, and how the warning names it.
BROKEN = {
    **{field: (cells_without(field), f"no attribute '{field}'")
       for field in ('id', 'cpuset', 'pcpuset', 'pinned_cpus', 'siblings',
                     'cpu_usage', 'memory', 'memory_usage', 'mempages')},
    **{f'pages {field}': (pages_without(field), f"no attribute '{field}'")
       for field in ('size_kb', 'total', 'used')},
    **{f'pool {tag}': (pools_without(tag), f"KeyError: '{tag}'")
       for tag in ('count', 'numa_node')},
    'cells': (replaced('numa_topology', objects.NUMATopology()),
              "Cannot load 'cells'"),
    'topology': (replaced('numa_topology', '{"nova_object.name": "NUMA'),
                 "'str' object has no attribute 'cells'"),
    'pools': (replaced('pci_stats', [{}]),
              "'list' object has no attribute 'pools'"),
    'ratio': (replaced('cpu_allocation_ratio', None),
              'the allocation ratios: TypeError'),
}


class MalformedHostTest(filtering.FilterTestCase):
    def setUp(self):
        super().setUp()
        host_record._warned.clear()
        self.question = filtering.case(filtering.host(0, 0, 0), (4, 4))

    def two_hosts(self):
        """The first of which is about to be broken."""
        return self.states(self.question, self.question)

    def test_a_malformed_host_is_refused_and_the_others_are_not(self):
        for name, (break_it, said) in BROKEN.items():
            for spec in self.requests():
                with self.subTest(name):
                    states = self.two_hosts()
                    break_it(states[0], random.Random(name))
                    self.assertEqual(['host1'], self.run_filter(spec, *states))
                    self.assertEqual({}, states[0].limits)
                    self.assertIn('host0, host0 refused: the host reports '
                                  'malformed data', self.log.output)
                    self.assertIn(said, self.log.output)

    def test_a_field_is_not_missed_where_cells_lack_others(self):
        """Decoded cells have a version, and old ones lack the socket."""
        question = filtering.case(filtering.host(0, 0, 0), (4,))
        states = self.states(question, question)
        for state in states:
            state.numa_topology = objects.NUMATopology.obj_from_db_obj(
                state.numa_topology._to_json())
            for cell in state.numa_topology.cells[:-1]:
                without(cell, 'socket')
        without(states[0].numa_topology.cells[-1], 'memory')
        self.assertEqual(['host1'], self.run_filter(
            nova_objects.request_spec(question), *states))

    def test_cells_with_the_same_id_are_refused(self):
        states = self.two_hosts()
        for cell in states[0].numa_topology.cells:
            cell._obj_id = 0
        self.assertEqual(['host1'], self.run_filter(
            nova_objects.request_spec(self.question), *states))
        self.assertIn('several NUMA cells have the same id', self.log.output)

    def requests(self):
        """Requests for which different fields of the host matter."""
        for policy in ('dedicated', 'mixed', 'shared'):
            question = filtering.case(
                filtering.host(0, 0, 0), (1,), policy=policy, page_kib=None)
            yield nova_objects.request_spec(question, {
                'hw:cpu_policy': policy, 'hw:cpu_thread_policy': 'require'}
                if policy == 'dedicated' else {})

    def test_each_kind_has_a_reason_of_its_own(self):
        request = decision.FilterDecision(
            nova_objects.request_spec(self.question))
        states = self.two_hosts()
        without(states[0].numa_topology.cells[2], 'memory')
        misfit = request.refuse(states[0])
        self.assertIs(reasons.Code.MALFORMED_HOST, misfit.code)
        self.assertEqual(
            'the host reports malformed data: NUMA cell 2: AttributeError: '
            "'NUMACell' object has no attribute 'memory'", misfit.message)

    def test_the_warning_comes_once_for_a_host_not_for_each_request(self):
        states = self.two_hosts()
        without(states[0].numa_topology.cells[0], 'memory')
        for _ in range(3):
            spec = nova_objects.request_spec(self.question)
            self.assertEqual(['host1'], self.run_filter(spec, *states))
        line, = self.lines('WARNING')
        self.assertIn('host0, host0 reports malformed data and gets no guest '
                      'that depends on it: NUMA cell 0', line)
        without(states[1].numa_topology.cells[0], 'memory')
        self.run_filter(nova_objects.request_spec(self.question), *states)
        self.assertEqual(2, len(self.lines('WARNING')))

    def test_warnings_do_not_fill_the_memory(self):
        with fixtures.MonkeyPatch(
                'hpcvirt.nova.host_record._MAX_WARNINGS', 3):
            for number in range(10):
                state, = self.states(self.question)
                state.host = f'node{number}'
                without(state.numa_topology.cells[0], 'memory')
                self.run_filter(nova_objects.request_spec(self.question),
                                state)
                self.assertLessEqual(len(host_record._warned), 3)
        self.assertEqual(10, len(self.lines('WARNING')))

    def test_the_weighers_put_a_malformed_host_last(self):
        spec = nova_objects.request_spec(self.question)
        states = self.two_hosts()
        without(states[0].numa_topology.cells[0], 'cpuset')
        weigher = weights.HPCTopologyWeigher()
        first, second = weigher._weigh(states, spec)
        self.assertLess(first, second)
        self.run_filter(spec, *states)
        self.assertEqual(1, len(self.lines('WARNING')))

    def test_a_guest_without_numa_topology_is_not_concerned(self):
        spec = nova_objects.request_spec(self.question)
        spec.numa_topology = None
        states = self.two_hosts()
        without(states[0].numa_topology.cells[0], 'cpuset')
        self.assertEqual(['host0', 'host1'], self.run_filter(spec, *states))
        self.assertEqual('', self.log.output)

    def test_siblings_out_of_the_cpuset_are_judged_as_by_the_claim(self):
        states = self.two_hosts()
        for cell in states[0].numa_topology.cells:
            cell.siblings = [core | {100 + min(core)}
                             for core in cell.siblings]
        self.assertEqual(['host0', 'host1'], self.run_filter(
            nova_objects.request_spec(self.question), *states))


class LazySequenceTest(unittest.TestCase):
    def make(self):
        """Return a sequence, and the sources that were read."""
        read = []

        def make(source):
            read.append(source)
            return source.upper()
        return host_record.LazySequence('abc', make), read

    def test_an_item_is_made_when_it_is_read_and_only_once(self):
        items, read = self.make()
        self.assertEqual((3, []), (len(items), read))
        self.assertEqual('A', next(iter(items)))
        self.assertEqual(['a'], read)
        self.assertEqual(('C', ['B', 'C']), (items[2], items[1:]))
        self.assertEqual(['A', 'B', 'C'], list(items))
        self.assertEqual(['a', 'b', 'c'], read)

    def test_items_that_are_forgotten_are_made_again(self):
        items, read = self.make()
        self.assertEqual('B', items[1])
        items.forget()
        self.assertEqual('B', items[1])
        self.assertEqual(list('abcabc'), read)


class AgainstTheClaimTest(soundness.ClaimingTestCase):
    """Random hosts from which a random field is missing."""

    def test_whatever_makes_the_claim_fail_is_refused(self):
        self.assert_refused(range(CASES))

    def test_periodic_many_more_hosts_are_refused(self):
        self.assert_refused(range(CASES, MANY_CASES))

    def assert_refused(self, seeds):
        raised = 0
        for seed in seeds:
            dice = random.Random(f'malformed {seed}')
            case = cases.a_case(dice)
            name = dice.choice(sorted(BROKEN))
            with self.subTest(seed=seed, broken=name):
                raised += self.compare(case, name, dice)
        self.assertGreater(raised, len(seeds) // 10)

    def compare(self, case, name, dice):
        """Hold the filter against the claim of a broken host.

        :returns: whether the claim fails with an error
        """
        soundness.CONF.set_override(
            'packing_host_numa_cells_allocation_strategy', case.packing,
            'compute')
        state = nova_objects.host_state(case)
        BROKEN[name][0](state, dice)
        claims = soundness.Claims(case)
        claims.topology, claims.pci_stats = (state.numa_topology,
                                             state.pci_stats)
        self.assertEqual([], list(filters.HPCTopologyFilter().filter_all(
            [state], nova_objects.request_spec(case))))
        try:
            claims.claim(case.mappings[0])
        except (AttributeError, KeyError, NotImplementedError, TypeError):
            return True
        return False

# SPDX-License-Identifier: Apache-2.0

"""Test HPCTopologyFilter with Nova's objects, without a running Nova."""

import dataclasses
import itertools
import logging
import pickle
import unittest
import uuid

import fixtures
from nova import objects
from nova.scheduler import filters as nova_filters
from nova.scheduler import manager
from nova.scheduler import utils
from nova.scheduler.filters import numa_topology_filter

from hpcvirt.nova import adapter
from hpcvirt.nova import filters
from hpcvirt.nova import host_record
from tests.builders import cases
from tests.functional import filtering
from tests.functional import nova_objects
from tests.functional import soundness

PINNED = filtering.PINNED
host_cell = filtering.host_cell
host = filtering.host
case = filtering.case
gpu = filtering.gpu
gpu_request = filtering.gpu_request
FilterTestCase = filtering.FilterTestCase


class LimitOfPlacementTest(FilterTestCase):
    """Candidates may be missing where Placement has cut off its answer."""

    SAID = 'max_placement_results is 2: candidates of these and of other'

    def setUp(self):
        super().setUp()
        soundness.CONF.set_override('max_placement_results', 2, 'scheduler')
        self.addCleanup(soundness.CONF.clear_override,
                        'max_placement_results', 'scheduler')

    def count(self, request, candidates=2, hints=None):
        """Count the lines about a request, which is judged twice."""
        question = case(host(0), requests=(request,),
                        pools=(gpu(0, 'a'), gpu(0, 'b')),
                        mappings=({'': ['root']},) * candidates)
        spec = nova_objects.request_spec(question)
        spec.scheduler_hints = hints or {}
        before = self.log.output.count(self.SAID)
        for _ in range(2):
            self.run_filter(spec, *self.states(question))
        return self.log.output.count(self.SAID) - before

    def test_it_is_said_once_of_requests_that_have_several_candidates(self):
        alias = gpu_request()
        port = dataclasses.replace(alias, alias=None)
        self.assertEqual(1, self.count(alias))
        self.assertEqual(0, self.count(alias, candidates=1))
        self.assertEqual(0, self.count(port))
        # Nova asks for all candidates.
        for hint in ('group', 'same_host', 'different_host'):
            self.assertEqual(0, self.count(alias, hints={hint: ['x']}))
        self.assertEqual(1, self.count(alias, hints={'other': ['x']}))


class RequestsTest(FilterTestCase):
    def test_hosts_with_room_pass_in_their_order(self):
        questions = [case(host(0, 0), (4, 4)), case(host(0, 6), (4, 4)),
                     case(host(3, 2), (4, 4))]
        spec = nova_objects.request_spec(questions[0])
        self.assertEqual(['host0', 'host2'],
                         self.run_filter(spec, *self.states(*questions)))

    def test_a_guest_without_numa_topology_passes_everywhere(self):
        question = case(host(8))
        spec = nova_objects.request_spec(question)
        spec.numa_topology = None
        with_numa, without = self.states(question, question)
        without.numa_topology = None
        before = list(with_numa.allocation_candidates)
        self.assertEqual(['host0', 'host1'],
                         self.run_filter(spec, with_numa, without))
        self.assertEqual(before, with_numa.allocation_candidates)
        self.assertEqual({}, with_numa.limits)

    def test_a_host_without_numa_topology_is_refused(self):
        question = case(host(0))
        state, = self.states(question)
        state.numa_topology = None
        self.assertEqual([], self.run_filter(
            nova_objects.request_spec(question), state))
        self.assertIn('the host reports no NUMA topology', self.log.output)

    def test_a_rebuild_passes_unchecked(self):
        question = case(host(8))
        spec = nova_objects.request_spec(question)
        spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        self.assertTrue(utils.request_is_rebuild(spec))
        state, = self.states(question)
        state.allocation_candidates = []
        self.assertEqual(['host0'], self.run_filter(spec, state))
        self.assertEqual({}, state.limits)

    def test_the_request_is_left_as_it_was(self):
        question = case(host(0, 0), (4, 4), page_kib=-2,
                        pools=(gpu(1),), requests=(gpu_request(),))
        spec = nova_objects.request_spec(question)
        before = spec.obj_to_primitive()
        self.assertEqual(['host0'],
                         self.run_filter(spec, *self.states(question)))
        self.assertEqual(before, spec.obj_to_primitive())

    def test_a_host_without_candidates_is_refused(self):
        question = case(host(0))
        state, = self.states(question)
        state.allocation_candidates = []
        self.assertEqual([], self.run_filter(
            nova_objects.request_spec(question), state))
        self.assertIn('no allocation candidate is left', self.log.output)

    def test_a_host_of_which_instances_are_not_tracked(self):
        question = case(host(0))
        state, = self.states(question)
        state.instances = {}
        self.assertEqual(['host0'], self.run_filter(
            nova_objects.request_spec(question), state))

    def test_the_policy_require_needs_smt(self):
        flat = tuple(dataclasses.replace(cell, siblings=tuple(
            frozenset({cpu}) for cpu in cell.dedicated))
            for cell in host(0))
        question = case(flat)
        spec = nova_objects.request_spec(question, PINNED)
        self.assertEqual(['host0'],
                         self.run_filter(spec, *self.states(question)))
        question = dataclasses.replace(question, threads='require')
        spec = nova_objects.request_spec(question, PINNED)
        self.assertEqual([], self.run_filter(spec, *self.states(question)))
        self.assertIn('has no SMT siblings', self.log.output)

    def test_a_single_host_can_be_checked(self):
        question = case(host(0))
        spec = nova_objects.request_spec(question)
        state, = self.states(question)
        self.assertTrue(self.filter.host_passes(state, spec))
        self.assertIn('numa_topology', state.limits)


class BesideNovasFilterTest(FilterTestCase):
    """An operator may enable both filters, hpcvirt's first."""

    def test_novas_filter_passes_what_ours_has_left(self):
        request = gpu_request()
        mappings = tuple({'': ['root'], f'{request.id}-0': [provider]}
                         for provider in ('far', 'near'))
        questions = [
            case(host(0, 8), pools=(gpu(0, 'near'), gpu(1, 'far')),
                 requests=(request,), mappings=mappings),
            case(host(8, 8), pools=(gpu(0, 'near'), gpu(1, 'far')),
                 requests=(request,), mappings=mappings)]
        spec = nova_objects.request_spec(questions[0])
        states = self.states(*questions)
        handler = nova_filters.HostFilterHandler()
        left = handler.get_filtered_objects(
            [self.filter, numa_topology_filter.NUMATopologyFilter()],
            states, spec)
        self.assertEqual(['host0'], [state.host for state in left])
        self.assertEqual([mappings[1]], [
            each['mappings'] for each in left[0].allocation_candidates])


class CandidatesTest(FilterTestCase):
    def question(self, *mappings):
        request = gpu_request()
        return case(host(0, 8), pools=(gpu(0, 'near'), gpu(1, 'far')),
                    requests=(request,), mappings=tuple(
                        {'': ['root'], f'{request.id}-0': [provider]}
                        for provider in mappings))

    def test_candidates_with_devices_out_of_reach_are_dropped(self):
        question = self.question('far', 'near', 'far', 'near')
        state, = self.states(question)
        every = list(state.allocation_candidates)
        self.assertEqual(['host0'], self.run_filter(
            nova_objects.request_spec(question), state))
        self.assertEqual([every[1], every[3]], state.allocation_candidates)
        self.assertIn('host0, host0: removed allocation candidates, 2 '
                      'remain: '
                      'no cells with room satisfy the affinity policy',
                      self.log.output)

    def test_a_host_is_refused_with_its_last_candidate(self):
        question = self.question('far', 'far')
        state, = self.states(question)
        self.assertEqual([], self.run_filter(
            nova_objects.request_spec(question), state))
        self.assertEqual([], state.allocation_candidates)

    def test_providers_in_the_request_itself_are_used(self):
        question = self.question('far')
        for provider, passed in (('near', ['host0']), ('far', [])):
            spec = nova_objects.request_spec(question)
            spec.pci_requests.requests[0].spec[0]['rp_uuids'] = provider
            state, = self.states(question)
            state.allocation_candidates[0]['mappings'] = {}
            self.assertEqual(passed, self.run_filter(spec, state))

    def test_candidates_of_neutron_ports_are_all_alike(self):
        request = dataclasses.replace(gpu_request(), alias=None)
        question = case(host(0), pools=(gpu(0),), requests=(request,),
                        mappings=({'': ['root'], request.id: ['qos']},) * 3)
        state, = self.states(question)
        self.assertEqual(['host0'], self.run_filter(
            nova_objects.request_spec(question), state))
        self.assertEqual(3, len(state.allocation_candidates))


class LimitsTest(FilterTestCase):
    def test_limits_are_those_of_novas_filter(self):
        question = case(host(0), cpu_ratio=4.0, ram_ratio=1.5,
                        physnets=frozenset({'a'}))
        spec = nova_objects.request_spec(question)
        ours, theirs = self.states(question, question)
        self.run_filter(spec, ours)
        list(numa_topology_filter.NUMATopologyFilter().filter_all(
            [theirs], spec))
        self.assertEqual(theirs.limits['numa_topology'].obj_to_primitive(),
                         ours.limits['numa_topology'].obj_to_primitive())

    def test_hosts_share_limits_only_of_the_same_ratios(self):
        questions = [case(host(0), cpu_ratio=ratio)
                     for ratio in (1.0, 2.0, 1.0)]
        states = self.states(*questions)
        self.run_filter(nova_objects.request_spec(questions[0]), *states)
        limits = [state.limits['numa_topology'] for state in states]
        self.assertEqual([1.0, 2.0, 1.0], [limit.cpu_allocation_ratio
                                           for limit in limits])
        self.assertIs(limits[0], limits[2])

    def test_a_refused_host_gets_no_limits(self):
        question = case(host(8))
        state, = self.states(question)
        self.run_filter(nova_objects.request_spec(question), state)
        self.assertEqual({}, state.limits)


class OwnExtraSpecsTest(FilterTestCase):
    def passed(self, question, **specs):
        spec = nova_objects.request_spec(question, {
            **PINNED, **{f'hpcvirt:{name}': value
                         for name, value in specs.items()}})
        return bool(self.run_filter(spec, *self.states(question)))

    def test_socket_scope_is_judged_by_the_cells_that_nova_takes(self):
        together = case(host(1, 1, 0, 0), (4, 4))
        apart = case(host(1, 0, 0, 1), (4, 4))
        self.assertTrue(self.passed(together, numa_scope='socket'))
        self.assertFalse(self.passed(apart, numa_scope='socket'))
        self.assertIn('Nova would use cells 1, 2 of sockets 0, 1',
                      self.log.output)
        self.assertTrue(self.passed(apart, numa_scope='host'))

    def test_socket_scope_follows_the_order_that_is_configured(self):
        question = case(host(0, 0, 1, 1), (4, 4))
        odd = case(host(0, 1, 1, 0), (4, 4))
        self.assertTrue(self.passed(question, numa_scope='socket'))
        self.assertFalse(self.passed(odd, numa_scope='socket'))
        soundness.CONF.set_override(
            'packing_host_numa_cells_allocation_strategy', True, 'compute')
        self.addCleanup(
            soundness.CONF.clear_override,
            'packing_host_numa_cells_allocation_strategy', 'compute')
        self.assertFalse(self.passed(odd, numa_scope='socket'))
        self.assertTrue(self.passed(
            case(host(0, 0, 0, 1, 1, 1)[2:], (4, 4)), numa_scope='host'))

    def test_exclusive_cells_must_be_empty(self):
        self.assertTrue(self.passed(case(host(1, 0)), exclusive_cells='true'))
        self.assertFalse(self.passed(case(host(1, 2)), exclusive_cells='true'))
        self.assertIn('Nova would use cell 0, which has 1 PCPU in use',
                      self.log.output)
        self.assertTrue(self.passed(case(host(1, 2)), exclusive_cells='no'))

    def test_a_malformed_value_is_refused_and_named(self):
        self.assertFalse(self.passed(case(host(0)), numa_scope='planet'))
        self.assertIn('the extra spec hpcvirt:numa_scope is malformed: '
                      "'planet' is not one of its values", self.log.output)


class LoggingTest(FilterTestCase):
    def test_every_refusal_is_a_line_at_debug(self):
        questions = [case(host(8)), case(host(0)), case(host(6))]
        spec = nova_objects.request_spec(questions[0])
        self.run_filter(spec, *self.states(*questions))
        self.assertEqual(
            [f'{host}, {host} refused: no cell has room: '
             f'cell 0 has {free} of the 4 free PCPUs needed'
             for host, free in (('host0', 0), ('host2', 2))],
            [line.rpartition('] ')[2]
             for line in self.lines('DEBUG')])
        self.assertEqual([], self.lines('INFO'))

    def test_an_empty_result_is_a_line_at_info_for_each_reason(self):
        questions = [case(host(8)), case(host(6)), case(host(0)[:0])]
        questions[2] = dataclasses.replace(
            case(host(0)), host=(dataclasses.replace(
                host_cell(), pages=(cases.Pages(2048, 10),)),))
        spec = nova_objects.request_spec(questions[0])
        self.run_filter(spec, *self.states(*questions))
        first, second = self.lines('INFO')
        self.assertIn('No host of 3 can take the guest: '
                      'too few free PCPUs in a cell (2); ', first)
        self.assertIn('No host of 3 can take the guest: '
                      'too few free pages in a cell (1); ', second)
        for line in first, second:
            self.assertIn(f' instance="{spec.instance_uuid}" ', line)

    def test_nothing_is_logged_without_hosts(self):
        self.run_filter(nova_objects.request_spec(case(host(0))))
        self.assertEqual('', self.log.output)

    def test_reasons_are_not_formatted_if_debug_is_off(self):
        logging.getLogger('hpcvirt').setLevel(logging.INFO)
        questions = [case(host(8)), case(host(0))]
        with fixtures.MonkeyPatch('hpcvirt.fit.reasons.Misfit.message',
                                  property(self.fail)):
            self.run_filter(nova_objects.request_spec(questions[0]),
                            *self.states(*questions))


class MultiCreateTest(FilterTestCase):
    """Several guests of one request, as nova-scheduler places them."""

    def create(self, question, count, scheduler_filter):
        """Schedule guests one after the other onto a host.

        :returns: how many found a place, with what the scheduler keeps of
            the request at the end
        """
        spec = nova_objects.request_spec(question, {
            **PINNED, 'hw:numa_nodes': str(len(question.guest)),
            **({'hw:mem_page_size': 'large'}
               if question.page_kib == -2 else {})})
        hosts = self.states(question)
        for number in range(count):
            hosts = list(scheduler_filter.filter_all(hosts, spec))
            if not hosts:
                return number, spec
            hosts[0].consume_from_request(spec)
        return count, spec

    def test_each_guest_uses_resources_before_the_next(self):
        question = case(host(0, 4), (4,))
        self.assertEqual(3, self.create(question, 9, self.filter)[0])

    def test_results_for_the_previous_guest_are_not_requirements(self):
        # The first guest gets the giant pages; Nova leaves their size in the
        # request, but the second guest requests large pages of any size.
        cell = dataclasses.replace(host_cell(), pages=(
            cases.Pages(4, 1 << 18), cases.Pages(2048, 1024),
            cases.Pages(1 << 20, 1)))
        question = case((cell,), (2,), page_kib=-2)
        novas = numa_topology_filter.NUMATopologyFilter()
        self.assertEqual(1, self.create(question, 3, novas)[0])
        count, spec = self.create(question, 2, self.filter)
        self.assertEqual(2, count)
        # Nova's bookkeeping asked for giant pages again and found none.
        self.assertIsNone(spec.numa_topology)
        demand = adapter.demand(spec)
        self.assertEqual(-2, demand.cells[0].page_kib)

    def test_a_page_size_left_by_a_shared_guest_is_not_taken_for_a_wish(self):
        # Nothing else tells that the scheduler was here: there are no pins,
        # and the host cell has the number of the guest cell.
        cell = dataclasses.replace(
            host_cell(), shared=host_cell().dedicated, dedicated=frozenset(),
            pages=(cases.Pages(4, 1 << 18), cases.Pages(2048, 1024),
                   cases.Pages(1 << 20, 1)))
        question = dataclasses.replace(
            case((cell,), policy='shared', page_kib=-2),
            guest=(cases.GuestCell(0, 2, 1024),))
        spec = nova_objects.request_spec(question, {
            'hw:numa_nodes': '1', 'hw:mem_page_size': 'large'})
        spec.numa_topology.cells[0].pagesize = 1 << 20
        self.assertEqual(-2, adapter.demand(spec).cells[0].page_kib)

    def test_room_that_nova_does_not_count_is_not_promised_again(self):
        # Nova's bookkeeping fails at the second guest, which gets another
        # page size, and counts nothing from there on. The host has pages for
        # three guests.
        cell = dataclasses.replace(host_cell(), pages=(
            cases.Pages(4, 1 << 18), cases.Pages(2048, 1024),
            cases.Pages(1 << 20, 1)))
        question = case((cell,), (1,), page_kib=-2)
        self.assertEqual(3, self.create(question, 8, self.filter)[0])

    def test_a_guest_that_was_never_pinned_is_not_made_up(self):
        spec = nova_objects.request_spec(case(host(0)), {'trait:X':
                                                         'required'})
        spec.numa_topology = None
        self.assertIsNone(adapter.demand(spec))


class AdapterTest(unittest.TestCase):
    def test_cells_are_made_when_they_are_first_read(self):
        read = []
        items = host_record.LazySequence(
            [1, 2, 3], lambda item: read.append(item) or item)
        self.assertEqual(3, len(items))
        self.assertEqual([1, 2], list(itertools.islice(items, 2)))
        self.assertEqual([1, 2], read)
        self.assertEqual([1, 2, 3], list(items))
        self.assertEqual(3, items[2])
        self.assertEqual([1, 2, 3], read)

    def test_a_guest_without_networks_asks_for_none(self):
        spec = nova_objects.request_spec(case(host(0)))
        # nova-conductor sets it only for ports.
        if 'network_metadata' in spec:
            del spec._obj_network_metadata
        demand = adapter.demand(spec)
        self.assertFalse(demand.tunneled)
        self.assertEqual(frozenset(), demand.physnets)

    def test_fields_that_an_old_compute_host_does_not_set(self):
        topology = objects.NUMATopology(cells=[objects.NUMACell(
            id=3, cpuset={0}, pcpuset={1, 2}, memory=512, cpu_usage=0,
            memory_usage=0, pinned_cpus={1}, siblings=[{1, 2}],
            mempages=[objects.NUMAPagesTopology(size_kb=4, total=8, used=2)])])
        state = nova_objects.host_state(case(host(0)))
        state.numa_topology = topology
        cell, = adapter.supply(state).cells
        self.assertEqual((3, None, {2}, frozenset(), False),
                         (cell.id, cell.socket, cell.free, cell.physnets,
                          cell.tunneled))
        self.assertEqual([(4, 8, 2, 6)], list(cell.pages))

    def test_nova_loads_the_filter_by_the_configured_name(self):
        handler = nova_filters.HostFilterHandler()
        for name in ('hpcvirt.nova.filters.all_filters',
                     'hpcvirt.nova.filters.HPCTopologyFilter'):
            self.assertEqual([filters.HPCTopologyFilter],
                             handler.get_matching_classes([name]))

    def test_the_filter_keeps_no_state_of_a_request(self):
        scheduler_filter = filters.HPCTopologyFilter()
        before = pickle.dumps(vars(scheduler_filter))
        question = case(host(0))
        list(scheduler_filter.filter_all(
            [nova_objects.host_state(question)],
            nova_objects.request_spec(question)))
        self.assertEqual(before, pickle.dumps(vars(scheduler_filter)))


def request(product, count=1, affinity=None):
    """A request by alias for devices of one product, or of any."""
    spec = {'vendor_id': '10de'}
    if product is not None:
        spec['product_id'] = product
    return cases.Request(spec, count, affinity, product or 'any',
                         str(uuid.uuid4()))


def pool(cell, count, product='2330'):
    return cases.Pool(cell, count, {
        'vendor_id': '10de', 'product_id': product, 'dev_type': 'type-PCI',
        'address': f'0000:{cell:02x}:00.0'})


class PCIRequestsTest(FilterTestCase):
    """What HPCTopologyFilter does in place of PciPassthroughFilter."""

    def question(self, *requests, pools, guest=(), taken=(0, 0)):
        return case(host(*taken), guest, pools=pools,
                    requests=requests)

    def passed(self, *questions):
        return self.run_filter(nova_objects.request_spec(questions[0]),
                               *self.states(*questions))

    def test_a_guest_without_numa_topology_goes_where_devices_are(self):
        few, enough = (self.question(request('2330', 3), pools=pools)
                       for pools in ((pool(0, 1), pool(1, 1)),
                                     (pool(0, 1), pool(1, 2))))
        self.assertEqual(['host1'], self.passed(few, enough))
        self.assertIn('host0, host0 refused: the host has 2 of the 3 free PCI '
                      'devices that request 2330 needs', self.log.output)

    def test_affinity_means_nothing_to_it(self):
        for affinity in ('required', 'socket', 'legacy', 'preferred'):
            self.assertEqual(['host0'], self.passed(self.question(
                request('2330', 2, affinity), pools=(pool(0, 1), pool(1, 1)))))

    def test_a_host_without_numa_topology_serves_it(self):
        question = self.question(request('2330'), pools=(pool(0, 1),))
        states = self.states(question, question)
        states[0].numa_topology = None
        states[1].pci_stats = None
        self.assertEqual(['host0'], self.run_filter(
            nova_objects.request_spec(question), *states))
        self.assertEqual({}, states[0].limits)

    def test_what_concerns_only_cells_does_not_refuse_it(self):
        question = self.question(request('2330'), pools=(pool(0, 1),))
        state, = self.states(question)
        delattr(state.numa_topology.cells[0], '_obj_memory')
        state.ram_allocation_ratio = None
        del state.pci_stats.pools[0]['numa_node']
        self.assertEqual(['host0'], self.run_filter(
            nova_objects.request_spec(question, {
                'hpcvirt:numa_scope': 'planet'}), state))
        del state.pci_stats.pools[0]['count']
        self.assertEqual([], self.run_filter(
            nova_objects.request_spec(question), state))
        self.assertIn("the PCI devices: KeyError: 'count'", self.log.output)

    def test_the_claim_serves_requests_a_second_time_from_any_cell(self):
        # Next to the guest, the first request takes the device that only it
        # can take. From the whole host it takes the one that the second
        # request depends on.
        self.assertEqual([], self.passed(self.question(
            request(None), request('2330', affinity='preferred'), guest=(4,),
            taken=(0, 8), pools=(pool(1, 1), pool(0, 1, '1db4')))))
        self.assertIn(
            'request 2330 gets too few PCI devices of the whole host: '
            'requests before it take them', self.log.output)

    def test_devices_of_earlier_guests_of_a_request_are_not_given_again(self):
        question = self.question(request('2330', 2), pools=(pool(0, 5),))
        spec = nova_objects.request_spec(question)
        spec.num_instances = 3
        spec.flavor.root_gb = 0
        spec.instance_group = None
        hosts = self.states(question)
        for _ in range(2):
            hosts = list(self.filter.filter_all(hosts, spec))
            manager.SchedulerManager._consume_selected_host(hosts[0], spec)
        self.assertEqual([], list(self.filter.filter_all(hosts, spec)))

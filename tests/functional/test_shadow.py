# SPDX-License-Identifier: Apache-2.0

"""Shadow mode: every host passes, and the log has what would differ."""

import copy
import dataclasses
import types

import fixtures
from nova import objects
from nova.scheduler.filters import numa_topology_filter

from hpcvirt.fit import decision_log
from hpcvirt.fit import reasons
from hpcvirt.fleet import log_reading
from hpcvirt.nova import filters
from hpcvirt.nova import shadow
from testing import machines
from testing import nova as testing_nova
from tests.builders import cases
from tests.functional import base
from tests.functional import filtering
from tests.functional import nova_objects
from tests.functional import soundness

case = filtering.case
gpu = filtering.gpu
gpu_request = filtering.gpu_request
host = filtering.host
PINNED = filtering.PINNED
REFUSES = decision_log.Disagreement.HPCVIRT_REFUSES
NOVA_REFUSES = decision_log.Disagreement.NOVA_REFUSES
NOVA_FAILS = decision_log.Disagreement.NOVA_FAILS


class ShadowTestCase(filtering.FilterTestCase):
    def setUp(self):
        super().setUp()
        soundness.CONF.set_override('filter_mode', 'shadow', 'hpcvirt')
        self.addCleanup(soundness.CONF.clear_override, 'filter_mode',
                        'hpcvirt')

    def comparisons(self):
        """Return each comparison with its differences."""
        found = []
        for line in self.log.output.splitlines():
            record = log_reading.read_message(line.partition('] ')[2])
            if isinstance(record, decision_log.ShadowComparison):
                found.append(types.SimpleNamespace(
                    **dataclasses.asdict(record), differences=[]))
            elif record is not None:
                found[-1].differences.append(record)
        return found

    def compare(self, spec, *hosts):
        """Filter hosts, all of which must pass, as they were."""
        before = [(dict(state.limits), state.allocation_candidates,
                   copy.deepcopy(state.allocation_candidates))
                  for state in hosts]
        request = spec.obj_to_primitive()
        self.assertEqual([state.host for state in hosts],
                         self.run_filter(spec, *hosts))
        for state, (limits, candidates, content) in zip(hosts, before,
                                                        strict=True):
            self.assertEqual(limits, state.limits)
            self.assertIs(candidates, state.allocation_candidates)
            self.assertEqual(content, candidates)
        self.assertEqual(request, spec.obj_to_primitive())
        comparison, = self.comparisons()
        return comparison

    def assert_differs(self, comparison, *expected):
        self.assertEqual(list(expected), [
            (item.direction, item.code, item.examples)
            for item in comparison.differences])


class EnforcedTest(ShadowTestCase):
    def test_the_filter_decides_unless_it_only_watches(self):
        own, other = (filters.HPCTopologyFilter(),
                      numa_topology_filter.NUMATopologyFilter())
        self.assertFalse(filters.enforces(own))
        soundness.CONF.set_override('filter_mode', 'enforce', 'hpcvirt')
        self.assertTrue(filters.enforces(own))
        self.assertFalse(filters.enforces(other))


class DecisionsTest(ShadowTestCase):
    def test_equal_decisions_are_a_line_too(self):
        questions = [case(host(0)), case(host(8))]
        found = self.compare(nova_objects.request_spec(questions[0]),
                             *self.states(*questions))
        self.assertEqual((2, 2, 1, 1, 0), (
            found.hosts, found.compared, found.passed, found.passed_by_nova,
            found.differing))
        self.assertEqual([], found.differences)
        self.assertNotIn('No host of', self.log.output)

    def test_what_only_hpcvirt_refuses(self):
        apart, together = (case(host(*taken), (4, 4)) for taken in (
            (1, 0, 0, 1), (1, 1, 0, 0)))
        spec = nova_objects.request_spec(
            apart, {**PINNED, 'hpcvirt:numa_scope': 'socket'})
        found = self.compare(spec, *self.states(together, apart, apart))
        self.assert_differs(found, (
            REFUSES, reasons.Code.SCOPE_SOCKET, 'host1, host2'))
        self.assertEqual((1, 3), (found.passed, found.passed_by_nova))
        self.assertIn('Nova would use cells 1, 2', found.differences[0].reason)

    def test_what_only_hpcvirt_refuses_because_of_a_defect_of_nova(self):
        cells = tuple(
            dataclasses.replace(
                filtering.host_cell(number, 8 - free),
                pages=(cases.Pages(2048, pages),))
            for number, (free, pages) in enumerate(
                ((2, 256), (2, 1024), (6, 256))))
        question = dataclasses.replace(case(cells), guest=(
            cases.GuestCell(2, 0, 512), cases.GuestCell(2, 0, 512),
            cases.GuestCell(4, 0, 4096)))
        found = self.compare(nova_objects.request_spec(question),
                             *self.states(question))
        self.assert_differs(found, (REFUSES, reasons.Code.FREE_PCPUS, 'host0'))

    def test_a_malformed_extra_spec_is_refused_only_by_hpcvirt(self):
        question = case(host(0))
        found = self.compare(
            nova_objects.request_spec(question, {
                **PINNED, 'hpcvirt:numa_scope': 'planet'}),
            *self.states(question))
        self.assert_differs(found, (REFUSES, reasons.Code.EXTRA_SPEC, 'host0'))

    def test_a_host_in_quarantine_is_refused_only_by_hpcvirt(self):
        self.compare_in_quarantine(nova_objects.request_spec(
            case(host(0)), PINNED))

    def test_quarantine_is_for_guests_without_numa_topology_too(self):
        spec = nova_objects.request_spec(case(host(0)))
        spec.numa_topology = None
        self.compare_in_quarantine(spec)

    def compare_in_quarantine(self, spec):
        states = self.states(case(host(0)), case(host(0)))
        nova_objects.hold(states[1], 'operator', 'it swaps')
        found = self.compare(spec, *states)
        self.assert_differs(found, (
            REFUSES, reasons.Code.QUARANTINED, 'host1'))
        self.assertEqual((1, 2), (found.passed, found.passed_by_nova))

    def test_what_only_nova_refuses(self):
        # The first guest leaves the size of its giant pages in the request.
        cell = dataclasses.replace(filtering.host_cell(), pages=(
            cases.Pages(4, 1 << 18), cases.Pages(2048, 1024),
            cases.Pages(1 << 20, 1)))
        question = case((cell,), (2,), page_kib=-2)
        spec = nova_objects.request_spec(question, {
            **PINNED, 'hw:mem_page_size': 'large', 'hw:numa_nodes': '1'})
        state, = self.states(question)
        self.run_filter(spec, state)
        state.consume_from_request(spec)

        self.run_filter(spec, state)
        found = self.comparisons()[-1]
        self.assert_differs(found, (NOVA_REFUSES, None, 'host0'))
        self.assertEqual((1, 0), (found.passed, found.passed_by_nova))
        self.assertIn('NUMATopologyFilter refuses',
                      found.differences[0].reason)

    def test_a_filter_of_nova_that_fails(self):
        question = case(host(0))
        broken, whole = self.states(question, question)
        broken.numa_topology = objects.NUMATopology(cells=[objects.NUMACell(
            id=0, cpuset={0})])
        found = self.compare(nova_objects.request_spec(question),
                             broken, whole)
        self.assert_differs(found, (
            NOVA_FAILS, reasons.Code.MALFORMED_HOST, 'host0'))
        self.assertEqual((2, 1, 1), (found.compared, found.passed,
                                     found.passed_by_nova))

    def test_devices_are_compared_with_the_filter_that_is_enabled(self):
        question = case(host(0), pools=(), requests=(gpu_request(),))
        spec = nova_objects.request_spec(question)
        spec.numa_topology = None
        found = self.compare(spec, *self.states(question))
        self.assert_differs(found, (REFUSES, reasons.Code.DEVICES, 'host0'))
        soundness.CONF.set_override('enabled_filters', [
            'HPCTopologyFilter', 'NUMATopologyFilter',
            'PciPassthroughFilter'], 'filter_scheduler')
        self.addCleanup(soundness.CONF.clear_override, 'enabled_filters',
                        'filter_scheduler')
        self.run_filter(spec, *self.states(question))
        self.assertEqual([], self.comparisons()[-1].differences)

    def test_candidates_are_left_to_novas_filter(self):
        request = gpu_request()
        mappings = tuple({'': ['root'], f'{request.id}-0': [provider]}
                         for provider in ('far', 'near'))
        question = case(host(0, 8), requests=(request,), mappings=mappings,
                        pools=(gpu(0, 'near'), gpu(1, 'far')))
        found = self.compare(nova_objects.request_spec(question),
                             *self.states(question))
        self.assertEqual((1, 1), (found.passed, found.passed_by_nova))

    def test_nothing_is_compared_for_guests_that_no_filter_looks_at(self):
        question = case(host(8))
        spec = nova_objects.request_spec(question)
        spec.numa_topology = None
        self.run_filter(spec, *self.states(question))
        self.run_filter(nova_objects.request_spec(question))
        rebuild = nova_objects.request_spec(question)
        rebuild.scheduler_hints = {'_nova_check_type': ['rebuild']}
        self.run_filter(rebuild, *self.states(question))
        self.assertEqual('', self.log.output)


class ConfigurationTest(ShadowTestCase):
    def warning(self, *enabled):
        soundness.CONF.set_override('enabled_filters', enabled,
                                    'filter_scheduler')
        self.addCleanup(soundness.CONF.clear_override, 'enabled_filters',
                        'filter_scheduler')
        before = len(self.log.output)
        filters.HPCTopologyFilter()
        return self.log.output[before:]

    def test_novas_filter_must_be_enabled_behind_it(self):
        for order in (['HPCTopologyFilter'],
                      ['NUMATopologyFilter', 'HPCTopologyFilter']):
            self.assertIn('does not have NUMATopologyFilter behind',
                          self.warning(*order))
        self.assertEqual('', self.warning(
            'HPCTopologyFilter', 'NUMATopologyFilter'))


class SeveralInstancesTest(ShadowTestCase):
    def test_picks_are_charged_and_alternates_are_not_compared(self):
        question = case(host(0), (4,))
        spec = nova_objects.request_spec(question, PINNED)
        spec.num_instances = 2
        state, = self.states(question)
        for number in range(2):
            spec.instance_uuid = f'00000000-0000-0000-0000-{number:012}'
            self.assertEqual(['host0'], self.run_filter(spec, state))
            numa_topology_filter.NUMATopologyFilter().host_passes(state, spec)
            state.consume_from_request(spec)
        self.run_filter(spec, state)
        self.assertEqual([(1, [])] * 2, [
            (found.passed, found.differences)
            for found in self.comparisons()])


class SafetyTest(ShadowTestCase):
    """Whatever happens in the comparison, all hosts pass."""

    def passed_with(self, name, value):
        question = case(host(0))
        spec = nova_objects.request_spec(question)
        with fixtures.MonkeyPatch(name, value):
            return self.run_filter(spec, *self.states(question, question))

    def fail_on_purpose(self, *_, **__):
        raise KeyError('on purpose')

    def test_errors_of_hpcvirt(self):
        for name in ('hpcvirt.nova.adapter.demand',
                     'hpcvirt.nova.claim_input.read',
                     'hpcvirt.nova.shadow._twin',
                     'hpcvirt.nova.shadow._novas_filters'):
            with self.subTest(name=name):
                self.assertEqual(
                    ['host0', 'host1'],
                    self.passed_with(name, self.fail_on_purpose))
                self.assertEqual("KeyError: 'on purpose'",
                                 self.comparisons()[-1].error)

    def test_errors_of_the_log(self):
        self.assertEqual(['host0', 'host1'], self.passed_with(
            'hpcvirt.fit.decision_log.write', self.fail_on_purpose))
        self.assertIn('The comparison with the filters of Nova has failed',
                      self.log.output)

    def test_errors_of_nova(self):
        self.passed_with('nova.virt.hardware.numa_fit_instance_to_host',
                         self.fail_on_purpose)
        found = self.comparisons()[-1]
        self.assert_differs(found, (NOVA_FAILS, None, 'host0, host1'))
        self.assertIsNone(found.error)

    def test_novas_search_is_not_begun_where_it_would_take_minutes(self):
        question = case(host(*[0] * 7, *[8] * 9), (4,) * 8)
        roomy = case(host(*[0] * 16), (4,) * 8)
        found = self.compare(nova_objects.request_spec(question),
                             *self.states(question, roomy))
        self.assertEqual((2, 1, 1), (found.hosts, found.compared,
                                     found.passed_by_nova))

    def test_novas_filters_get_a_limited_time(self):
        with fixtures.MonkeyPatch('hpcvirt.nova.shadow.MAX_SECONDS', -1):
            question = case(host(0))
            found = self.compare(nova_objects.request_spec(question),
                                 *self.states(question, question))
        self.assertEqual((2, 0), (found.hosts, found.compared))
        self.assertGreater(shadow.MAX_SECONDS, 0)


class EmbeddedTest(base.HPCNova):
    """Nova's filter decides; the other one only writes."""

    ENABLED_FILTERS = (*testing_nova.USUAL_FILTERS, 'HPCTopologyFilter',
                       'NUMATopologyFilter')
    OPTIONS = (('hpcvirt', 'filter_mode', 'shadow'),)

    def test_an_instance_starts_where_nova_wants_it(self):
        self.add_machines(machines.build('host', 4, 4, sockets=2,
                                         pages={2048: 1024}))
        self.boot(self.create_hpc_flavor(1, 2, 256))
        self.boot(self.create_hpc_flavor(2, 3, 256,
                                         hpcvirt__numa_scope='socket'))
        self.boot(self.create_hpc_flavor(2, 4, 256), status='ERROR')
        found = log_reading.read(
            (line.encode() for line in self.log.output.splitlines()), None)
        self.assertEqual((0, 0), (found.refused, found.unreadable))
        self.assertEqual((3, 1, 1, 0), tuple(found.shadow[name] for name in (
            'requests', 'differing', 'only_nova_has_a_host', 'errors')))

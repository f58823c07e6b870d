# SPDX-License-Identifier: Apache-2.0

"""Each kind of refusal: provoke it, and explain it from the log.

The request and the hosts are objects of Nova, and Nova's claim must not place
the guest either (or place it wrongly, where the reason says so).
"""

import dataclasses
import itertools
import logging
import random
from unittest import mock

import fixtures
from nova import objects

from hpcvirt.fit import reasons
from hpcvirt.fleet import explain_report
from hpcvirt.fleet import log_reading
from hpcvirt.nova import filters
from hpcvirt.nova import no_valid_host_log
from tests.builders import cases
from tests.functional import filtering
from tests.functional import multi_create
from tests.functional import nova_objects
from tests.functional import soundness
from tests.functional import test_alternates
from tests.functional import test_devices_taken as devices

case = filtering.case
gpu = filtering.gpu
gpu_request = filtering.gpu_request
host = filtering.host
host_cell = filtering.host_cell
PINNED = filtering.PINNED
Code = reasons.Code

#: Random cases that are refused for a reason, alone or among others.
SEEDS = {
    Code.CELL_PCPUS: 2008, Code.FREE_PCPUS: 4603, Code.SHARED_CPUS: 808,
    Code.CPU_RATIO: 5617, Code.RAM_RATIO: 575, Code.FREE_MEMORY: 15283,
    Code.PAGE_SIZE: 1976, Code.PAGE_CLASS: 120, Code.PAGE_MULTIPLE: 10838,
    Code.FREE_PAGES: 1344, Code.NO_SIBLINGS: 4295, Code.SIBLINGS: 10705,
    Code.SIBLINGS_ON_ISOLATE: 395, Code.FREE_CORES: 14543,
    Code.NOTHING_TO_ISOLATE: 2946, Code.EMULATOR_PCPU: 8505,
    Code.NO_VCPUS: 27359, Code.HOST_CELLS: 1338, Code.NO_CELL: 120,
    Code.NO_CELL_FOR: 231, Code.TOO_FEW_CELLS: 590,
    Code.CELLS_CONTENDED: 8320, Code.DEVICES: 9, Code.DEVICES_TAKEN: 14317,
    Code.DEVICE_AFFINITY: 24087, Code.NETWORK_AFFINITY: 21901,
    Code.CLAIM_REFUSES: 6506, Code.CLAIM_MISPLACES: 21643,
    Code.CLAIM_MISACCOUNTS: 11296,
}

#: How Nova's claim ends where it does not refuse.
WRONG = {
    Code.CLAIM_MISPLACES: {soundness.OUT_OF_PLACE, soundness.FOREIGN_PINS,
                           soundness.NO_PAGE_SIZE},
    Code.CLAIM_MISACCOUNTS: {soundness.NOT_ACCOUNTED},
    Code.CLAIM_RAISES: {soundness.RAISED},
    Code.CLAIM_TAKES_FEWER: {soundness.FEWER_DEVICES,
                             soundness.CLAIM_FAILED},
}

#: What keeps a host from the filter: test_fleet_explain_live, test_refusals.
BEFORE = {Code.RESOURCES, Code.CLOSED, Code.TRAIT, Code.FORBIDDEN_TRAIT,
          Code.AGGREGATE, Code.ADDRESS_BITS}


#: Kinds that have a test of their own below.
OTHERS = {
    Code.MEMORY, Code.NO_CORES, Code.CLAIM_RAISES, Code.NO_TOPOLOGY,
    Code.NO_CANDIDATES, Code.MALFORMED_HOST, Code.SCOPE_SOCKET,
    Code.CELL_OCCUPIED, Code.EXTRA_SPEC,
    Code.SOCKET_UNKNOWN, Code.CLAIM_TOO_LONG, Code.UNDECIDED,
    Code.CLAIM_OF_A_MOVE, Code.UNSAFE_ALTERNATE, Code.QUARANTINED,
    Code.CLAIM_TAKES_FEWER, Code.NO_DEVICE_SET, Code.DEVICE_SET_UNKNOWN,
    # Commands for fleets say it, the filter does not.
    Code.BROKEN_DEVICE_SET,
}


def kinds(misfit):
    """Yield the kinds of a refusal and of its causes."""
    yield misfit.code
    for cause in misfit.causes:
        yield from kinds(cause)


def a_case(number):
    return soundness.as_installed(
        cases.a_case(random.Random(f'refusal {number}')))


class EveryRefusalTest(soundness.ClaimingTestCase):
    def setUp(self):
        super().setUp()
        logging.disable(logging.NOTSET)
        self.log = fixtures.FakeLogger(name='hpcvirt', level=logging.INFO,
                                       format=filtering.LOG_FORMAT,
                                       nuke_handlers=False)
        self.log.setUp()
        self.addCleanup(self.log.cleanUp)

    def explain(self, code, *questions, spec=None, specs=None, change=None):
        """Let the filter refuse a guest, and explain it from its log.

        :returns: the sentence about the first host
        """
        spec = spec or nova_objects.request_spec(questions[0], specs)
        soundness.CONF.set_override(
            'packing_host_numa_cells_allocation_strategy',
            questions[0].packing, 'compute')
        states = [nova_objects.host_state(question, f'host{number}')
                  for number, question in enumerate(questions)]
        for state in states if change else ():
            change(state)
        seen = []
        with fixtures.MonkeyPatch(
                'hpcvirt.nova.no_valid_host_log.log',
                _recording(seen)):
            self.assertEqual([], list(
                filters.HPCTopologyFilter().filter_all(states, spec)))
        self.assertIn(code, {kind for misfit in seen
                             for kind in kinds(misfit)})
        found = log_reading.read(
            (line.encode() for line in self.log.output.splitlines()), None)
        self.assertEqual(0, found.unreadable, self.log.output)
        document = explain_report.log_document(found)
        self.assertFalse(document['fits'])
        self.assertEqual({misfit.code for misfit in seen},
                         {Code(item['code']) for item in document['hosts']})
        for item, misfit in zip(document['hosts'], seen, strict=False):
            self.assertEqual('claim' if misfit.code.startswith('claim-')
                             else 'filter', item['step'])
            if len(seen) == 1:
                self.assertEqual(misfit.message[:290], item['reason'][:290])
        return document['hosts'][0]['reason']

    def assert_claim_fails(self, code, question):
        for mapping in question.mappings:
            fault = soundness.fault(
                question, soundness.Claims(question).claim(mapping))
            self.assertIn(fault, WRONG.get(code, {
                soundness.REFUSED, soundness.NO_DEVICES, soundness.RAISED,
                *itertools.chain(*WRONG.values())}))

    def test_no_kind_is_forgotten(self):
        self.assertEqual(set(Code), BEFORE | OTHERS | SEEDS.keys())

    def test_random_requests(self):
        for code, number in SEEDS.items():
            with self.subTest(code=code):
                question = a_case(number)
                self.explain(code, question)
                self.assert_claim_fails(code, question)

    def test_memory_without_pages(self):
        cell = host_cell(pages=(), dedicated=frozenset(), siblings=(),
                         shared=frozenset(range(8)))
        question = dataclasses.replace(
            case((cell,), policy='shared', page_kib=None, ram_ratio=2.0),
            guest=(cases.GuestCell(0, 2, 9000),))
        self.assertIn('cell 0 has 8192 of the 9000 MiB of memory needed',
                      self.explain(Code.MEMORY, question))
        self.assert_claim_fails(Code.MEMORY, question)

    def test_cells_without_cores(self):
        bare = host_cell(0, dedicated=frozenset(), siblings=(),
                         shared=frozenset({60}))
        guest = {'guest': (cases.GuestCell(0, 1, 512),), 'policy': 'mixed'}
        alone = dataclasses.replace(case((bare,)), **guest)
        self.assertIn('cell 0 has no cores',
                      self.explain(Code.NO_CORES, alone))
        self.assert_claim_fails(Code.CLAIM_RAISES, alone)
        beside = dataclasses.replace(case((bare, host_cell(
            1, 8, shared=frozenset({61}), memory_used_mib=1024))), **guest)
        self.assertIn('would fail on cell 0',
                      self.explain(Code.CLAIM_RAISES, beside))
        self.assert_claim_fails(Code.CLAIM_RAISES, beside)

    def test_hosts_that_cannot_be_used(self):
        question = case(host(0))
        for code, change in (
                (Code.NO_TOPOLOGY,
                 lambda state: setattr(state, 'numa_topology', None)),
                (Code.NO_CANDIDATES,
                 lambda state: setattr(state, 'allocation_candidates', [])),
                (Code.MALFORMED_HOST, lambda state: setattr(
                    state, 'numa_topology', objects.NUMATopology(
                        cells=[objects.NUMACell(id=0, cpuset={0})])))):
            self.explain(code, question, change=change)

    def test_hosts_in_quarantine(self):
        reason = self.explain(
            Code.QUARANTINED, case(host(0)),
            change=lambda state: nova_objects.hold(
                state, 'watch', 'since 2026-01-02T03:04:05Z by me@x: steal'))
        self.assertEqual('the host is in quarantine: watch since '
                         '2026-01-02T03:04:05Z by me@x: steal', reason)

    def test_own_extra_specs(self):
        for code, taken, specs in (
                (Code.SCOPE_SOCKET, (1, 0, 0, 1), {'numa_scope': 'socket'}),
                (Code.CELL_OCCUPIED, (1, 1), {'exclusive_cells': 'true'}),
                (Code.EXTRA_SPEC, (0, 0), {'numa_scope': 'planet'})):
            self.explain(code, case(host(*taken), (4, 4)), specs={
                **PINNED, **{f'hpcvirt:{name}': value
                             for name, value in specs.items()}})
        unknown = tuple(dataclasses.replace(cell, socket=None)
                        for cell in host(0, 0))
        self.explain(Code.SOCKET_UNKNOWN, case(unknown, (4, 4)), specs={
            **PINNED, 'hpcvirt:numa_scope': 'socket'})

    def test_searches_that_are_given_up(self):
        self.explain(Code.CLAIM_TOO_LONG, case(
            host(*[8] * 12, *[0] * 12), (4,) * 6, packing=True))
        with mock.patch('hpcvirt.fit.cell_search.MAX_SETS', 10):
            # Three kinds of devices on twelve cells, the fourth elsewhere.
            names = [f'{number:04x}' for number in range(4)]
            pools = [cases.Pool(cell, 1, {
                'vendor_id': '10de', 'product_id': name,
                'dev_type': 'type-PCI', 'address': f'{cell:04x}:{name[2:]}'})
                for name in names[:3] for cell in range(12)]
            pools += [cases.Pool(cell, 1, {
                'vendor_id': '10de', 'product_id': names[3],
                'dev_type': 'type-PCI', 'address': f'{cell:04}:ff'})
                for cell in (12, 13)]
            self.explain(Code.UNDECIDED, case(
                host(*[4] * 12, 8, 8), (2, 2, 2), pools=tuple(pools),
                requests=tuple(cases.Request(
                    {'vendor_id': '10de', 'product_id': name}, 1,
                    'legacy' if name == names[3] else 'required', None,
                    f'5505fed3-8bda-db3b-7c58-de7e4646{name}')
                    for name in names)))

    def test_a_move_that_loses_its_policy(self):
        request = gpu_request(affinity='preferred')
        question = case(host(8, 0), (4,), pools=(gpu(0),), requests=(request,))
        spec = nova_objects.request_spec(question, {
            **PINNED, 'hw:pci_numa_affinity_policy': 'preferred'})
        spec.requested_destination = objects.Destination(
            allow_cross_cell_move=True)
        self.assertIn("(Nova's defect I)", self.explain(
            Code.CLAIM_OF_A_MOVE, question, spec=spec))
        self.assert_claim_fails(Code.CLAIM_OF_A_MOVE, dataclasses.replace(
            question, requests=(gpu_request(affinity='legacy'),)))

    def test_devices_that_the_claim_does_not_take(self):
        request = dataclasses.replace(devices.VF, count=2)
        fewer = case(
            host(0, 0), requests=(request,), pools=(
                devices.functions(0, 3, provider='a'),
                devices.functions(1, 3, provider='b')),
            mappings=({'': ['root'], f'{request.id}-0': ['a'],
                       f'{request.id}-1': ['b']},))
        self.assertIn("would take 1 of the 2 PCI devices of request vf "
                      "(Nova's defect L)",
                      self.explain(Code.CLAIM_TAKES_FEWER, fewer))
        self.assert_claim_fails(Code.CLAIM_TAKES_FEWER, fewer)
        both = case(host(0), requests=(devices.PF, devices.VF),
                    pools=devices.card(0))
        self.assertIn("would take no PCI device for request vf (Nova's "
                      'defect M)',
                      self.explain(Code.CLAIM_TAKES_FEWER, both))
        self.assert_claim_fails(Code.CLAIM_TAKES_FEWER, both)

    def test_devices_of_no_common_set(self):
        request = gpu_request(count=2)
        groups = [f'{request.id}-{number}' for number in range(2)]
        pools = tuple(dataclasses.replace(each, tags={
            **each.tags, 'hpcvirt_device_sets': f'gpu2:{each.cell}:2'})
            for each in (gpu(0, 'a'), gpu(1, 'b')))
        specs = {**PINNED, 'hpcvirt:device_set': 'gpu2'}
        question = case(host(0, 0), (4, 4), pools=pools, requests=(request,),
                        mappings=({'': ['root'], groups[0]: ['a'],
                                   groups[1]: ['b']},))
        self.assertEqual('no set gpu2 of PCI devices is free', self.explain(
            Code.NO_DEVICE_SET, question, specs=specs))
        self.assertIn('2 devices for gpu (required), all in one set gpu2',
                      self.log.output)
        self.explain(Code.DEVICE_SET_UNKNOWN, dataclasses.replace(
            question, mappings=({'': ['root']},)), specs=specs)

    def test_alternates_that_are_unsafe(self):
        soundness.CONF.set_override('max_attempts', 3, 'scheduler')
        fleet = test_alternates.a_fleet(random.Random('alternates 3'))
        spec = multi_create.request_spec(fleet[0], 2)
        self.explain(Code.UNSAFE_ALTERNATE, *fleet, spec=spec)


def _recording(seen):
    log = no_valid_host_log.log

    def record(spec, refused, demand):
        seen.extend(misfit for _, misfit in refused)
        log(spec, refused, demand)
    return record

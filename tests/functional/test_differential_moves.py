# SPDX-License-Identifier: Apache-2.0

"""Compare HPCTopologyFilter with the claims of instances that exist already.

Random instances move, evacuate, migrate live and unshelve to random hosts.
Each candidate that the filter passes must be one that the claim of the
installed Nova, from the start of that life, serves as the flavor requests,
on the cells that the weighers predict.
"""

import collections
import contextlib
import dataclasses
import random
from unittest import mock

from nova import context
from nova import objects
from nova.pci import request as pci_request

from hpcvirt.nova import filters
from tests.builders import cases
from tests.functional import move_claims
from tests.functional import multi_create
from tests.functional import nova_objects
from tests.functional import soundness

INSTANCES = 25
DEVICE_INSTANCES = 30

POLICIES = (None, None, 'legacy', 'preferred', 'required', 'socket')


class MovesTestCase(soundness.ClaimingTestCase):
    def setUp(self):
        super().setUp()
        self.filter = filters.HPCTopologyFilter()
        self.addCleanup(pci_request.get_alias_from_config.cache_clear)
        self.addCleanup(soundness.CONF.clear_override, 'alias', 'pci')
        # There is no database: test_lives reads instances from one.
        self.instance = None
        self.enterContext(mock.patch.object(
            context, 'target_cell',
            lambda anyone, _cell: contextlib.nullcontext(anyone)))
        self.enterContext(mock.patch.object(
            objects.Instance, 'get_by_uuid', lambda *_, **__: self.instance))

    def roll(self, life, block=0, create=None, count=INSTANCES):
        found = collections.Counter()
        for number in range(block * count, (block + 1) * count):
            with self.subTest(number=number):
                dice = random.Random(f'{life} {number}')
                lived = (create or an_instance)(dice, life)
                for passed, fault in self.compare(lived):
                    found[passed, fault] += 1
        self.assertGreater(found[True, None], count // 20)
        return found

    def compare(self, lived):
        lived.configure()
        self.instance = lived.instance()
        state = nova_objects.host_state(lived.case)
        offered = state.allocation_candidates
        spec = lived.spec()
        hosts = list(self.filter.filter_all(
            [state, nova_objects.idle_host()], spec))
        remaining = state.allocation_candidates
        for candidate in offered:
            fault = lived.fault(candidate['mappings'])
            if fault is soundness.NO_DEVICES:
                # What PciPassthroughFilter refuses.
                continue
            passed = state in hosts and candidate in remaining
            if passed or not _by_chance(lived):
                self.assertEqual(passed, fault is None, (fault, lived))
            if passed:
                state.allocation_candidates = [candidate]
                self.assertEqual(lived.cells, soundness.foretell(state, spec))
            yield passed, fault

    def test_moves(self):
        self.roll(move_claims.Life.MOVE)

    def test_live_migrations(self):
        self.roll(move_claims.Life.LIVE_MIGRATION)

    def test_unshelves(self):
        self.roll(move_claims.Life.UNSHELVE)

    def test_guests_with_devices(self):
        found = collections.Counter()
        for life in move_claims.Life:
            # This block has every fault.
            found += self.roll(life, 2, an_instance_with_devices,
                               DEVICE_INSTANCES)
        for fault in (soundness.FEWER_DEVICES, soundness.CLAIM_FAILED):
            self.assertTrue(found[False, fault], fault)

    def test_periodic_4_more_blocks_of_each(self):
        for life in move_claims.Life:
            for block in range(1, 5):
                self.roll(life, block)

    def test_periodic_20_000_moves_of_guests_with_devices(self):
        for life in move_claims.Life:
            self.roll(life, 1, an_instance_with_devices, 2000)


def an_instance(dice, life):
    """Create a random instance and a host that it may come to."""
    while True:
        case = cases.a_case(dice)
        if case.pools is None or not all(cell.pages for cell in case.host):
            continue
        policy = dice.choice(POLICIES)
        requests = tuple(
            dataclasses.replace(
                request, count=1,
                spec={key: value for key, value in request.spec.items()
                      if key != 'live_migratable'},
                alias=request.alias and f'{request.alias}{number}',
                affinity=policy if request.alias and policy
                else request.affinity)
            for number, request in enumerate(sorted(
                case.requests, key=lambda request: not request.alias)))
        case = soundness.as_installed(dataclasses.replace(
            case, requests=requests, mappings=tuple(
                {group: uuids for group, uuids in mapping.items()
                 if not group.endswith('-1')} for mapping in case.mappings)))
        if multi_create.request_spec(case, 1) is None:
            continue
        source = cases.on_another_host(dice, case)
        lived = _lived(dice, life, case, source, policy)
        if lived is not None:
            return lived


def an_instance_with_devices(dice, life):
    """The same, of a guest with several devices."""
    while True:
        case = cases.a_case_with_devices(dice)
        if not case.guest or not all(cell.pages for cell in case.host):
            continue
        policy = dice.choice(POLICIES)
        case = soundness.as_installed(dataclasses.replace(case, requests=tuple(
            dataclasses.replace(
                request, alias=request.alias and f'{request.alias}{number}',
                affinity=policy if request.alias and policy
                else request.affinity)
            for number, request in enumerate(sorted(
                case.requests, key=lambda request: not request.alias)))))
        if multi_create.request_spec(case, 1) is None:
            continue
        source = dataclasses.replace(
            cases.on_another_host(dice, case), requests=(), mappings=({},))
        lived = _lived(dice, life, case, source, policy)
        if lived is not None:
            return lived


def _lived(dice, life, case, source, policy):
    """An instance from a host; None if it cannot have been there."""
    former = soundness.Claims(source).claim(source.mappings[0])
    if soundness.fault(source, former) is not None:
        return None
    return move_claims.Lived(
        life, case, former, policy, tuple(
            dice.choice(POLICIES) if policy else request.affinity
            for request in case.requests), dice.random() < 0.3)


def _by_chance(lived):
    """Whether the guest may get near devices although none is sure to.

    The claim applies another policy, which allows distant devices as well.
    """
    return any(request.alias and lived.policy == 'socket'
               for request in lived.case.requests)

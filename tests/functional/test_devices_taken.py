# SPDX-License-Identifier: Apache-2.0

"""Guests whose claim accepts more devices than it then takes."""

import dataclasses
import random

from hpcvirt.nova import filters
from tests.builders import cases
from tests.functional import filtering
from tests.functional import move_claims
from tests.functional import multi_create
from tests.functional import nova_objects
from tests.functional import soundness

case = filtering.case
gpu = filtering.gpu
gpu_request = filtering.gpu_request
host = filtering.host
PF = cases.Request({'vendor_id': '15b3', 'product_id': '101d',
                    'dev_type': 'type-PF'}, 1, None, 'pf',
                   '5505fed3-8bda-db3b-7c58-de7e4646b479')
VF = cases.Request({'vendor_id': '15b3', 'product_id': '101e',
                    'dev_type': 'type-VF'}, 1, None, 'vf',
                   '6505fed3-8bda-db3b-7c58-de7e4646b479')


def functions(card, count, **fields):
    """The virtual functions of a card, on the cell of its number."""
    return cases.Pool(card, count, {
        **VF.spec, 'remote_managed': 'false',
        'address': f'0000:1{card}:00.0'}, **fields)


def card(number):
    """A card with its physical function and four virtual functions."""
    virtual = functions(number, 4)
    return (cases.Pool(number, 1, {**virtual.tags, **PF.spec}), virtual)


class TakenDevicesTestCase(soundness.ClaimingTestCase):
    def ends(self, question, spec=None):
        """The end of the claim of each candidate that passes the filter."""
        state = nova_objects.host_state(question)
        list(filters.HPCTopologyFilter().filter_all(
            [state], spec or nova_objects.request_spec(question)))
        return [soundness.fault(question, soundness.Claims(question).claim(
            candidate['mappings'])) for candidate
            in state.allocation_candidates]


class FewerDevicesTest(TakenDevicesTestCase):
    """Placement allocates devices of two cells; the claim looks at one."""

    def question(self, pools, *candidates, affinity=None):
        request = dataclasses.replace(VF, count=2, affinity=affinity)
        return soundness.as_installed(case(
            host(0, 0), pools=pools, requests=(request,), mappings=tuple(
                {'': ['root'], **{f'{request.id}-{number}': [provider]
                                  for number, provider in enumerate(each)}}
                for each in candidates)))

    def test_a_guest_gets_all_of_them_or_goes_elsewhere(self):
        pools = (functions(0, 3, provider='a'), functions(1, 3, provider='b'))
        for affinity in (None, 'legacy', 'preferred', 'required', 'socket'):
            with self.subTest(affinity=affinity):
                alone = self.question(pools, 'ab', affinity=affinity)
                self.assertIs(
                    soundness.FEWER_DEVICES, soundness.Claims(alone).claim(
                        alone.mappings[0]))
                self.assertEqual([], self.ends(alone))
                self.assertEqual([None, None], self.ends(self.question(
                    pools, 'ab', 'aa', 'ba', 'aa', affinity=affinity)))

    def test_devices_that_are_few_are_taken_from_both(self):
        pools = (functions(0, 1, provider='a'), functions(1, 1, provider='b'))
        self.assertEqual([None], self.ends(self.question(
            pools, 'ab', affinity='preferred')))
        self.assertEqual([], self.ends(self.question(
            pools, 'ab', affinity='required')))

    def test_a_guest_without_numa_topology_gets_all(self):
        pools = (functions(0, 3, provider='a'), functions(1, 3, provider='b'))
        self.assertEqual([None], self.ends(cases.without_numa(self.question(
            pools, 'ab'))))

    def test_unshelve(self):
        pools = (functions(0, 3, provider='a'), functions(1, 3, provider='b'))
        for affinity in (None, 'legacy', 'preferred', 'required', 'socket'):
            question = self.question(pools, 'ab', 'aa', affinity=affinity)
            lived = move_claims.Lived(
                move_claims.Life.UNSHELVE, question,
                soundness.Claims(question).claim(question.mappings[1]),
                affinity, (affinity,), forgotten=False)
            self.assertEqual(
                [soundness.FEWER_DEVICES, None],
                [lived.fault(mapping) for mapping in question.mappings])
            state = nova_objects.host_state(question)
            offered = state.allocation_candidates
            with lived.in_database():
                list(filters.HPCTopologyFilter().filter_all(
                    [state], lived.spec()))
            self.assertEqual(offered[1:], state.allocation_candidates)

    def test_one_gpu_of_each_cell(self):
        request = gpu_request(2, 'preferred')
        mappings = tuple({'': ['root'], **{
            f'{request.id}-{number}': [provider]
            for number, provider in enumerate(each)}} for each in ('ac', 'ab'))
        gpus = tuple(
            dataclasses.replace(gpu(cell, name), tags={
                **gpu(cell).tags, 'address': f'0000:0{name}:00.0'})
            for cell, name in ((0, 'a'), (0, 'b'), (1, 'c'), (1, 'd')))
        question = soundness.as_installed(case(
            host(0, 0), pools=gpus, requests=(request,), mappings=mappings))
        self.assertIsNone(soundness.Claims(question).claim(mappings[0]))
        self.assertEqual([None], self.ends(question))


class CardTest(TakenDevicesTestCase):
    """A physical function and its virtual functions exclude each other."""

    def question(self, *requests, cards=(0,)):
        return soundness.as_installed(case(
            host(0, 0), requests=requests, pools=tuple(
                pool for number in cards for pool in card(number))))

    def test_both_of_one_card(self):
        for requests in ((PF, VF), (VF, PF)):
            question = self.question(*requests)
            self.assertIs(
                soundness.CLAIM_FAILED, soundness.Claims(question).claim(
                    question.mappings[0]))
            self.assertEqual([], self.ends(question))
            self.assertEqual([], self.ends(cases.without_numa(question)))

    def test_both_of_two_cards(self):
        for requests in ((PF, VF), (VF, PF)):
            self.assertEqual([None], self.ends(self.question(
                *map(_from_anywhere, requests), cards=(0, 1))))

    def test_the_next_guest_of_the_request_finds_no_card(self):
        fleet = [self.question(*map(_from_anywhere, (PF, VF)), cards=(0, 1))]
        picks = multi_create.Scheduler(filters.HPCTopologyFilter()).create(
            random.Random(0), fleet, 2)
        self.assertEqual([True, False], [pick.passed for pick in picks])
        self.assertFalse(any(pick.wrong for pick in picks))

    def test_virtual_functions_make_a_card_unusable_for_the_next_guest(self):
        fleet = [self.question(dataclasses.replace(VF, count=2))]
        scheduler = multi_create.Scheduler(filters.HPCTopologyFilter())
        picks = scheduler.create(random.Random(0), fleet, 3)
        self.assertEqual([True, True, False], [pick.passed for pick in picks])
        self.assertFalse(any(pick.wrong for pick in picks))


def _from_anywhere(request):
    return dataclasses.replace(request, affinity='preferred')

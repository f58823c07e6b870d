# SPDX-License-Identifier: Apache-2.0

"""The allocation candidate of a host that the filter leaves first."""

import dataclasses

from nova import objects

from hpcvirt.fit import device_sets
from hpcvirt.nova import decision
from tests.functional import filtering
from tests.functional import nova_objects

CARDS = [f'5505fed3-8bda-db3b-7c58-de7e4646b4{number:02}'
         for number in range(3)]


class CandidateOrderTest(filtering.FilterTestCase):
    def make_host(self, sets, order=(0, 1, 2)):
        """Make a host with three GPUs of a cell, and a request for one.

        :param sets: the sets that each GPU belongs to
        :param order: the GPUs that Placement offers, one in each candidate
        """
        request = filtering.gpu_request()
        pools = tuple(
            dataclasses.replace(pool, tags={
                **pool.tags, device_sets.TAG: names,
                'address': f'0000:{number:02x}:00.0'})
            for number, (pool, names) in enumerate(zip(
                [filtering.gpu(0, card) for card in CARDS], sets,
                strict=True)))
        question = filtering.case(
            filtering.host(0), pools=pools, requests=(request,), mappings=[
                {'': ['root'], f'{request.id}-0': [CARDS[number]]}
                for number in order])
        state, = self.states(question)
        return nova_objects.request_spec(question), state

    def find_order(self, state):
        """Return the number of the GPU of each candidate."""
        return [CARDS.index(card) for candidate
                in state.allocation_candidates
                for group, (card,) in candidate['mappings'].items() if group]

    def test_a_set_that_is_broken_comes_before_a_whole_one(self):
        # The fourth GPU is in use. Candidates of equal cost are shuffled.
        for _ in range(8):
            spec, state = self.make_host(('gpu2:0:2', 'gpu2:0:2', 'gpu2:1:2'))
            self.assertIsNone(decision.FilterDecision(spec).refuse(state))
            self.assertEqual(2, self.find_order(state)[0])

    def test_without_sets_they_stay_as_placement_has_sorted_them(self):
        for order in (0, 1, 2), (2, 0, 1), (1, 2, 0):
            spec, state = self.make_host(('', '', ''), order)
            self.assertIsNone(decision.FilterDecision(spec).refuse(state))
            self.assertEqual([*order], self.find_order(state))

    def move(self, order):
        """Judge a move, whose claim takes the first GPU.

        :returns: the order that is left, and whether another GPU than that
            will be held
        """
        spec, state = self.make_host(('', '', ''), order)
        spec.requested_destination = objects.Destination(
            allow_cross_cell_move=True)
        request = decision.FilterDecision(spec)
        self.assertIsNone(request.refuse(state))
        return self.find_order(state), request.misallocated

    def test_a_move_begins_with_what_its_claim_takes(self):
        self.assertEqual(([0, 2, 1], []), self.move((2, 0, 1)))
        self.assertEqual(([0, 1], []), self.move((0, 1)))

    def test_a_move_that_will_hold_others_is_noted(self):
        self.assertEqual(([2, 1], ['host0']), self.move((2, 1)))

# SPDX-License-Identifier: Apache-2.0

"""Hosts on which Placement offers many allocation candidates."""

import dataclasses
import itertools
import random
import time
import uuid

from hpcvirt.nova import filters
from tests.builders import cases
from tests.functional import nova_objects
from tests.functional import soundness
from tests.functional import test_filter

REQUEST = '3b0c9a0e-6d3a-4f0e-9b43-9d6a4a1d2f57'
GPU = {'vendor_id': '10de', 'product_id': '2330'}


class ManyCandidatesTest(soundness.ClaimingTestCase):
    """Eight cells with two GPUs each, one without room; six are requested."""

    def setUp(self):
        super().setUp()
        self.providers = [str(uuid.uuid5(uuid.NAMESPACE_DNS, f'gpu{number}'))
                          for number in range(16)]
        offered = random.Random('candidates').sample(
            [*itertools.combinations(self.providers, 6)], 1000)
        self.case = dataclasses.replace(
            test_filter.case(test_filter.host(*[1] * 7, 8), range(7, 0, -1)),
            pools=tuple(
                cases.Pool(number // 2, 1, {
                    **GPU, 'dev_type': 'type-PCI',
                    'address': f'0000:{number:02x}:00.0'}, provider)
                for number, provider in enumerate(self.providers)),
            requests=(cases.Request(GPU, 6, 'required', 'gpu', REQUEST),),
            mappings=tuple(
                {'': ['root'], **{f'{REQUEST}-{number}': [provider]
                                  for number, provider in enumerate(each)}}
                for each in offered))

    def filter(self, mappings):
        """Filter the host; return the mappings that are left."""
        state = nova_objects.host_state(dataclasses.replace(
            self.case, mappings=tuple(mappings)))
        list(filters.HPCTopologyFilter().filter_all(
            [state], nova_objects.request_spec(self.case)))
        return [candidate['mappings']
                for candidate in state.allocation_candidates]

    def test_a_thousand_take_little_longer_than_one(self):
        before = time.process_time()
        left = self.filter(self.case.mappings)
        # Each by itself took 10 ms.
        self.assertLess(time.process_time() - before, 3)
        self.assertTrue(0 < len(left) < 1000)

    def test_each_is_judged_as_if_it_were_alone(self):
        some = self.case.mappings[:60]
        self.assertEqual([each for each in some if self.filter([each])],
                         self.filter(some))

    def test_novas_claim_accepts_those_that_are_left(self):
        claims = soundness.Claims(self.case)
        left = self.filter(self.case.mappings)
        for mapping in left[:3]:
            self.assertEqual(7, len(claims.claim(mapping).cells))

# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Traits and aggregates of a real Placement."""

import itertools
import uuid

import fixtures
import requests
import testtools
from placement.tests.functional.fixtures import placement as fixture

from hpcvirt import exception
from hpcvirt.cloud import placement
from hpcvirt.cloud import session
from testing import identity

NOWHERE = 'http://compute.test:8774/v2.1'
AGGREGATE = str(uuid.uuid4())


class PlacementTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        service = self.useFixture(fixture.PlacementFixture())
        # wsgi-intercept has no sockets whose options could be set.
        self.useFixture(fixtures.MonkeyPatch(
            'keystoneauth1.session.TCPKeepAliveAdapter.init_poolmanager',
            requests.adapters.HTTPAdapter.init_poolmanager))
        self.useFixture(identity.CloudsFile(NOWHERE, service.endpoint))
        self.api = placement.Placement(session.placement(), pause_s=0.01)
        self.uuid = self.api.adapter.post(
            '/resource_providers', json={'name': 'node1'},
            microversion='1.20').json()['uuid']
        self.api.change_traits(self.uuid, ['COMPUTE_NODE'])

    def test_the_aggregates_of_a_provider_are_read(self):
        self.assertEqual(frozenset(), self.api.aggregates(self.uuid))
        generation = self.api.traits(self.uuid).generation
        self.api.adapter.put(
            f'/resource_providers/{self.uuid}/aggregates', json={
                'aggregates': [AGGREGATE],
                'resource_provider_generation': generation},
            microversion='1.19')
        self.assertEqual({AGGREGATE}, self.api.aggregates(self.uuid))

    def test_traits_are_added_and_own_ones_removed(self):
        before = self.api.traits(self.uuid).names
        self.assertTrue(self.api.change_traits(
            self.uuid, ['CUSTOM_HPCVIRT_X', 'CUSTOM_SITE', 'HW_CPU_X86_AVX']))
        self.assertEqual(
            before | {'CUSTOM_HPCVIRT_X', 'CUSTOM_SITE', 'HW_CPU_X86_AVX'},
            self.api.traits(self.uuid).names)
        self.assertFalse(self.api.change_traits(
            self.uuid, ['CUSTOM_SITE'], ['CUSTOM_HPCVIRT_Y']))
        self.api.change_traits(self.uuid, [], ['CUSTOM_HPCVIRT_X'])
        self.assertNotIn('CUSTOM_HPCVIRT_X',
                         self.api.traits(self.uuid).names)
        self.assertIn('CUSTOM_SITE', self.api.traits(self.uuid).names)

    def test_traits_of_others_are_not_removed(self):
        for name in ('CUSTOM_SITE', 'HW_CPU_X86_AVX', 'COMPUTE_NODE'):
            self.assertRaises(exception.InvalidInput, self.api.change_traits,
                              self.uuid, [], [name])

    def test_bad_traits_and_providers_are_one_line(self):
        for provider, name in ((self.uuid, 'CUSTOM_x'),
                               (self.uuid, 'NOT_THERE'),
                               ('0' * 8, 'CUSTOM_X')):
            error = self.assertRaises(exception.HpcvirtError,
                                      self.api.change_traits, provider, [name])
            self.assertNotIn('\n', str(error))

    def test_what_others_change_meanwhile_is_kept(self):
        other = placement.Placement(session.placement())
        ask = self.api.adapter.request
        names = (f'CUSTOM_OTHER_{number}' for number in range(3))

        def ask_late(path, method, **more):
            if method == 'PUT' and path.endswith('traits'):
                for name in itertools.islice(names, 1):
                    other.change_traits(self.uuid, [name])
            return ask(path, method, **more)
        self.api.adapter.request = ask_late
        self.assertTrue(self.api.change_traits(self.uuid, ['CUSTOM_MINE']))
        self.assertLessEqual(
            {'CUSTOM_MINE', *(f'CUSTOM_OTHER_{n}' for n in range(3))},
            self.api.traits(self.uuid).names)

    def test_others_that_never_stop_are_reported(self):
        api = placement.Placement(session.placement(), 0.05, 0.01)
        ask = api.adapter.request
        number = itertools.count()

        def ask_late(path, method, **more):
            if method == 'PUT' and path.endswith('traits'):
                self.api.change_traits(self.uuid,
                                       [f'CUSTOM_OTHER_{next(number)}'])
            return ask(path, method, **more)
        api.adapter.request = ask_late
        error = self.assertRaises(
            exception.Unreachable, api.change_traits, self.uuid,
            ['CUSTOM_MINE'])
        self.assertIn('others change', str(error))
        self.assertNotIn('\n', str(error))

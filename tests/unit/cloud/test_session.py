# SPDX-License-Identifier: Apache-2.0

import os
import types
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt.cloud import flavors
from hpcvirt.cloud import session
from tests.builders import folders
from tests.unit.cloud import compute_api


class Manager:
    """Lists items after a marker, never more than three at once."""

    def __init__(self, count, heeds_marker=True):
        self.ids = [str(number) for number in range(count)]
        self.heeds_marker = heeds_marker

    def list(self, marker, limit):
        start = 0
        if marker is not None and self.heeds_marker:
            start = self.ids.index(marker) + 1
        return [types.SimpleNamespace(id=each)
                for each in self.ids[start:start + min(limit, 3)]]


class TestEvery(unittest.TestCase):
    def test_all_pages(self):
        for count in (0, 1, 3, 4, 7):
            self.assertEqual(
                [str(number) for number in range(count)],
                [item.id for item in session.list_all(Manager(count))])

    def test_ends_if_the_marker_is_ignored(self):
        found = [item.id for item in session.list_all(Manager(7, False))]
        self.assertEqual({'0', '1', '2'}, set(found))


class SessionTest(unittest.TestCase):
    def setUp(self):
        self.clouds = folders.make(self) / 'clouds.yaml'
        bare = {key: value for key, value in os.environ.items()
                if not key.startswith('OS_')}
        bare['OS_CLIENT_CONFIG_FILE'] = str(self.clouds)
        patch = mock.patch.dict(os.environ, bare, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def assert_unreachable(self, pattern, cloud=None):
        with self.assertRaisesRegex(exception.Unreachable, pattern) as caught:
            flavors.read(session.compute(cloud))
        self.assertNotIn('\n', str(caught.exception))

    def serve(self):
        api = compute_api.ComputeAPI()
        self.addCleanup(api.close)
        self.clouds.write_text(
            compute_api.CLOUDS.format(endpoint=api.endpoint))
        return api

    def test_a_cloud_is_found_by_its_name(self):
        self.serve().add('one')
        found = flavors.read(session.compute('test'))
        self.assertEqual(['one'], [item.flavor.name for item in found])

    def test_a_cloud_is_found_by_the_environment(self):
        self.serve().add('one')
        os.environ['OS_CLOUD'] = 'test'
        self.assertEqual(1, len(flavors.read(session.compute())))

    def test_a_cloud_is_found_by_variables_alone(self):
        api = self.serve()
        api.add('one')
        self.clouds.unlink()
        os.environ.update(OS_AUTH_TYPE='admin_token', OS_TOKEN='secret',
                          OS_ENDPOINT=api.endpoint)
        self.assertEqual(1, len(flavors.read(session.compute())))

    def test_without_configuration_the_error_says_what_to_set(self):
        self.assert_unreachable('OS_CLOUD')

    def test_an_unknown_cloud_is_named(self):
        self.assert_unreachable('nowhere', 'nowhere')
        os.environ['OS_CLOUD'] = 'elsewhere'
        self.assert_unreachable('elsewhere')

    def test_a_broken_clouds_file_is_one_line(self):
        for text in ('clouds: [\n', 'clouds: 3\n', '- a\n', '\0\n'):
            self.clouds.write_text(text)
            os.environ['OS_CLOUD'] = 'test'
            self.assert_unreachable('')

    def test_a_cloud_that_does_not_answer_is_one_line(self):
        self.clouds.write_text(compute_api.CLOUDS.format(
            endpoint='http://127.0.0.1:1/v2.1'))
        self.assert_unreachable('cannot be used', 'test')

    def test_a_keystone_that_cannot_be_used_is_one_line(self):
        user = {'OS_USERNAME': 'u', 'OS_PROJECT_NAME': 'p',
                'OS_USER_DOMAIN_NAME': 'd', 'OS_PROJECT_DOMAIN_NAME': 'd'}
        for address, password, said in (
                ('127.0.0.1:1', {'OS_PASSWORD': 'p'}, 'cannot be used'),
                ('127.0.0.1:1', {}, 'password is a required attribute'),
                # A password in an address is not shown.
                ('u:pa55@127.0.0.1:1', {'OS_PASSWORD': 'p'},
                 r'http://u:\*\*\*@127.0.0.1')):
            with mock.patch.dict(os.environ, {
                    'OS_AUTH_URL': f'http://{address}/v3', **user,
                    **password}):
                self.assert_unreachable(said)

    def test_an_api_that_is_too_old_is_reported(self):
        self.serve().failures['GET', 'flavors'] = 406
        self.assert_unreachable('microversion 2.86', 'test')

    def test_refused_credentials_are_reported(self):
        self.serve().failures['GET', 'flavors'] = 401
        self.assert_unreachable('credentials', 'test')

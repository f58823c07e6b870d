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

import os
import pathlib
import tempfile
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt.cloud import flavors
from hpcvirt.cloud import session
from tests.unit.cloud import compute_api


class SessionTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.clouds = pathlib.Path(folder.name, 'clouds.yaml')
        bare = {key: value for key, value in os.environ.items()
                if not key.startswith('OS_')}
        bare['OS_CLIENT_CONFIG_FILE'] = str(self.clouds)
        patch = mock.patch.dict(os.environ, bare, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def assert_unreachable(self, pattern, cloud=None):
        with self.assertRaisesRegex(exception.Unreachable,
                                    pattern) as caught:
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

    def test_a_keystone_that_does_not_answer_is_one_line(self):
        os.environ.update(
            OS_AUTH_URL='http://127.0.0.1:1/v3', OS_USERNAME='u',
            OS_PASSWORD='p', OS_PROJECT_NAME='p',
            OS_USER_DOMAIN_NAME='d', OS_PROJECT_DOMAIN_NAME='d')
        self.assert_unreachable('cannot be used')

    def test_an_entry_without_password_is_one_line(self):
        os.environ.update(
            OS_AUTH_URL='http://127.0.0.1:1/v3', OS_USERNAME='u',
            OS_PROJECT_NAME='p', OS_USER_DOMAIN_NAME='d',
            OS_PROJECT_DOMAIN_NAME='d')
        self.assert_unreachable('password is a required attribute')

    def test_a_password_in_an_address_is_not_shown(self):
        os.environ.update(
            OS_AUTH_URL='http://u:pa55@127.0.0.1:1/v3', OS_USERNAME='u',
            OS_PASSWORD='p', OS_PROJECT_NAME='p',
            OS_USER_DOMAIN_NAME='d', OS_PROJECT_DOMAIN_NAME='d')
        self.assert_unreachable(r'http://u:\*\*\*@127.0.0.1')

    def test_an_api_that_is_too_old_is_reported(self):
        self.serve().failures['GET', 'flavors'] = 406
        self.assert_unreachable('microversion 2.86', 'test')

    def test_refused_credentials_are_reported(self):
        self.serve().failures['GET', 'flavors'] = 401
        self.assert_unreachable('credentials', 'test')

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
from unittest import mock

from tests.unit.tools.cloud import cloud_case
from tools.cloud import errors
from tools.cloud import settings as cloud_settings


class SettingsTest(cloud_case.CloudCase):

    def load(self, **variables):
        with mock.patch.dict(os.environ, variables):
            return cloud_settings.load()

    def test_values_are_validated(self):
        for name, value in (('DIR', 'relative'), ('DIR', '/' + 50 * 'x'),
                            ('PORT_BASE', 'http'), ('PORT_BASE', '80'),
                            ('PAGES', '-1'), ('VIRT_TYPE', 'xen'),
                            ('FILTER', 'none')):
            with self.subTest(name=name, value=value):
                variable = f'HPCVIRT_CLOUD_{name}'
                self.assertRaisesRegex(errors.CloudError, variable,
                                       self.load, **{variable: value})

    def test_password_stays_the_same_and_is_private(self):
        before = self.settings.password
        self.settings.prepare()
        self.assertEqual(before, self.settings.password)
        mode = (self.settings.cache / 'password').stat().st_mode
        self.assertEqual(0o600, mode & 0o777)

    def test_no_two_listeners_share_a_port(self):
        ports = list(cloud_settings.PORTS.values())
        self.assertEqual(len(ports), len(set(ports)))

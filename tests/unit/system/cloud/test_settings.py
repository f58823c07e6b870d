# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import stat
from unittest import mock

from tests.system.cloud import errors
from tests.system.cloud import settings as cloud_settings
from tests.unit.system.cloud import cloud_case


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

    def test_only_the_owner_can_look_into_the_directories(self):
        self.path.chmod(0o755)
        (self.path / 'log').chmod(0o755)
        self.settings.prepare()
        for directory in (self.settings.cache, self.settings.log,
                          self.settings.etc):
            self.assertEqual(0o700, directory.stat().st_mode & 0o777)
        for directory in (self.path, self.settings.run):
            self.assertEqual(0o711, directory.stat().st_mode & 0o777)

    def test_a_directory_of_another_user_is_refused(self):
        status = list(self.path.lstat())
        status[stat.ST_UID] += 1
        with (mock.patch.object(pathlib.Path, 'lstat', autospec=True,
                                return_value=os.stat_result(status)),
              self.assertRaisesRegex(errors.CloudError, 'belongs to')):
            self.settings.prepare()

    def test_a_directory_that_others_may_write_to_is_refused(self):
        for mode in (0o722, 0o702, 0o1777):
            self.path.chmod(mode)
            self.assertRaisesRegex(errors.CloudError, 'others may write',
                                   self.settings.prepare)

    def test_servers_must_be_able_to_enter(self):
        inner = self.path / 'inner'
        settings = cloud_settings.Settings(state=inner / 'state')
        inner.mkdir(0o711)
        settings.require_passage()
        inner.chmod(0o700)
        self.assertRaisesRegex(errors.CloudError, 'cannot enter .*inner',
                               settings.require_passage)

    def test_a_link_to_a_directory_is_refused(self):
        link = self.path / 'link'
        link.symlink_to(self.path)
        settings = cloud_settings.Settings(state=link)
        self.assertRaisesRegex(errors.CloudError, 'is not a directory',
                               settings.prepare)

    def test_no_two_listeners_share_a_port(self):
        ports = list(cloud_settings.PORTS.values())
        self.assertEqual(len(ports), len(set(ports)))

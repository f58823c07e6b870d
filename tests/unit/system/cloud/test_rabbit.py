# SPDX-License-Identifier: Apache-2.0

import configparser
import shutil
import stat
from unittest import mock

from tests.system.cloud import rabbit
from tests.system.cloud.config import control
from tests.unit.system.cloud import cloud_case


class RabbitTest(cloud_case.CloudCase):
    def test_only_root_reaches_the_cache_whose_values_are_unpickled(self):
        started = {}

        class Processes:
            def start(self, name, argv, *_):
                started[name] = argv

        self.settings.prepare()
        with mock.patch.object(shutil, 'chown', autospec=True):
            rabbit.start(self.settings, Processes())
        path = self.settings.cache_socket
        words = started['memcached']
        self.assertEqual(str(path), words[words.index('-s') + 1])
        self.assertEqual('root', words[words.index('-u') + 1])
        self.assertFalse({'-l', '-p', '-U'} & {*words})
        self.assertEqual(0o700, stat.S_IMODE(path.parent.stat().st_mode))
        control.write(self.settings)
        for service, section, option in (
                ('keystone/keystone.conf', 'cache', 'memcache_servers'),
                ('glance/glance-api.conf', 'keystone_authtoken',
                 'memcached_servers')):
            found = configparser.RawConfigParser(strict=False)
            found.read(self.settings.etc / service)
            self.assertEqual(f'unix:{path}', found[section][option])

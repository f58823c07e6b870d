# SPDX-License-Identifier: Apache-2.0

import unittest
import urllib.parse

from hpcvirt import exception
from hpcvirt.bench.execute import ssh
from tests.builders import folders


class URLTest(unittest.TestCase):
    """URLs of SSH, and what is refused in them."""

    def test_what_is_not_an_ssh_url_is_refused(self):
        for url in ('http://host', 'ssh://', 'ssh://h:x', 'ssh://h:99999',
                    'ssh://h/path', 'ssh://u:p@h', 'ssh://h?color=red',
                    'ssh://h?key=/does/not/exist', 'ssh://[::1',
                    'ssh://u:@h', 'ssh://[x]:y', 'ssh://u:pa55@h:x',
                    'ssh:/u:pa55@h', 'ssh://-oProxyCommand=id',
                    'ssh://-l@h', 'ssh://$(id)@h', 'ssh://a;id', 'ssh://%d',
                    "ssh://a'b", 'ssh://[::1%`id`]', 'ssh://\u00e4'):
            with self.subTest(url):
                with self.assertRaises(exception.InvalidInput) as caught:
                    ssh.SSHExecutor.from_url(url)
                self.assertNotIn('pa55', str(caught.exception))

    def test_the_name_leaves_out_the_key(self):
        place = ssh.SSHExecutor.from_url(f'ssh://me@n17:2222?key={__file__}')
        self.assertEqual('ssh://me@n17:2222', place.name)

    def test_the_name_is_the_one_in_the_configuration(self):
        for url in ('ssh://Node7', 'ssh://me@7.example.org', 'ssh://[fe80::1]',
                    'ssh://dom\\me@[fe80::1%eth0]:2222', 'ssh://2:2222'):
            self.assertEqual(url, ssh.SSHExecutor.from_url(url).name)

    def test_a_key_file_that_ssh_would_not_find_is_refused(self):
        for name in ('%d', '${HOME}'):
            path = folders.make(self) / name
            path.touch()
            with self.assertRaisesRegex(exception.InvalidInput, 'replace'):
                ssh.SSHExecutor.from_url(
                    f'ssh://h?key={urllib.parse.quote(str(path))}')

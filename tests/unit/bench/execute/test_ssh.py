# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.bench.execute import ssh


class URLTest(unittest.TestCase):
    """URLs of SSH, and what is refused in them."""

    def test_what_is_not_an_ssh_url_is_refused(self):
        for url in ('http://host', 'ssh://', 'ssh://h:x', 'ssh://h:99999',
                    'ssh://h/path', 'ssh://u:p@h', 'ssh://h?color=red',
                    'ssh://h?key=/does/not/exist', 'ssh://[::1',
                    'ssh://u:@h', 'ssh://[x]:y', 'ssh://u:pa55@h:x',
                    'ssh:/u:pa55@h'):
            with self.subTest(url):
                with self.assertRaises(exception.InvalidInput) as caught:
                    ssh.SSHExecutor.from_url(url)
                self.assertNotIn('pa55', str(caught.exception))

    def test_the_name_leaves_out_the_key(self):
        place = ssh.SSHExecutor.from_url(f'ssh://me@n17:2222?key={__file__}')
        self.assertEqual('ssh://me@n17:2222', place.name)

# SPDX-License-Identifier: Apache-2.0

"""The pages and services on slow nodes against what the program knows."""

import pathlib
import re
import unittest

from hpcvirt.health import signature
from tests import pages


class SignsPageTest(unittest.TestCase):
    def test_each_sign_is_listed_with_its_source(self):
        rows = [row.partition('``\n') for row in pages.read(
            'reference/slow-node-signs').split('\n   * - ``')[1:]]
        self.assertEqual(
            [(sign.name, sign.source) for sign in signature.SIGNS],
            [(name, 'CERN-HEPiX-2015' if ':cite:`CERN-HEPiX-2015`' in text
              else None) for name, _, text in rows])

    def test_signs_that_come_on_at_once_or_soon_are_named(self):
        words = ' '.join(pages.read('admin/watch-hosts').split())
        found = re.search(r'over its limit: (.*?) at once, and all others '
                          'after an hour', words)
        by_time = {}
        for sign in signature.SIGNS:
            by_time.setdefault(sign.on_s, []).append(sign.name)
        self.assertEqual(by_time[0.0], re.findall('``(.*?)``', found[1]))
        self.assertEqual({0.0, signature.LONG_S}, set(by_time))


class ServiceTest(unittest.TestCase):
    def test_a_service_that_has_ended_starts_again(self):
        """Status 2 may be a full disk, and does not keep it from starting."""
        services = [path for folder, ending in (
            ('etc/hpcvirt/systemd', '*.service'),
            ('ansible/roles/exporter/templates', '*.service.j2'))
            for path in pathlib.Path(folder).glob(ending)
            if 'Type=oneshot' not in path.read_text()]
        self.assertEqual(4, len(services))
        for path in services:
            self.assertIn('\nRestart=always\n', path.read_text(), path)
            self.assertNotIn('RestartPreventExitStatus', path.read_text())

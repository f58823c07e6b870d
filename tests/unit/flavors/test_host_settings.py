# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.flavors import host_settings


class ReservedPagesTest(unittest.TestCase):
    def test_what_nova_reads(self):
        for text, expected in (
                ('node:0,size:2048,count:64', (0, 2048, 64)),
                ('size:1GB, count:1, node:12', (12, 1048576, 1)),
                ('node:0,size:2M,count:0', (0, 2048, 0))):
            found = host_settings.read_reserved_pages(text)
            self.assertEqual(expected, (found.node, found.size, found.count))
        for text in ('', 'node:0', 'node:x,size:2048,count:1',
                     'node:0,size:big,count:1', 'node:0,size:2048,count:-1'):
            self.assertIsNone(host_settings.read_reserved_pages(text), text)

# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.model import wiring

ROOT = wiring.Bridge('0000:00:01.0')


class PathTest(unittest.TestCase):
    def test_the_root_port_is_first(self) -> None:
        switch = wiring.Bridge('0000:01:00.0', ROOT.address)
        device = wiring.Attachment('0000:02:00.0', switch.address)
        wired = wiring.Wiring((switch, ROOT), (device,))
        self.assertEqual((ROOT, switch), wired.path(device))
        self.assertEqual((ROOT,), wired.path(switch))
        self.assertEqual((), wired.path(ROOT))

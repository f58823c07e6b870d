# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.model import wiring as model
from tests.system.emulated_host import wiring


class WiringTest(unittest.TestCase):
    def test_the_host_has_a_switch_below_a_switch(self) -> None:
        depths = [len(each.path) for cell in range(len(wiring.HOST.cells))
                  for each in wiring.HOST.placed(cell) if not each.part.kind]
        self.assertEqual([3, 3, 1, 1, 3, 5, 5], depths)

    def test_a_bus_has_one_bridge_above_it(self) -> None:
        for cell in range(len(wiring.HOST.cells)):
            above = {}
            for each in wiring.HOST.placed(cell):
                self.assertIs(each.above, above.setdefault(
                    each.address[:7], each.above))
            bridges = [each for each in wiring.HOST.placed(cell)
                       if each.part.kind]
            self.assertEqual(len(bridges) + 1, len(above))

    def test_ports_of_a_switch_are_below_its_upstream_port(self) -> None:
        for each in wiring.HOST.placed(1):
            if each.part.kind == model.PortKind.DOWNSTREAM:
                self.assertEqual(model.PortKind.UPSTREAM,
                                 each.above and each.above.part.kind)

    def test_the_guest_has_its_devices_where_nova_put_them(self) -> None:
        guest = wiring.NovaGuest('guest', 'qemu64', 2, 2, 1,
                                 (('0-1', 512), ('2-3', 512)))
        # Host cell 3 is guest cell 0, host cell 1 is guest cell 1.
        self.assertEqual({'81': 1, '82': 0, '83': 0, '84': -1, '85': -1,
                          '86': 1}, guest.expected())
        words = list(guest.arguments())
        for word in ('pxb-pcie,id=pci.1,bus=pcie.0,bus_nr=253,numa_node=0',
                     'pcie-root-port,id=pci.3,chassis=3,bus=pci.2,addr=0',
                     'nvme,serial=81,bus=pci.3', 'nvme,serial=84,bus=pci.7'):
            self.assertIn(word, words)

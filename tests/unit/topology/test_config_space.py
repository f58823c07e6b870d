# SPDX-License-Identifier: Apache-2.0

import random
import unittest

from hpcvirt.model import wiring
from hpcvirt.topology import config_space

KIND = {4: wiring.PortKind.ROOT, 5: wiring.PortKind.UPSTREAM,
        6: wiring.PortKind.DOWNSTREAM, 7: wiring.PortKind.BRIDGE,
        8: wiring.PortKind.BRIDGE, 0: None}


def make(kind: int = 4, control: int | None = None,
         size: int = 4096) -> bytes:
    """Make the configuration space of a bridge.

    Its capabilities are power management and PCI Express, and extended ones
    AER and, unless the control is None, ACS.
    """
    data = bytearray(4096)
    data[0x06] = 0x10
    data[0x34] = 0x40
    data[0x40:0x44] = b'\x01\x80\x03\x00'
    data[0x80:0x84] = bytes((0x10, 0, 2 | kind << 4, 0))
    behind = 0x200 if control is not None else 0
    data[0x100:0x104] = (1 | 2 << 16 | behind << 20).to_bytes(4, 'little')
    if control is not None:
        data[0x200:0x204] = (0xd | 1 << 16).to_bytes(4, 'little')
        data[0x204:0x208] = bytes((0x5f, 0, control, 0))
    return bytes(data[:size])


class ReadBridgeTest(unittest.TestCase):
    def test_the_type_says_what_a_bridge_is(self) -> None:
        for number, kind in KIND.items():
            self.assertEqual(kind, config_space.read_bridge(make(number))[0])

    def test_each_bit_is_a_control(self) -> None:
        for bit, name in enumerate(wiring.ACS_CONTROLS):
            self.assertEqual(
                {name}, config_space.read_bridge(make(6, 1 << bit))[1])
        self.assertEqual(
            {'SrcValid', 'ReqRedir', 'CmpltRedir', 'UpstreamFwd'},
            config_space.read_bridge(make(6, 0x1d))[1])

    def test_no_control_may_be_on_and_no_acs_may_be_there(self) -> None:
        for control in (0, None):
            self.assertEqual(frozenset(), config_space.read_bridge(
                make(4, control))[1])

    def test_a_bridge_without_pci_express_has_no_acs(self) -> None:
        data = bytearray(make()[:256])
        for change in ((0x06, 0), (0x41, 0)):
            data[change[0]] = change[1]
            self.assertEqual(
                (wiring.PortKind.BRIDGE, frozenset()),
                config_space.read_bridge(bytes(data)))

    def test_what_a_user_cannot_read_is_unknown(self) -> None:
        for size in (0, 3, 64, 255):
            self.assertEqual((None, None), config_space.read_bridge(
                make(4, 0x1d, size)))

    def test_without_extended_capabilities_acs_is_unknown(self) -> None:
        for size in (256, 0x204, 0x206):
            self.assertEqual(
                (wiring.PortKind.ROOT, None),
                config_space.read_bridge(make(4, 0x1d, size)))
        self.assertEqual(
            (wiring.PortKind.ROOT, None),
            config_space.read_bridge(make(4, None, 2048)))

    def test_a_function_that_is_gone_is_unknown(self) -> None:
        self.assertEqual((None, None),
                         config_space.read_bridge(b'\xff' * 4096))

    def test_a_loop_of_capabilities_ends(self) -> None:
        data = bytearray(make())
        data[0x41] = 0x40
        self.assertEqual((None, None), config_space.read_bridge(bytes(data)))
        data = bytearray(make())
        data[0x100:0x104] = (1 | 0x100 << 20).to_bytes(4, 'little')
        self.assertEqual((wiring.PortKind.ROOT, None),
                         config_space.read_bridge(bytes(data)))

    def test_any_bytes_are_read(self) -> None:
        for seed in range(500):
            dice = random.Random(seed)
            data = bytearray(make(dice.randrange(16), dice.randrange(256)))
            for _ in range(dice.choice((1, 5, 500))):
                data[dice.randrange(4096)] = dice.randrange(256)
            size = dice.choice((4096, dice.randrange(4097)))
            kind, acs = config_space.read_bridge(bytes(data[:size]))
            self.assertIn(kind, (*wiring.PortKind, None))
            self.assertLessEqual(acs or frozenset(), {*wiring.ACS_CONTROLS})

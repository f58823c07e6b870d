# SPDX-License-Identifier: Apache-2.0

"""The bounds of extra specs are those of Nova's validators."""

import testtools

from hpcvirt.specs import vocabulary


class BoundsTest(testtools.TestCase):
    def test_bounds_can_be_reached_and_not_passed(self):
        for name, least, most in (
                ('hw:numa_nodes', 1, None),
                ('hw:numa_mem.0', 1, None),
                ('hw:cpu_sockets', 1, None),
                ('hw:redirected_usb_ports', 0, 15),
                ('hw:serial_port_count', 0, None)):
            row = vocabulary.find(name)
            self.assertTrue(row.accepts(str(least)), name)
            self.assertFalse(row.accepts(str(least - 1)), name)
            self.assertEqual(most, row.maximum)
            if most is not None:
                self.assertTrue(row.accepts(str(most)), name)
                self.assertFalse(row.accepts(str(most + 1)), name)

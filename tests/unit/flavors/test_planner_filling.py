# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import shape
from tests.builders import hosts


class ScopeTest(unittest.TestCase):
    def test_a_scope_that_costs_guests_is_dropped(self):
        # Cell 0 has less memory, so that Nova's claim starts at cell 1.
        for memories, kept in (((65536,) * 4, True),
                               ((64000, 65536, 65536, 65536), False)):
            host = hosts.build(4, 8, mib=memories, sockets=2)
            plan = planner.plan([host], profiles.Profile())
            guest = next(row.guest for row in plan.flavors
                         if len(row.guest.cells) == 2)
            scoped = dataclasses.replace(guest,
                                         numa_scope=shape.NUMAScope.SOCKET)
            fill = planner.HostFiller({'host': ('host', 'twin')}, False)
            found, reason = planner.drop_costly_scope(
                scoped, plan.hosts, profiles.Profile(), fill)
            self.assertEqual(kept, reason is None)
            self.assertEqual(kept, found == scoped)
            if reason:
                self.assertIn('host, twin', reason)

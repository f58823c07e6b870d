# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.model import shape
from hpcvirt.tempest_plugin import plan
from tests.builders import hosts


class SpreadTest(unittest.TestCase):
    def test_a_flavor_of_one_cell_is_spread_over_two(self):
        for name in ('hs06-2s-16c', 'intel-2s-16c-smt'):
            document = plan_document.make_document(
                planner.plan([hosts.named(name)], profile.DENSE))
            flavor = plan.whole_cell(document.flavors, name, 2)
            for scope in shape.NUMAScope:
                with self.subTest(name=name, scope=scope):
                    found = plan.decode(plan.spread(flavor, 2, scope))
                    self.assertEqual(2 * flavor.vcpus, found.cpus)
                    self.assertEqual(2, len(found.cells))
                    self.assertEqual(scope, found.numa_scope)

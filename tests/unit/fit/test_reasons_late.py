# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.fit import engine
from hpcvirt.fit import reasons
from tests.builders import tiny


class LateMisfitTest(unittest.TestCase):
    """A refusal whose reason is looked for when it is read."""

    def setUp(self):
        super().setUp()
        self.looked = 0
        self.misfit = engine.check(tiny.guest(6, 6), tiny.host(3, 4, 0))
        self.late = reasons.LateMisfit(self.explain)

    def explain(self):
        self.looked += 1
        return self.misfit

    def test_nothing_is_looked_for_before_it_is_read(self):
        self.assertTrue(self.late)
        self.assertEqual(0, self.looked)

    def test_it_reads_like_the_refusal_and_is_looked_for_once(self):
        for name in ('code', 'details', 'causes', 'message', 'root'):
            self.assertEqual(getattr(self.misfit, name),
                             getattr(self.late, name))
        self.assertEqual(str(self.misfit), f'{self.late}')
        self.assertEqual(1, self.looked)

    def test_it_equals_the_refusal(self):
        self.assertEqual(self.misfit, self.late)
        self.assertEqual(self.late, reasons.LateMisfit(self.explain))
        self.assertEqual({self.misfit}, {self.late})
        self.assertNotEqual(self.late, engine.check(
            tiny.guest(7), tiny.host(3)))

# SPDX-License-Identifier: Apache-2.0

"""Compare the count of what hosts in use still take with Nova's claim."""

import random
import unittest

from tests.functional import random_capacity

SEED = 20261123


class FleetCapacityTest(unittest.TestCase):
    def check_random_hosts(self, number, seed):
        """Compare flavors of all policies, with devices, pages and SMT."""
        dice = random.Random(seed)
        found = [figure for _ in range(number)
                 for figure in random_capacity.figures(dice)]
        for figure in found:
            self.assertEqual((figure.taken, figure.promised),
                             (figure.counted, figure.by_sums), figure)
        kinds = {word for figure in found if figure.taken
                 for word in figure.kind.split()}
        self.assertLessEqual({'dedicated', 'shared', 'mixed', 'PCI', 'vGPU',
                              'threads', 'pages'}, kinds)
        # Sums are wrong often enough for the agreement to mean something.
        self.assertGreater(sum(figure.by_sums > figure.taken
                               for figure in found), len(found) / 10)

    def test_all_kinds_of_flavors_are_counted_as_nova_takes_them(self):
        self.check_random_hosts(16, SEED)

    def test_periodic_all_kinds_of_flavors_on_many_hosts(self):
        self.check_random_hosts(300, SEED + 1)

# SPDX-License-Identifier: Apache-2.0

import pathlib
import re
import sys
import unittest

from demo import fleet

BENCHMARKS = pathlib.Path(__file__).parents[3] / 'benchmarks'
sys.path.insert(0, str(BENCHMARKS))
try:
    import seeds
finally:
    sys.path.remove(str(BENCHMARKS))
ROW = re.compile(r'^ +(small|large)   (Nova|Nova packing) +'
                 r'(\d+) +(\d+) +(\d+)$', re.MULTILINE)
NAMES = {'Nova': 'nova', 'Nova packing': 'packing'}


class SeedsTest(unittest.TestCase):
    """The script that places the sequences of other seeds."""

    def test_own_seed_is_not_among_the_others(self):
        self.assertEqual([1, 2, 4, 5], seeds.others(3, 4))
        self.assertEqual([2, 3, 4], seeds.others(1, 3))

    def test_seeds_are_better_equal_or_worse(self):
        def outcomes(**large):
            return {name: seeds.Outcome(4, number)
                    for name, number in large.items()}

        found = {1: outcomes(hpcvirt=3, nova=1, packing=4),
                 2: outcomes(hpcvirt=3, nova=3, packing=4)}
        self.assertEqual(
            [('nova', 'small', 0, 2, 0), ('nova', 'large', 1, 1, 0),
             ('packing', 'small', 0, 2, 0), ('packing', 'large', 0, 0, 2)],
            list(seeds.verdicts(found)))

    def test_readme_shows_the_other_seeds(self):
        rows = ROW.findall((fleet.ROOT / 'README.rst').read_text())
        found = seeds.compare(seeds.scene(), seeds.others(1, 20))
        self.assertEqual(
            [(NAMES[other], size, int(better), int(equal), int(worse))
             for size, other, better, equal, worse in rows],
            list(seeds.verdicts(found)))

# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The intervals of the table of strategies."""

import importlib.util
import pathlib
import random
import sys
import unittest

from hpcvirt.simulate import compare
from hpcvirt.simulate import tally

ROOT = pathlib.Path(__file__).parents[3]

_spec = importlib.util.spec_from_file_location(
    'replay_table', ROOT / 'benchmarks' / 'replay.py')
replay = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = replay
_spec.loader.exec_module(replay)


def row(log, dice, more, common=None):
    """Make a row where a loses so much more than b, but for noise."""
    parts = {'a': [], 'b': []}
    for window in range(replay.WINDOWS):
        offered = dice.uniform(80, 120)
        lost = dice.uniform(10, 30)
        noise = dice.gauss(0, 2) if common is None else common[window]
        parts['a'].append((offered, lost + more * offered / 100 + noise))
        parts['b'].append((offered, lost))
    return replay.Row(log, 'any', 1, {
        name: {'parts': each} for name, each in parts.items()})


class IntervalTest(unittest.TestCase):

    def test_that_of_one_row_is_that_of_the_command(self):
        dice = random.Random(1)
        only = row('log', dice, 2)
        found = replay.interval([only], 'a', 'b')
        own, other = ([tally.Share(*part) for part in only.lost[name]['parts']]
                      for name in 'ab')
        expected = compare.difference('a', own, 'b', other)
        self.assertAlmostEqual(expected.percent, found.mean)
        self.assertAlmostEqual(expected.reach, found.reach)

    def test_rows_of_one_log_are_no_new_observations(self):
        dice = random.Random(2)
        only = row('log', dice, 2)
        one, many = (replay.interval([only] * number, 'a', 'b')
                     for number in (1, 7))
        self.assertAlmostEqual(one.reach, many.reach)

    def test_19_of_20_intervals_hold_the_true_difference(self):
        dice = random.Random(3)
        held = 0
        for _ in range(600):
            rows = []
            for log in 'xyz':
                common = [dice.gauss(0, 2) for _ in range(replay.WINDOWS)]
                rows += [row(log, dice, 2, common) for _ in range(3)]
            found = replay.interval(rows, 'a', 'b')
            held += abs(found.mean - 2) <= found.reach
        self.assertLess(abs(held / 600 - 0.95), 0.025)

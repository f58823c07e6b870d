# SPDX-License-Identifier: Apache-2.0

import csv
import random
import unittest

from benchmarks import replay
from hpcvirt.simulate import totals
from tests import pages

ROOT = pages.ROOT
BENCHMARKS = ROOT / 'benchmarks'


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


class TestWeigherBenefit(unittest.TestCase):
    """The figures of the pages against the table of replays."""

    def test_pages_say_what_the_table_has(self):
        with (BENCHMARKS / 'results' / 'weigher_benefit.csv').open(
                newline='') as file:
            rows = {row['Fleet']: row for row in csv.DictReader(file)}
        every = rows['all']
        reference = ' '.join((BENCHMARKS / 'README.rst').read_text().split())
        which, weighers = (' '.join(pages.read(name).split()) for name in (
            'which-part', 'admin/weighers'))
        for heading in replay.STRATEGIES.values():
            self.assertIn(f'- {every[heading]} %', reference)
        nova, packing, without, ours = (
            float(every[replay.STRATEGIES[name]])
            for name in ('nova', 'packing', 'packing+pci=0', 'hpcvirt'))
        gains = f'{nova - without:.1f} of the {nova - ours:.1f}'
        for page in reference, which:
            self.assertIn(gains, page)
        for fleet in ('mixed', 'VF 25 %, half, required', 'GPU sets'):
            gain = rows[fleet]['hpcvirt - Packing'].split()[0].lstrip('-')
            self.assertIn(f'{gain} points', reference)
        self.assertIn(f'{packing - without:.1f} points', weighers)


class IntervalTest(unittest.TestCase):
    """The intervals of the table of strategies."""

    def test_that_of_one_row_is_that_of_the_command(self):
        dice = random.Random(1)
        only = row('log', dice, 2)
        found = replay.interval([only], 'a', 'b')
        own, other = ([totals.CoreHours(*part) for part
                       in only.lost[name]['parts']]
                      for name in 'ab')
        expected = totals.difference(own, other)
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

# SPDX-License-Identifier: Apache-2.0

import csv
import importlib.util
import random
import sys
import unittest

from hpcvirt.simulate import totals
from tests import pages

ROOT = pages.ROOT
REFERENCE = ROOT / 'doc' / 'source' / 'reference'
replay_spec = importlib.util.spec_from_file_location(
    'replay_table', ROOT / 'benchmarks' / 'replay.py')
replay = importlib.util.module_from_spec(replay_spec)
sys.modules[replay_spec.name] = replay
replay_spec.loader.exec_module(replay)


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
        with (REFERENCE / 'weigher_benefit.csv').open(newline='') as file:
            rows = {(row['Requests'], row['Hosts']): row
                    for row in csv.DictReader(file)
                    if row['Cells first'] == 'emptiest'}
        every = rows['all', 'all']
        nova, packing, own = (
            float(every[name]) for name in ('Nova', 'Packing', 'hpcvirt'))
        reference, which = (' '.join(pages.read(name).split()) for name in (
            'reference/weigher-benefit', 'which-part'))
        for lost in (nova, packing, own, float(every['One bin'])):
            self.assertIn(f'- {lost} %', reference)
        gains = f'{nova - packing:.1f} of the {nova - own:.1f}'
        for page in reference, which:
            self.assertIn(gains, page)
        for hosts in '26 mixed', '20, half with VFs':
            gain = rows['all', hosts]['hpcvirt - packing'].split()[0]
            self.assertIn(f'{gain.lstrip("-")} points', reference)
            self.assertIn(f'They lose {gain.lstrip("-")} points less', which)


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

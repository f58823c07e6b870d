# SPDX-License-Identifier: Apache-2.0

import csv
import importlib.util
import random
import sys
import unittest

import testtools

from hpcvirt.simulate import totals
from tests import pages

ROOT = pages.ROOT
REFERENCE = ROOT / 'doc' / 'source' / 'reference'
_spec = importlib.util.spec_from_file_location(
    'history', ROOT / 'benchmarks' / 'history.py')
history = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(history)


class TestHistory(testtools.TestCase):
    """The error rates of histories that the documentation promises."""

    def table(self, name):
        self.assertIn(f'{name}.csv', pages.read(
            'reference/history-rates'))
        with (REFERENCE / f'{name}.csv').open(newline='') as file:
            return list(csv.reader(file))[1:]

    def test_no_rate_of_false_alarms_is_above_5_percent(self):
        rows = self.table('history_rates')
        self.assertEqual(list(history.NOISE), [row[0] for row in rows])
        for name, alarms, *_ in rows:
            self.assertLessEqual(float(alarms), 100 * history.limit(300), name)
        rows = self.table('history_rates_of_hosts')
        self.assertEqual(len(history.AMONG_HOSTS) * len(history.HOSTS),
                         len(rows))
        for name, _, alarms, *_ in rows:
            self.assertLessEqual(float(alarms), 100 * history.limit(150), name)

    def test_a_creep_is_found_on_a_host_without_much_noise(self):
        for name, _, *found in self.table('history_rates'):
            for cell in found[:3] if name.startswith('CV 1 %') else found[2:3]:
                self.assertGreaterEqual(int(cell.partition(' ')[0]), 65, name)

    def test_the_table_is_what_the_script_prints(self):
        printed = {name: cells for name, *cells in self.table('history_rates')}
        for name in ('CV 5 %', 'CV 1 %, 5 % of runs 3 times slower'):
            alarms, found, cleared = history.of_a_host(name, 25)
            self.assertLessEqual(alarms, 0.04)
            shown = [int(cell.partition(' ')[0]) / 100
                     for cell in printed[name][1:]]
            for rate, expected in zip(
                    [*(part for part, _ in found), cleared], shown,
                    strict=True):
                # Of 5 histories.
                self.assertLessEqual(abs(rate - expected), 0.5)

    def test_a_slow_host_among_others_is_found(self):
        self.assertEqual((0.0, 1.0, 0.0), history.of_hosts('CV 5 %', 10, 1))


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


class TestStandingRoom(unittest.TestCase):
    """The figures of the page against the table of replays."""

    def test_the_page_says_what_the_table_has(self):
        with (REFERENCE / 'standing_room.csv').open(newline='') as file:
            *_, every = csv.DictReader(file)
        page = ' '.join(pages.read('reference/standing-room').split())
        for words in ('at a refusal', 'beforehand', 'every tenth'):
            gain = every[f'Gained {words}'].split()[0].lstrip('+')
            moves = every[f'Moves {words}']
            self.assertIn(f'{gain} points for {moves} moves', page)


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

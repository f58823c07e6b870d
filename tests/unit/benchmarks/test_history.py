# SPDX-License-Identifier: Apache-2.0

import csv
import importlib.util

import testtools

from tests import pages

ROOT = pages.ROOT
BENCHMARKS = ROOT / 'benchmarks'
_spec = importlib.util.spec_from_file_location(
    'history', ROOT / 'benchmarks' / 'history.py')
history = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(history)


class TestHistory(testtools.TestCase):
    """The error rates of histories that the documentation promises."""

    def table(self, name):
        self.assertIn(f'{name}.csv', (
            BENCHMARKS / 'README.rst').read_text())
        with (BENCHMARKS / 'results' / f'{name}.csv').open(
                newline='') as file:
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

# SPDX-License-Identifier: Apache-2.0

import re

from tests.unit.bench.parsers import base

GOOD = base.data('lammps/serial.out').decode()
TWO = base.data('lammps/two_runs_np2.log').decode()

GOOD_OUTPUTS = ((base.data('lammps/two_runs_np2.log'), {'steps': '150'}),)
#: What LAMMPS prints as a library of a script that does not close it.
LIBRARY = GOOD.partition('Total wall')[0]


class TestLammps(base.ParserTestCase):
    parser = 'lammps'
    refused = (
        ('an error', 'Lost atoms', base.data('lammps/lost_atoms.out')),
        ('a simulation that blew up', 'became unstable',
         GOOD.replace('200   0.75139921   -5.7500924', '200   nan   -nan')),
        ('a truncated run', 'no "Total wall time"',
         GOOD.partition('Neighbor list builds')[0]),
        ('a truncated run', 'no "Loop time"', GOOD.partition('Loop')[0]),
        ('a rate that the loop denies', 'do not agree',
         GOOD.replace('526.173 timesteps', '5261.73 timesteps')),
        ('two executions', 'several executions', GOOD + GOOD),
        ('other steps', 'steps=500 was requested', GOOD, {'steps': '500'}),
    )

    def test_a_run_is_read(self):
        self.assertEqual(
            {'timesteps_per_s': 526.173, 'loop_time_s': 0.380103},
            self.figures(GOOD, {'steps': '200', 'atoms': '4000',
                                'ranks': '1', 'threads': '1'}))

    def test_the_last_run_of_a_script_counts(self):
        found = self.parse(TWO, {'ranks': '2', 'steps': '150'})
        self.assertEqual(21.185, found.metrics['timesteps_per_s'].value)
        self.assertIn('2 runs', found.remarks[0])

    def test_versions_that_print_no_rate_are_read(self):
        raw = ''.join(line for line in GOOD.splitlines(keepends=True)
                      if not line.startswith('Performance'))
        self.assertAlmostEqual(200 / 0.380103,
                               self.figures(raw)['timesteps_per_s'])

    def test_a_rate_below_one_step_per_second_keeps_its_digits(self):
        for printed, seconds in (('0.012', '16194.3'), ('0.000', '2.5e+06')):
            raw = base.data('lammps/serial.out').decode().replace(
                '0.380103', seconds).replace('526.173', printed)
            raw = re.sub(r'^(\w+ +\|).*\|.*\n', '', raw, flags=re.MULTILINE)
            self.assertAlmostEqual(200 / float(seconds), self.figures(
                raw)['timesteps_per_s'], 12)

    def test_newer_units_of_the_performance_line_are_read(self):
        raw = GOOD.replace(
            'Performance: 227306.529 tau/day, 526.173 timesteps/s',
            'Performance: 90.923 ns/day, 0.264 hours/ns, 526.173 timesteps/s'
            ', 2.105 Matom-step/s')
        self.assertEqual(526.173, self.figures(raw)['timesteps_per_s'])

    def test_a_library_that_nobody_closes_prints_no_wall_time(self):
        raw = LIBRARY.replace('29 Sep 2021', '28 Mar 2023')
        found = self.parse(raw, {'version': '28Mar2023'})
        self.assertEqual(526.173, found.metrics['timesteps_per_s'].value)
        self.assertIn('no "Total wall time"', found.remarks[0])

    def test_a_run_that_did_not_end_after_another_is_refused(self):
        begin = TWO.index('run 150')
        for end in (begin + 7, TWO.index('Step', begin) + 20,
                    TWO.rindex('Loop time')):
            self.assert_refused('the last run', TWO[:end])
            self.assert_refused('the last run',
                                TWO[:end] + '\nTotal wall time: 0:00:13\n')

    def test_two_runs_that_a_cut_joins_are_refused(self):
        first, second = (TWO.index('Pair  '), TWO.rindex('Comm  '))
        self.assert_refused('add up to', TWO[:first] + TWO[second:])
        first, second = (TWO.index('\nLoop time'), TWO.rindex('\nLoop time'))
        self.assert_refused('lines are missing', TWO[:first] + TWO[second:])

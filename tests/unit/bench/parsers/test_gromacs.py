# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

LOG = base.data('gromacs/md.log').decode()
STDERR = base.data('gromacs/stderr.txt').decode()

GOOD_OUTPUTS = (
    (base.data('gromacs/md.log'), {}), (base.data('gromacs/stderr.txt'), {}))


class TestGromacs(base.ParserTestCase):
    parser = 'gromacs'
    refused = (
        ('a log without its end', 'no "Finished mdrun"',
         LOG.partition('Finished mdrun')[0]),
        ('a fatal error', 'Fatal error: Your CPU is gone',
         'Program:     gmx mdrun\n\nFatal error:\nYour CPU is gone\n'),
        ('other steps', 'steps=5000 was requested', LOG, {'steps': '5000'}),
        ('two logs', 'several runs', LOG + LOG),
        ('the standard error twice', 'several runs', STDERR + STDERR),
        ('the standard error twice', 'several runs', LOG + STDERR + STDERR),
        ('a log without its beginning, and a whole one', 'several runs',
         LOG.partition('Started mdrun')[2] + LOG),
    )

    def test_the_log_and_standard_error_say_the_same(self):
        for raw in (LOG, STDERR, LOG + STDERR):
            self.assertEqual(
                {'ns_per_day': 87.691, 'wall_s': 0.987},
                self.figures(raw, {'nsteps': '500', 'ntmpi': '1',
                                   'ntomp': '1'}))

    def test_the_four_columns_of_version_4_are_read(self):
        raw = LOG.replace(
            '                 (ns/day)    (hour/ns)\n'
            'Performance:       87.691        0.274',
            '               (Mnbf/s)   (GFlops)   (ns/day)  (hour/ns)\n'
            'Performance:    123.456      9.876     87.691      0.274')
        self.assertEqual(87.691, self.figures(raw)['ns_per_day'])

    def test_a_run_that_was_stopped_is_refused_though_it_finished(self):
        raw = base.data('gromacs/killed.log')
        self.assertIn(b'Finished mdrun', raw)
        self.assert_refused('Received the TERM signal', raw)

    def test_a_line_of_performance_cut_short_is_refused(self):
        end = STDERR.index('Performance:')
        for length in range(12, len('Performance:       87.691        0.27')):
            self.assertFalse(self.parse(STDERR[:end + length + 1]).valid)

    def test_steps_of_the_command_line_count(self):
        raw = LOG.replace('Using 1 MPI thread', 'Overriding nsteps with value'
                          ' passed on the command line: 900 steps, 1.8 ps\n'
                          'Using 1 MPI thread')
        self.figures(raw, {'steps': '900'})

    def test_bad_figures_are_refused(self):
        for word in ('nan', 'inf', '0.000', '-1.000', '876.91'):
            self.assert_refused('', LOG.replace('87.691', word))

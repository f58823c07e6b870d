# SPDX-License-Identifier: Apache-2.0

from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition
from tests.unit.bench.parsers import base

GOOD = base.data('qe/au.out').decode()
STOPPED = base.data('qe/au_maxstep2.out').decode()
TWO = base.data('qe/si8_np2.out').decode()


def with_wall(words):
    return GOOD.replace('0.49s CPU      0.56s WALL',
                        f'{words} CPU  {words} WALL')

GOOD_OUTPUTS = (
    (base.data('qe/au.out'), {}),
    (base.data('qe/au_maxstep2.out'), {'rc': '2'}))


class TestQe(base.ParserTestCase):
    parser = 'qe'
    refused = (
        ('a run that should have stopped', 'exit status 0, expected 2', GOOD,
         {'rc': '2'}),
        ('a missing pseudopotential is refused with the cause',
         'missing.UPF not found', base.data('failures/qe_nopseudo/stdout')),
        ('a truncated run', 'no "JOB DONE."', GOOD.partition('JOB')[0]),
        ('a run that ran out of time', 'Maximum CPU time exceeded',
         GOOD.replace(
             'End of self-consistent calculation',
             'Maximum CPU time exceeded')),
        ('two runs', 'several runs', GOOD + GOOD),
    )

    def test_a_converged_run_is_read(self):
        self.assertEqual({'wall_s': 0.56, 'electrons_s': 0.37},
                         self.figures(GOOD, {'rc': '0', 'atoms': '1',
                                             'converged': 'yes'}))

    def test_a_run_that_stopped_is_refused_unless_that_is_the_design(self):
        self.assert_refused('convergence NOT achieved after 2 iterations',
                            STOPPED)
        figures = self.figures(STOPPED, {'exit_status': '2',
                                         'iterations': '2'})
        self.assertEqual(0.5, figures['wall_s'])

    def test_the_exit_status_that_was_seen_must_fit(self):
        self.assertTrue(self.parse(STOPPED, {'rc': '2'}, 2).valid)
        self.assert_refused('exit status 0', STOPPED, {'rc': '2'}, 0)
        self.assert_refused('exit status 137', GOOD, None, 137)

    def test_times_are_read_in_every_form(self):
        for words, seconds in (
                ('3.2s', 3.2), ('12m34.56s', 754.56), (' 1m 5.20s', 65.2),
                ('1h23m', 4980), ('1h 3m', 3780), ('1d 2h 3m', 93780),
                ('59.99s', 59.99)):
            self.assertAlmostEqual(seconds,
                                   self.figures(with_wall(words))['wall_s'])

    def test_times_to_the_minute_are_said_to_be_coarse(self):
        self.assertIn('rounded to minutes',
                      self.parse(with_wall('1h23m')).remarks[0])

    def test_bad_times_are_refused(self):
        for words in ('0.00s', '-1.00s', 'nans', '********s', '3.2', ''):
            self.assert_refused('WALL', with_wall(words))

    def test_ranks_and_energy_are_compared_with_what_was_asked_for(self):
        self.figures(TWO, {'np': '2', 'nat': '8', 'energy': '-63.3270'})
        self.assert_refused('energy=-63.4 was requested', TWO,
                            {'energy': '-63.4'})
        self.assert_refused('ranks=4 was requested', TWO, {'ranks': '4'})

    def test_the_first_iteration_is_compared_too(self):
        expect = {'rc': '2', 'first_energy': '-102.0211',
                  'energy': '-102.0306'}
        self.figures(STOPPED, expect)
        self.assert_refused('first_energy=-102.0306 was requested', STOPPED,
                            {**expect, 'first_energy': '-102.0306'})

    def test_ausurf112_is_held_to_its_published_energy(self):
        ausurf112 = catalogue.get('qe-ausurf112')
        expect = definition.expectations(ausurf112, {'ranks': '1'})
        raw = STOPPED.replace('atoms/cell      =            1',
                              'atoms/cell      =          112')
        self.figures(raw.replace('-102.02109792', '-11423.48971757'), expect)
        self.assert_refused(
            'first_energy=-11423.4903 was requested',
            raw.replace('-102.02109792', '-11423.70000000'), expect)

    def test_mpi_with_openmp_is_read(self):
        raw = GOOD.replace(
            'Parallel version (MPI), running on     1 processors',
            'Parallel version (MPI & OpenMP), running on      48 processor '
            'cores\n     Number of MPI processes:                24\n'
            '     Threads/MPI process:                     2')
        self.figures(raw, {'ranks': '24', 'threads': '2'})

# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

NATIVE = base.data('native_np1/hpccoutf.txt').decode()
GUEST = base.data('guest_tcg_np1/hpccoutf.txt').decode()
TWO = base.data('hpcc/np2.txt').decode()

GOOD_OUTPUTS = (
    (base.data('hpcc/np2.txt'), {}),
    (base.data('guest_tcg_np1/hpccoutf.txt'), {}))


class TestHpcc(base.ParserTestCase):
    parser = 'hpcc'
    refused = (
        ('a sentinel with two ranks', 'MaxPingPongLatency_usec is -1',
         TWO.replace(
             'MaxPingPongLatency_usec=0.359722',
             'MaxPingPongLatency_usec=-1')),
        ('a killed run', 'no summary',
         base.data('failures/hpcc_killed/hpccoutf.txt')),
        ('a run out of memory is refused with the cause',
         'Failed to allocate memory',
         base.data('failures/hpcc_oom/hpccoutf.txt')),
        ('denormal memory is no figure', 'uninitialized memory',
         NATIVE.replace(
             'StarFFT_Gflops=3.7611',
             'StarFFT_Gflops=6.95251e-313')),
        ('a failed residual', 'a check failed',
         NATIVE.replace('0.0045721 ...... PASSED', '17.2 ...... FAILED')),
        ('a residual without a verdict', 'did not pass',
         NATIVE.replace('0.0045721 ...... PASSED', '0.0045721 ...... PAS')),
        ('two runs in one file', '2 runs in one file', NATIVE + NATIVE),
        ('an exponent that was lost', "is not the rate in HPL's table",
         GUEST.replace('HPL_Tflops=7.83954e-05', 'HPL_Tflops=7.83954')),
        ('a figure that stands twice', 'occurs twice',
         NATIVE.replace('HPL_N=1000', 'HPL_N=1000\nHPL_N=1000')),
        ('a missing figure', 'no StarSTREAM_Triad',
         NATIVE.replace('StarSTREAM_Triad=', 'StarSTREAM_Tri=')),
        ('the end marker is needed', 'no end marker',
         NATIVE.replace('End of HPC Challenge tests.', '')),
    )

    def test_the_native_figures_are_those_of_the_summary(self):
        figures = self.figures(NATIVE)
        self.assertEqual(0.424332, figures['StarRandomAccess_GUPs'])
        self.assertEqual(0.0282498, figures['HPL_Tflops'])
        self.assertEqual(27.3926, figures['StarSTREAM_Triad'])
        self.assertEqual(48.8317, figures['StarDGEMM_Gflops'])

    def test_an_exponent_is_read(self):
        self.assertEqual(7.83954e-05, self.figures(GUEST)['HPL_Tflops'])

    def test_one_rank_measures_no_latency_and_says_so(self):
        found = self.parse(NATIVE)
        self.assertNotIn('MaxPingPongLatency_usec', found.metrics)
        self.assertIn('one rank', found.remarks[0])

    def test_two_ranks_measure_latency_and_bandwidth(self):
        found = self.parse(TWO, {'ranks': '2', 'P': '1', 'Q': '2'})
        latency = found.metrics['MaxPingPongLatency_usec']
        self.assertEqual((0.359722, 'us', 'down'),
                         (latency.value, latency.unit, latency.direction))
        self.assertEqual(
            13.757, found.metrics[
                'RandomlyOrderedRingBandwidth_GBytes'].value)

    def test_what_was_asked_for_is_known_by_the_names_people_use(self):
        self.figures(NATIVE, {'n': '1000', 'HPL_NB': '80', 'np': '1',
                              'CommWorldProcs': '1', 'version': '1.5.0'})

    def test_another_size_is_refused(self):
        for key, value in (('N', '2000'), ('NB', '100'), ('P', '2'),
                           ('Q', '2'), ('ranks', '4')):
            self.assert_refused(f'{key}={value} was requested', NATIVE,
                                {key: value})

    def test_the_run_that_hpcc_makes_up_is_refused(self):
        for name in ('failures/hpcc_too_few/hpccoutf.txt',
                     'hpcc/default_np4.txt'):
            self.assert_refused('the default problem of HPCC', base.data(name))

    def test_that_run_counts_if_it_is_what_was_asked_for(self):
        raw = base.data('failures/hpcc_too_few/hpccoutf.txt')
        self.assertEqual(0.00695493,
                         self.figures(raw, {'N': '2560'})['HPL_Tflops'])

    def test_success_alone_does_not_make_it_good(self):
        raw = base.data('failures/hpcc_oom/hpccoutf.txt')
        self.assert_refused('a check failed',
                            raw.replace(b'Success=0', b'Success=1'))

    def test_bad_values_are_refused(self):
        for value in ('-1', '0', 'nan', '-nan', 'inf', '1e400', '', 'x',
                      '1,5', '0x1p3', '9.9e+200', '********'):
            self.assert_refused(
                'StarSTREAM_Triad', NATIVE.replace(
                    'StarSTREAM_Triad=27.3926', f'StarSTREAM_Triad={value}'))

    def test_a_failed_check_of_any_section_is_refused(self):
        for good, bad in (
                ('Found 0 errors in 524288 locations (passed).',
                 'Found 9999 errors in 524288 locations (failed).'),
                ('Solution Validates', 'Failed Validation on array a[]'),
                ('Node(s) with error 0', 'Node(s) with error 1'),
                ('WALL   500   500  80  80   1   1     0.00 PASSED',
                 'WALL   500   500  80  80   1   1     0.00 FAILED')):
            self.assert_refused('a check failed', NATIVE.replace(good, bad, 1))

    def test_no_residual_at_all_is_refused(self):
        lines = [line for line in NATIVE.splitlines()
                 if not line.startswith('||Ax-b||')]
        self.assert_refused('no residual check', '\n'.join(lines))

    def test_a_summary_at_odds_with_its_sections_is_refused(self):
        for good, bad in (
                ('HPL_Tflops=0.0282498', 'HPL_Tflops=0.282498'),
                ('StarRandomAccess_GUPs=0.424332',
                 'StarRandomAccess_GUPs=4.24332'),
                ('StarDGEMM_Gflops=48.8317', 'StarDGEMM_Gflops=58.8317')):
            self.assert_refused(good.partition('=')[0],
                                NATIVE.replace(good, bad))

    def test_older_versions_lack_some_figures(self):
        bare = '\n'.join(line for line in NATIVE.splitlines()
                         if '_LCG_' not in line)
        self.assert_refused('no MPIRandomAccess_LCG_GUPs', bare)
        old = bare.replace('VersionMinor=5', 'VersionMinor=3')
        self.assertNotIn('StarRandomAccess_LCG_GUPs', self.figures(old))

    def test_an_exit_status_other_than_0_is_refused(self):
        self.assert_refused('exit status 124', NATIVE, exit_status=124)
        self.assertTrue(self.parse(NATIVE, exit_status=0).valid)

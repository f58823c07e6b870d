# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

KERNELS = {'cg': 2428.81, 'ep': 119.93, 'ft': 1148.05, 'is': 429.82,
           'lu': 4588.90, 'mg': 6149.82}
CG = base.data('native_np1/npb_cg.S.out').decode()


def block(kernel='SP', klass='C', verification='  SUCCESSFUL', more='',
          share='', mops='3500.00', version='3.4.2'):
    """An output as NPB 3.4 prints it.

    :param more: lines of processes or threads
    """
    return f"""

 NAS Parallel Benchmarks 3.4 -- {kernel} Benchmark

 Verification being performed for class {klass}

 {kernel} Benchmark Completed.
 Class           =                        {klass}
 Size            =            162x 162x 162
 Iterations      =                      400
 Time in seconds =                   414.00
{more} Mop/s total     =             {mops:>12}
{share} Operation type  =           floating point
 Verification    =             {verification}
 Version         =             {version:>12}
 Compile date    =              20 Nov 2026

 Compile options:
    MPIFC        = mpif90
    FLINK        = $(MPIFC)
    RAND         = (none)
"""


MPI = block(more=' Total processes =                        9\n'
                 ' Active processes=                        4\n',
            share=' Mop/s/process   =                   388.89\n')
OPENMP = block(more=' Total threads   =                        4\n'
                    ' Avail threads   =                        4\n',
               share=' Mop/s/thread    =                   875.00\n')
SERIAL = block()

GOOD_OUTPUTS = ((base.data('native_np1/npb_lu.S.out'), {}), (MPI.encode(), {}))


class TestNpb(base.ParserTestCase):
    parser = 'npb'
    refused = (
        ('a wrong number of processes is refused with both numbers',
         '2 processes were started, but the program is compiled for 1',
         base.data('failures/npb_wrong_np/stdout')),
        ('a wrong number of processes is refused with both numbers',
         'compiled for 2',
         CG.replace(
             'Compiled procs  =                        1',
             'Compiled procs  =                        2')),
        ('what mpirun says is in the reason', 'attempt to run as root',
         base.data('failures/notroot/stderr')),
        ('a contradicted verification', 'also says',
         CG.replace('VERIFICATION SUCCESSFUL', 'VERIFICATION FAILED')),
        ('a number too wide for its field', 'did not fit',
         block(mops='************')),
        ('a share that does not add up', 'does not agree',
         MPI.replace('388.89', '38.89')),
        ('headers only', 'not complete',
         CG.partition('Benchmark completed')[0]),
        ('an output without its verification', 'no verification',
         CG.partition(' Verification    =')[0]),
        ('two kernels in one file', 'several runs', CG + CG),
    )

    def test_every_kernel_of_version_3_3_is_read(self):
        for kernel, mops in KERNELS.items():
            raw = base.data(f'native_np1/npb_{kernel}.S.out')
            found = self.figures(raw, {'benchmark': kernel, 'class': 'S',
                                       'np': '1', 'version': '3.3'})
            self.assertEqual(mops, found['mops_total'])

    def test_the_guest_outputs_are_read(self):
        raw = base.data('guest_tcg_np1/npb_ep.S.out')
        self.assertEqual({'mops_total': 4.41, 'time_s': 7.6},
                         self.figures(raw))

    def test_a_time_that_rounds_to_0_is_left_out_with_a_remark(self):
        found = self.parse(base.data('native_np1/npb_mg.S.out'))
        self.assertEqual(['mops_total'], list(found.metrics))
        self.assertIn('0.00 s', found.remarks[0])

    def test_version_3_4_counts_the_processes_that_took_part(self):
        self.assertEqual(3500, self.figures(MPI, {'processes': '4'})[
            'mops_total'])
        self.assert_refused('processes=9 was requested', MPI,
                            {'processes': '9'})
        self.assertIn('4 of 9', self.parse(MPI).remarks[0])

    def test_the_openmp_and_serial_versions_are_read(self):
        self.figures(OPENMP, {'threads': '4', 'processes': '1', 'cpus': '4'})
        self.figures(SERIAL, {'threads': '1', 'processes': '1',
                              'size': '162x162x162', 'iterations': '400'})

    def check_shares(self, mops, count, accepted, refused):
        """Check which rates of a process agree with a total rate."""
        for share in (*accepted, *refused):
            raw = block(mops=mops,
                        more=f' Total processes = {count:24}\n',
                        share=f' Mop/s/process   = {share:>24}\n')
            if share in accepted:
                self.figures(raw)
            else:
                self.assert_refused('does not agree with Mop/s total', raw)

    def test_shares_may_be_rounded_to_two_decimals(self):
        self.check_shares('0.90', 4, ('0.22', '0.23'), ('0.21', '0.24'))
        self.check_shares('1.01', 1, ('1.00', '1.01', '1.02'), ('0.98',))
        self.check_shares('10.00', 1024, ('0.01',), ('0.02',))

    def test_shares_of_fast_programs_have_few_digits(self):
        self.check_shares('350000.00', 4, ('87500.00', '87505.00'),
                          ('87600.00', '87400.00'))

    def test_a_failed_verification_is_refused(self):
        for word in ('UNSUCCESSFUL', 'NOT PERFORMED', 'FAILED', ''):
            self.assert_refused('Verification', block(verification=word))

    def test_another_class_kernel_or_size_is_refused(self):
        for key, value in (('class', 'C'), ('benchmark', 'EP'),
                           ('size', '150000'), ('ranks', '4')):
            self.assert_refused('was requested', CG, {key: value})

    def test_bad_rates_are_refused(self):
        for word in ('NaN', 'Infinity', '0.00', '-1.00'):
            self.assert_refused('Mop/s total', block(mops=word))

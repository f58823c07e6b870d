# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

NATIVE = base.data('native_np1/stream_2M.out').decode()
SERIAL = base.data('stream/serial.out').decode()

PRESENT = 'Printing one line per active thread....\n'

#: The layout of stream.c 5.9.
OLD = """\
-------------------------------------------------------------
STREAM version $Revision: 5.9 $
-------------------------------------------------------------
This system uses 8 bytes per DOUBLE PRECISION word.
-------------------------------------------------------------
Array size = 2000000, Offset = 0
Total memory required = 45.8 MB.
Each test is run 10 times, but only
the *best* time for each is used.
-------------------------------------------------------------
Number of Threads requested = 4
-------------------------------------------------------------
Printing one line per active thread....
Printing one line per active thread....
Printing one line per active thread....
Printing one line per active thread....
-------------------------------------------------------------
Function      Rate (MB/s)   Avg time     Min time     Max time
Copy:       16000.0000       0.0020       0.0020       0.0021
Scale:      16000.0000       0.0020       0.0020       0.0021
Add:        16000.0000       0.0030       0.0030       0.0031
Triad:      16000.0000       0.0030       0.0030       0.0031
-------------------------------------------------------------
Solution Validates
-------------------------------------------------------------
"""

#: The layout of stream.f.
FORTRAN = """\
----------------------------------------------
 Double precision appears to have 16 digits of accuracy
 Assuming 8 bytes per DOUBLE PRECISION word
----------------------------------------------
 Array size =    2000000
 Offset     =          0
 The total memory requirement is     45 MB
 You are running each test  10 times
 --
 The *best* time for each test is used
 *EXCLUDING* the first and last iterations
----------------------------------------------
Number of Threads =  1
----------------------------------------------
Function     Rate (MB/s)  Avg time   Min time  Max time
Copy:      13123.5213      0.0025      0.0024      0.0026
Scale:     13044.0123      0.0025      0.0025      0.0026
Add:       13800.4567      0.0036      0.0035      0.0037
Triad:     13850.1234      0.0036      0.0035      0.0037
----------------------------------------------------
 Solution Validates!
----------------------------------------------------
"""

GOOD_OUTPUTS = (
    (base.data('native_np1/stream_2M.out'), {}),
    (base.data('stream/serial.out'), {}),
    (FORTRAN.encode(), {}))


class TestStream(base.ParserTestCase):
    parser = 'stream'
    refused = (
        ('another unit, as in the sections of HPCC', 'not of STREAM',
         NATIVE.replace('MB/s', 'GB/s')),
        ('a run that does not validate', 'Failed Validation',
         NATIVE.replace(
             'Solution Validates: avg error less than 1.000000e-13 on all '
             'three arrays',
             'Failed Validation on array a[], AvgRelAbsErr > epsilon')),
        ('a truncated run', 'not complete', NATIVE.partition('Solution')[0]),
        ('a truncated run', 'rows of Triad', NATIVE.partition('Triad:')[0]),
        ('a truncated run', 'no table', NATIVE.partition('Function')[0]),
        ('fewer threads than requested', '8 threads were requested',
         NATIVE.replace('requested = 1', 'requested = 8')),
        ('an array of no computer', "the array size is '99999999",
         NATIVE.replace('size = 2000000 ', f'size = {"9" * 400} ')),
        ('another array size', 'size=80000000 was requested', NATIVE,
         {'stream_array_size': '80000000'}),
        ('a rate that its time denies', 'do not agree',
         NATIVE.replace('Triad:          25330.5', 'Triad:         253305.0')),
        ('times out of order', 'least, average, most',
         NATIVE.replace(
             '0.002059     0.001895     0.002289',
             '0.001059     0.001895     0.002289')),
        ('two runs', 'several runs', NATIVE + NATIVE),
    )

    def test_the_four_rates_are_read(self):
        self.assertEqual(
            {'copy_mb_s': 26142.9, 'scale_mb_s': 23860.9,
             'add_mb_s': 24119.6, 'triad_mb_s': 25330.5},
            self.figures(NATIVE, {'size': '2000000', 'threads': '1',
                                  'version': '5.10'}))

    def test_version_5_9_has_each_thread_print_a_line(self):
        self.assertEqual(16000, self.figures(OLD, {'threads': '4'})[
            'triad_mb_s'])
        self.assert_refused('4 threads were requested, 3 ran',
                            OLD.replace(PRESENT, '', 1))

    def test_one_without_openmp_runs_one_thread(self):
        self.figures(SERIAL, {'size': '10000000', 'threads': '1'})
        self.assert_refused('threads=2 was requested', SERIAL,
                            {'threads': '2'})

    def test_the_fortran_version_is_read(self):
        self.assertEqual(13850.1234,
                         self.figures(FORTRAN, {'N': '2000000'})[
                             'triad_mb_s'])

    def test_bad_rates_are_refused(self):
        for word in ('nan', 'inf', '-1', '0.0', '*******'):
            self.assert_refused('the rate of Triad', NATIVE.replace(
                '25330.5', word))

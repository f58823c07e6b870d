# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

TABLE = base.data('mpi4py/pingpong_mpich.txt').decode()

GOOD_OUTPUTS = ((base.data('mpi4py/pingpong_mpich.txt'), {}),)


class TestPingpong(base.ParserTestCase):
    parser = 'mpi4py_pingpong'
    refused = (
        ('another unit', 'bandwidth_mb_s is in MiB/s, but in MB/s',
         TABLE.replace('[MB/s]', '[MiB/s]')),
        ('a table that ends early', 'max_size=1048576 was requested', TABLE,
         {'max_size': '1048576'}),
        ('a time that does not belong to the rate', 'do not agree',
         TABLE.replace('2345.87 | 2.7936809e-05', '2345.87 | 2.7936809e-04')),
        ('two tables', 'several runs', TABLE + TABLE),
    )

    def test_time_and_bandwidth_are_read(self):
        figures = self.figures(TABLE, {'max_size': '65536'})
        self.assertEqual(34, len(figures))
        self.assertAlmostEqual(4.4090482, figures['latency_us[1]'], places=7)
        self.assertEqual(2345.87, figures['bandwidth_mb_s[65536]'])

    def test_a_deviation_sign_that_the_locale_lost_does_no_harm(self):
        for sign in (b'?', b'\xb1', b'+/-'):
            raw = TABLE.encode().replace('\u00b1'.encode(), sign)
            self.assertEqual(34, len(self.figures(raw)))

    def test_without_statistics_there_is_bandwidth_only(self):
        raw = ''.join(line.partition(' |')[0] + '\n'
                      for line in TABLE.splitlines())
        self.assertEqual({'bandwidth_mb_s'}, {
            name.partition('[')[0] for name in self.figures(raw)})

    def test_a_row_cut_short_is_refused(self):
        for end in ('e-05 \u00b1', '2345.87 |', '| 2.7936'):
            cut = TABLE[:TABLE.rindex(end) + len(end)]
            self.assert_refused('', cut)

    def test_a_missing_row_is_refused(self):
        lines = TABLE.splitlines(keepends=True)
        self.assert_refused('no row for 4 bytes',
                            ''.join(lines[:4] + lines[5:]))

    def test_bad_times_are_refused(self):
        for word in ('nan', 'inf', '-1.0e-06', '0.0000000e+00'):
            self.assert_refused('', TABLE.replace('2.7936809e-05', word))

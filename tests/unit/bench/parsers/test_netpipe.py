# SPDX-License-Identifier: Apache-2.0

import itertools

import testtools

from hpcvirt.bench.parsers import netpipe
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text
from tests.unit.bench.parsers import base

TABLE = base.data('netpipe/shm_stderr.txt').decode()
FILE = base.data('netpipe/np.out').decode()
TABLE_5 = base.data('netpipe/np5_stdout.txt').decode()
FILE_5 = base.data('netpipe/np5.out').decode()
GOOD_OUTPUTS = (
    (base.data('netpipe/np.out'), {'max_size': '65536'}),
    (base.data('netpipe/shm_stderr.txt'), {}),
    (base.data('netpipe/np5.out'), {'max_size': '4194304'}),
    (base.data('netpipe/np5_stdout.txt'), {}))


class TestNetpipe(base.ParserTestCase):
    parser = 'netpipe'
    refused = (
        ('a table that ends early', 'ends at 65539 bytes', TABLE,
         {'max_size': '1048576'}),
        ('a time that does not belong to the rate', 'do not agree',
         TABLE.replace(
             '45100.04 Mbps in       2.77',
             '45100.04 Mbps in      27.70')),
        ('two tables', 'several', TABLE + TABLE),
        ('two tables', 'several', FILE + FILE),
        ('nothing', 'no row', 'Now starting the main loop\n'),
    )

    def test_the_table_gives_time_and_an_eighth_of_the_megabits(self):
        figures = self.figures(TABLE, {'max_size': '65536'})
        self.assertEqual(2.77, figures['latency_us[16384]'])
        self.assertEqual(45100.04 / 8, figures['bandwidth_mb_s[16384]'])

    def test_the_file_says_the_same(self):
        table, file = self.figures(TABLE), self.figures(FILE)
        self.assertEqual(table.keys(), file.keys())
        for name, value in table.items():
            self.assertAlmostEqual(value, file[name], delta=0.01)

    def test_version_5_is_read_in_gigabits_and_other_units(self):
        found = self.parse(TABLE_5)
        self.assertEqual((), found.remarks)
        figures = self.figures(TABLE_5, {'max_size': '4194304'})
        self.assertEqual(1696, round(figures['latency_us[4194301]'], 6))
        self.assertEqual(19786 / 8, figures['bandwidth_mb_s[4194301]'])
        self.assertEqual({'MB/s', 'us'}, {metric.unit for metric
                                          in found.metrics.values()})

    def test_the_file_of_version_5_says_the_same(self):
        table, file = self.figures(TABLE_5), self.figures(FILE_5)
        self.assertEqual(table.keys(), file.keys())
        for name, value in table.items():
            self.assertAlmostEqual(1, file[name] / value, delta=0.01, msg=name)

    def test_version_5_says_whether_it_ended(self):
        self.assert_refused('Completed', TABLE_5.partition('Completed')[0])
        begin, end = TABLE_5.index('\n', TABLE_5.index(' 35 ')), TABLE_5.index(
            '\nCompleted')
        self.assert_refused('max bandwidth', TABLE_5[:begin] + TABLE_5[end:])

    def test_the_end_agrees_with_the_highest_rates(self):
        table = text.clean(TABLE_5.encode())
        for end, is_valid in (('13.914', True), ('13.905', True),
                              ('13.923', True), ('14.100', False),
                              ('13.700', False)):
            found = self.parse(table.replace('13.914 Gbps', f'{end} Gbps'))
            self.assertEqual(is_valid, found.valid, found.reason)

    def test_without_perturbations_the_end_is_of_five_rates(self):
        # "-p 0": 1, 2, 3, 4, 6 bytes and so on.
        sizes = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
        table = ''.join(
            f'{row:3}: {size:9.3f}  B   20 times --> {size:8.3f} Mbps in '
            f'{8:8.3f} usecs\n' for row, size in enumerate(sizes, 1))
        for end, is_valid in ((sum(sizes[-5:]) / 5, True),
                              (sum(sizes[-10:]) / 10, True),
                              (sum(sizes[-4:]) / 4, False),
                              (sum(sizes[-6:]) / 6, False)):
            found = self.parse(
                f'{table}Completed with max bandwidth {end:.3f} Mbps '
                '8.000 usecs latency\n')
            self.assertEqual(is_valid, found.valid, (end, found.reason))

    def test_rows_that_are_missing_are_refused(self):
        for raw, expect in ((TABLE, {}), (TABLE_5, {}),
                            (FILE, {'max_size': '65536'}),
                            (FILE_5, {'max_size': '4194304'})):
            lines = raw.splitlines(keepends=True)
            rows = [number for number, line in enumerate(lines)
                    if line[-2:-1].isdigit() or '-->' in line]
            for first, last in ((0, 0), (0, 20), (3, 3), (12, 13), (30, 50),
                                (40, 42), (60, 62), (-2, -1), (-1, -1)):
                cut = lines[:rows[first]] + lines[rows[last] + 1:]
                found = self.parse(''.join(cut), expect)
                self.assertFalse(found.valid, (raw[:40], first, last))

    def test_other_sizes_can_be_asked_for(self):
        # np.out of "--quickest --start 64", and with --fac2.
        for sizes in ((64, 96, 128, 192, 256, 384), (64, 128, 256, 512)):
            raw = ''.join(f'{size:9d}{1.6 * size / 64:10.3f}     1.000'
                          f'     2.000{0.32:8.2f}\n' for size in sizes)
            self.assertEqual(2 * len(sizes), len(
                self.figures(raw, {'min_size': '64'})))

    def test_a_megabit_of_2_to_the_20_bits_is_noticed(self):
        self.assertIn('2^20', ' '.join(self.parse(TABLE).remarks))

    def test_without_an_asked_size_it_is_said_that_nobody_can_know(self):
        self.assertIn('no end marker', self.parse(TABLE).remarks[0])

    def test_a_broken_row_is_refused(self):
        cut = TABLE[:TABLE.rindex('usec')]
        self.assert_refused('broken', cut)
        self.assert_refused('not a row of np.out', FILE + '  1024 12.')

    def test_bad_figures_are_refused(self):
        for word in ('nan', '-1.00', '0.00', 'inf'):
            self.assert_refused('16384 bytes', TABLE.replace(
                '45100.04 Mbps', f'{word} Mbps'))


ROWS = netpipe.parse_file(FILE_5)


def rows(sizes):
    return [netpipe.NetPIPERow(size, 1.0, 1.0, 0.0) for size in sizes]


class TestSizes(testtools.TestCase):
    def test_the_sizes_of_a_real_run_are_found(self):
        self.assertEqual(118, len(ROWS))
        self.assertEqual(tuple(row.size for row in ROWS),
                         netpipe.find_sizes(ROWS))

    def test_sizes_that_are_rounded_are_exact(self):
        # 1.049 MB stands for 1048573, 1048576 and 1048579 bytes.
        exact = [size for size in netpipe.find_sizes(ROWS) if size > 1e6]
        shown = [round(size, -3) for size in exact]
        self.assertEqual(3, shown.count(1049000))
        small = [row for row in ROWS if row.size < 1e6]
        self.assertEqual(
            exact, list(netpipe.find_sizes(small + rows(shown)))[-len(exact):])

    def test_other_perturbations_are_recognized(self):
        # The options -p 0, --fac2, --start 64 --quick.
        for sizes in ((1, 2, 3, 4, 6, 8, 12, 16, 24), (1, 2, 4, 8, 16, 32),
                      (64, 96, 128, 192, 256)):
            self.assertEqual(sizes, netpipe.find_sizes(rows(sizes)))

    def test_no_size_can_be_missing(self):
        sizes = [row.size for row in ROWS]
        for begin, end in itertools.combinations(range(3, len(sizes), 7), 2):
            for cut in (sizes[:begin] + sizes[end:],
                        sizes[:begin] + sizes[begin + 1:]):
                self.assertRaises(reading.InvalidOutput, netpipe.find_sizes,
                                  rows(cut))


class TestRows(testtools.TestCase):
    def test_units_are_converted(self):
        row, = netpipe.parse_screen(
            '  1:   1.024 KB     20 times -->   2.048 Gbps  in  4.000 usecs\n')
        self.assertEqual((1024, 2048, 4), (
            round(row.size), round(row.mbps), row.time_us))

    def test_a_slow_rate_is_that_of_the_time(self):
        # 0.001 Gbps could be 0.0005 or 0.0015.
        row, = netpipe.parse_file(
            '        1     0.001     0.001     0.003    7.11\n')
        self.assertAlmostEqual(8 / 7.11, row.mbps)

    def test_a_row_that_was_lost_is_noticed_by_its_number(self):
        lines = text.clean(TABLE_5.encode()).splitlines(keepends=True)
        self.assertRaises(reading.InvalidOutput, netpipe.parse_screen,
                          ''.join(lines[:20] + lines[21:]))

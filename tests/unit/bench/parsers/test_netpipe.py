# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
            self.assertAlmostEqual(1, file[name] / value, delta=0.01,
                                   msg=name)

    def test_version_5_says_whether_it_ended(self):
        self.assert_refused('Completed', TABLE_5.partition('Completed')[0])
        begin, end = TABLE_5.index('\n', TABLE_5.index(' 35 ')), TABLE_5.index(
            '\nCompleted')
        self.assert_refused('max bandwidth',
                            TABLE_5[:begin] + TABLE_5[end:])

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

    def test_a_table_that_ends_early_is_refused(self):
        self.assert_refused('ends at 65539 bytes', TABLE,
                            {'max_size': '1048576'})

    def test_without_an_asked_size_it_is_said_that_nobody_can_know(self):
        self.assertIn('no end marker', self.parse(TABLE).remarks[0])

    def test_a_broken_row_is_refused(self):
        cut = TABLE[:TABLE.rindex('usec')]
        self.assert_refused('broken', cut)
        self.assert_refused('not a row of np.out', FILE + '  1024 12.')

    def test_a_time_that_does_not_belong_to_the_rate_is_refused(self):
        self.assert_refused('do not agree', TABLE.replace(
            '45100.04 Mbps in       2.77', '45100.04 Mbps in      27.70'))

    def test_two_tables_are_refused(self):
        self.assert_refused('several', TABLE + TABLE)
        self.assert_refused('several', FILE + FILE)

    def test_bad_figures_are_refused(self):
        for word in ('nan', '-1.00', '0.00', 'inf'):
            self.assert_refused('16384 bytes', TABLE.replace(
                '45100.04 Mbps', f'{word} Mbps'))

    def test_nothing_is_refused(self):
        self.assert_refused('no row', 'Now starting the main loop\n')

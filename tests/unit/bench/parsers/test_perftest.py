# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

BANDWIDTH = base.data('perftest/write_bw_ib.txt').decode()
CUDA = base.data('perftest/write_bw_cuda.txt').decode()
LATENCY = base.data('perftest/write_lat_roce.txt').decode()
#: The same rates as --report_gbits prints them, with a message of the program.
GBITS = LATENCY[:LATENCY.index(' #bytes')].replace('Latency', 'BW') + (
    ' #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   '
    'MsgRate[Mpps]\n'
    'Conflicting CPU frequency values detected: 800.0 != 3300.0. CPU Frequency'
    ' is not max.\n'
    ' 65536      20000            111.72             111.71             '
    '0.213070\n' + '-' * 87 + '\n')

#: The same with -D, which prints other columns.
DURATION = LATENCY[:LATENCY.index(' #bytes')] + (
    ' #bytes        #iterations       t_avg[usec]    tps average\n'
    'Conflicting CPU frequency values detected: 917.2 != 2153.7. CPU Frequency'
    ' is not max.\n'
    ' 2             1577611            1.90           262864.28\n'
    + '-' * 87 + '\n')

GOOD_OUTPUTS = ((BANDWIDTH.encode(), {}), (LATENCY.encode(), {}),
                (DURATION.encode(), {'statistic': 'mean'}),
                (CUDA.encode(), {'gpu': 'cuda=0'}),
                (GBITS.encode(), {'min_size': '65536',
                                  'max_size': '65536'}))


class TestPerftest(base.ParserTestCase):
    parser = 'perftest'
    refused = (
        ('no line below the table', 'no complete table',
         BANDWIDTH[:BANDWIDTH.rindex('\n---') + 1]),
        ('a row cut short', 'no complete table',
         BANDWIDTH[:BANDWIDTH.index('0.005819')]),
        ('a lost cell', 'a row is truncated',
         BANDWIDTH.replace('                  0.005819', '')),
        ('a missing row', 'no row for 4 bytes',
         BANDWIDTH.replace('4          2000             10.65              '
                           '10.64              2.788833\n', '')),
        ('a rate that is no number', "bandwidth_gbit_s[16] is 'nan'",
         BANDWIDTH.replace('           42.55', '             nan')),
        ('nothing', 'latency_us[2] is 0.00',
         LATENCY.replace('1.93         1.47', '1.93         0.00')),
        ('a mean of nothing', 'latency_us[2] is 0.00',
         DURATION.replace('1.90 ', '0.00 ')),
        ('a lost rate', 'a row is truncated',
         DURATION.replace('           262864.28', '')),
        ('a mean where a median was asked for', 'does not name it', LATENCY,
         {'statistic': 'mean'}),
        ('neither mean nor median', 'no column t_typical[usec] or t_avg',
         DURATION.replace('t_avg', 't_other')),
        ('no rate', 'no column "BW average"',
         GBITS.replace('BW average', 'BW other')),
        ('a transfer that failed', 'Completion with error at client',
         BANDWIDTH + ' Completion with error at client\n'),
        ('server and client in one file', 'several runs',
         BANDWIDTH + BANDWIDTH),
        ('another test', 'test=write_lat was requested', BANDWIDTH,
         {'test': 'write_lat'}),
        ('messages in the memory of the machine', 'gpu=cuda=0 was requested',
         BANDWIDTH, {'gpu': 'cuda=0'}),
        ('messages in the memory of a GPU', 'the output says cuda=0', CUDA,
         {'gpu': 'none'}),
        ('no connection', 'no title of a test', "Couldn't connect to a:1\n"),
        ('another largest size', 'max_size=16 was requested', BANDWIDTH,
         {'max_size': '16'}),
    )

    def test_megabytes_are_2_to_20_bytes(self):
        figures = self.figures(BANDWIDTH, {
            'test': 'write_bw', 'max_size': '8388608'})
        self.assertEqual(23, len(figures))
        self.assertAlmostEqual(
            0.002905 * 8388608 * 8e-3, figures['bandwidth_gbit_s[8388608]'],
            delta=0.1)

    def test_gigabits_are_read_as_they_are(self):
        found = self.parse(GBITS)
        self.assertEqual(
            111.71, found.metrics['bandwidth_gbit_s[65536]'].value)
        self.assertIn('only 65536 bytes', found.remarks[0])

    def test_the_gpu_of_the_messages_is_read(self):
        found = self.parse(CUDA)
        self.assertEqual(
            10.42, found.metrics['bandwidth_gbit_s[65536]'].value)
        self.assertEqual('cuda=0', found.parameters['gpu'])
        self.assertEqual('none', self.parse(GBITS).parameters['gpu'])
        # Lines of perftest 26 in other runs.
        begin, end = CUDA.index('initializing'), CUDA.index('-----')
        for gpu, printed in (
                ('cuda=3,dmabuf', (
                    '[pid = 5, dev = 3] device name = [H100]\n'
                    'creating CUDA Ctx\n'
                    'using DMA-BUF for GPU buffer address at 0x7f aligned at '
                    '0x7f with aligned size 131072\n')),
                ('rocm=1', (
                    'Using ROCm Device with ID: 1, Name: MI300X, '
                    'PCI Bus ID: 0x5, GCN Arch: gfx942\n'))):
            self.figures(CUDA[:begin] + printed + CUDA[end:], {'gpu': gpu})

    def test_the_median_latency_is_read(self):
        self.assertEqual({'latency_us[2]': 1.47},
                         self.figures(LATENCY, {'test': 'write_lat'}))

    def test_latency_by_duration_is_a_mean(self):
        found = self.parse(DURATION, {'test': 'write_lat'})
        self.assertEqual(1.90, found.metrics['latency_us[2]'].value)
        self.assertEqual('mean', found.parameters['statistic'])
        self.assertIn('the latency is the mean', found.remarks[-1])
        # Version 5 has no rate.
        old = DURATION.replace('    tps average', '').replace(
            '           262864.28', '')
        self.assertEqual({'latency_us[2]': 1.90}, self.figures(old))

    def test_both_directions_are_another_test(self):
        raw = BANDWIDTH.replace('Write BW', 'Write Bidirectional BW')
        self.figures(raw, {'test': 'write_bibw'})

    def test_a_table_without_its_ends_is_refused(self):
        begin = BANDWIDTH.index('2          2000')
        third = BANDWIDTH.index('8          2000')
        self.assert_refused('begins at 8 bytes',
                            BANDWIDTH[:begin] + BANDWIDTH[third:])
        last = BANDWIDTH.index('8388608    2000')
        self.assert_refused(
            'ends at 4194304 bytes',
            BANDWIDTH[:last] + BANDWIDTH[last:].partition('\n')[2])

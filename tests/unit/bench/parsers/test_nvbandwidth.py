# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

OUTPUT = base.data('nvbandwidth/gh200.txt').decode()

SMS = ('Running host_to_device_memcpy_sm.\n'
       'memcpy SM CPU(row) -> GPU(column) bandwidth (GB/s)\n'
       '           0\n 0      9.95\n\nSUM host_to_device_memcpy_sm 9.95\n')

GOOD_OUTPUTS = ((OUTPUT.encode(), {'tests': '4'}), (OUTPUT.encode(), {}))


class TestNvbandwidth(base.ParserTestCase):
    parser = 'nvbandwidth'
    refused = (
        ('another unit', 'host_device_latency_sm is in us, but in ns',
         OUTPUT.replace('(ns)', '(us)')),
        ('a sum cut off', 'no complete line "SUM host_device_latency_sm"',
         OUTPUT[:OUTPUT.index('latency_sm 772.58') + 16]),
        ('the sum of another test', 'no complete line "SUM host_to_device',
         OUTPUT.replace('SUM host_to_device', 'SUM device_to_device')),
        ('a sum of nothing', 'is 0.00, which is not above 0',
         OUTPUT.replace('ce 607.26', 'ce 0.00')),
        ('a sum that is no number', "'nan'",
         OUTPUT.replace('ce 607.26', 'ce nan')),
        ('wrong data', 'Invalid value when checking',
         OUTPUT.replace('Waived:\nNOTE', 'Invalid value when checking the '
                        'pattern at 0x7f00\nNOTE')),
        ('an error of CUDA', 'CUDA_ERROR_UNKNOWN',
         OUTPUT + '[CUDA_ERROR_UNKNOWN] unknown error\n'),
        ('two runs', 'several runs', OUTPUT + OUTPUT),
        ('no test', 'no line "Running TEST."',
         OUTPUT[:OUTPUT.index('Running')]),
        ('waived tests alone', 'all 3 tests were waived',
         OUTPUT[:OUTPUT.index('Running')] + 'Waived:\n' * 3),
        ('tests by SMs alone', 'host_to_device_memcpy_sm ran, and the figures',
         SMS),
        ('an unknown test', 'Testcase copy not found',
         'ERROR: Testcase copy not found!\n'),
        ('waived tests', '4, and 3 were waived', OUTPUT, {'tests': '7'}),
        ('a test that did not run', 'tests=6 was requested', OUTPUT,
         {'tests': '6'}),
    )

    def test_the_sums_are_read(self):
        self.assertEqual(
            {'host_to_device_memcpy_ce': 1985.6,
             'device_to_host_memcpy_ce': 607.26,
             'host_device_latency_sm': 772.58}, self.figures(OUTPUT))

    def test_latency_is_better_if_it_is_smaller(self):
        found = self.parse(OUTPUT)
        self.assertEqual(
            ('ns', 'down'), (found.metrics['host_device_latency_sm'].unit,
                             found.metrics['host_device_latency_sm'].direction))

    def test_a_gpu_has_no_link_to_itself(self):
        raw = ('Running device_to_device_memcpy_write_ce.\n'
               'memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n'
               '           0         1\n 0       N/A    276.07\n'
               ' 1    276.19       N/A\n\n'
               'SUM device_to_device_memcpy_write_ce 552.26\n')
        self.assertEqual({'device_to_device_memcpy_write_ce': 552.26},
                         self.figures(raw))

    def test_both_directions_at_once_have_a_total(self):
        name = 'device_to_device_bidirectional_memcpy_read_ce'
        raw = (f'Running {name}.\n' + ''.join(
            f'memcpy CE GPU(row) <-> GPU(column) {what} bandwidth (GB/s)\n'
            '           0         1\n 0       N/A    276.07\n\n'
            f'SUM {name}_{what.lower()} 276.07\n\n'
            for what in ('Read1', 'Read2', 'Total')))
        self.assertEqual(self.figures(OUTPUT), self.figures(raw + OUTPUT))
        self.assert_refused(
            f'no complete line "SUM {name}_total"',
            raw[:raw.index('_total')] + '\n' + OUTPUT)

    def test_tests_that_are_missing_cannot_be_seen(self):
        self.assertIn('--expect tests', self.parse(OUTPUT).remarks[0])
        self.assertEqual((), self.parse(OUTPUT, {'tests': '4'}).remarks)

# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

#: 16 GPUs on two nodes, all values checked.
H100 = base.data('nccl/all_reduce_h100.txt').decode()
#: Values that were not checked.
K80 = base.data('nccl/all_reduce_k80.txt').decode()
#: An old version without some columns; the first sizes are rounded to 0.
A100 = base.data('nccl/alltoall_a100.txt').decode()

#: Two processes of 8 GPUs that did not find each other.
ALONE = base.data('nccl/alone_h20.txt').decode()

GOOD_OUTPUTS = ((H100.encode(), {}), (K80.encode(), {}), (A100.encode(), {}))

BOUNDS = '# Out of bounds values : 0 OK'


class TestNccl(base.ParserTestCase):
    parser = 'nccl'
    refused = (
        ('another unit', 'avg_busbw_gb_s is in GiB/s, but in GB/s',
         K80.replace('(GB/s)', '(GiB/s)')),
        ('a wrong value out of place', 'wrong values at 8388608 bytes: 3',
         H100.replace('27.50      0', '27.50      3')),
        ('a wrong value in place', 'wrong values at 8388608 bytes: 12',
         H100.replace('27.91      0', '27.91     12')),
        ('values out of bounds', 'Out of bounds values: 1 FAILED',
         H100.replace(BOUNDS, '# Out of bounds values : 1 FAILED')),
        ('values out of bounds', 'Out of bounds values: 248 FAILED',
         K80.replace(BOUNDS, '# Out of bounds values : 248 FAILED')),
        ('no average', 'no complete line "Avg bus bandwidth"',
         H100[:H100.index('# Avg')]),
        ('an average cut short', 'no complete line "Avg bus bandwidth"',
         K80[:K80.index('.565546') + 4]),
        ('an average of nothing', 'Avg bus bandwidth is 0',
         K80.replace('0.565546', '0')),
        ('an average that is no number', "is 'nan', which is not a number",
         K80.replace('0.565546', 'nan')),
        ('a rate that is no number', "busbw_gb_s[8388608] is 'nan'",
         H100.replace('27.50      0', '  nan      0')),
        ('a rate below 0', 'is below 0',
         H100.replace('27.50      0', '-27.5      0')),
        ('a missing row', '10 rows of 11', K80.replace(
            next(line for line in K80.splitlines(keepends=True)
                 if line.startswith('     8388608 ')), '')),
        ('two runs', 'rank 0 is there twice: several runs', K80 + K80),
        ('processes that ran alone', 'built without MPI=1', ALONE),
        ('two runs of no rank', 'several runs',
         2 * K80.replace('#   Rank', '#   rank')),
        ('fewer hosts than asked for', 'hosts=2 was requested',
         K80.replace('2b6a393d-3 device  0', '2b6a393d-2 device  1'),
         {'hosts': '2'}),
        ('fewer ranks than asked for', 'gpus=16 was requested',
         H100.replace('#  Rank 15 ', '#  rank 15 '), {'gpus': '16'}),
        ('fewer GPUs than ranks', 'two ranks are on device 0 of node-2',
         H100.replace('node-2 device  1', 'node-2 device  0')),
        ('two hosts of one name', 'or two hosts have this name',
         H100.replace('node-2', 'node-1')),
        ('groups of ranks', '2 groups of ranks',
         H100.replace('#  Rank 15 Group  0', '#  Rank 15 Group  1')),
        ('another program', 'no line "nThread', 'hello\n'),
        ('other GPUs than asked for', 'gpus=8 was requested', H100,
         {'ranks': '8'}),
        ('another largest size', 'max_size=16 was requested', H100,
         {'max_size': '16'}),
    )

    def test_the_average_and_the_rates_out_of_place_are_read(self):
        figures = self.figures(H100, {'gpus': '16', 'min_size': '8',
                                      'max_size': '8589934592'})
        self.assertEqual(70.742, figures['avg_busbw_gb_s'])
        self.assertEqual(338.82, figures['busbw_gb_s[8589934592]'])
        self.assertEqual(27.50, figures['busbw_gb_s[8388608]'])

    def test_the_ranks_may_be_of_several_processes_and_hosts(self):
        for raw, hosts in ((H100, '2'), (K80, '2'), (A100, '1')):
            self.assertEqual(hosts, self.parse(raw).parameters['hosts'])
        self.figures(H100, {'hosts': '2', 'ranks': '16'})
        # The names of GPUs may be empty, as RCCL prints them.
        self.figures(H100.replace(' NVIDIA H100 80GB HBM3', ' '),
                     {'gpus': '16'})

    def test_a_rate_too_small_for_its_decimals_is_no_figure(self):
        found = self.parse(H100)
        self.assertNotIn('busbw_gb_s[256]', found.metrics)
        self.assertIn('busbw_gb_s[512]', found.metrics)
        self.assertEqual('31', found.parameters['rows'])

    def test_old_versions_have_other_columns_and_sizes_of_nothing(self):
        figures = self.figures(A100, {'gpus': '8'})
        self.assertEqual(58.6481, figures['avg_busbw_gb_s'])
        self.assertEqual(224.31, figures['busbw_gb_s[8589934592]'])

    def test_the_largest_difference_of_old_versions_is_no_error(self):
        self.figures(A100.replace('224.31    N/A', '224.31  2e-07'))

    def test_the_test_is_named_by_new_versions_only(self):
        found = self.parse(K80, {'test': 'all_reduce_perf'})
        self.assertEqual('all_reduce_perf', found.parameters['test'])
        self.assertIn('which collective', found.remarks[0])
        new = '# Collective test starting: alltoall_perf_mpi\n' + K80
        found = self.parse(new, {'test': 'alltoall_perf'})
        self.assertEqual((), found.remarks)
        self.assert_refused('test=all_reduce_perf was requested', new,
                            {'test': 'all_reduce_perf'})

    def test_sizes_may_grow_by_a_number_of_bytes(self):
        rows = [line for line in K80.splitlines(keepends=True)
                if line.split()[0] in ('1048576', '2097152')]
        head, _, rest = K80.partition(rows[0])
        tail = rest[rest.index('# Out'):]
        raw = head.replace('maxBytes 1073741824 step: 2(factor)',
                           'maxBytes 2097152 step: 1048576(bytes)')
        self.figures(raw + ''.join(rows) + tail)
        self.assert_refused('1 rows of 2', raw + rows[0] + tail)

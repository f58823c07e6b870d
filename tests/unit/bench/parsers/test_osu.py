# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

LATENCY = {'title': 'MPI Latency', 'column': 'Latency (us)'}
BANDWIDTH = {'title': 'MPI Bandwidth', 'column': 'Bandwidth (MB/s)'}


def table(title='MPI Latency', column='Latency (us)', version='v5.9',
          sizes=None, datatype='', tail='', value='{:.2f}'):
    """An output as the programs print it.

    :param tail: what follows the figure in each row
    """
    sizes = sizes or [0, *(2 ** power for power in range(23))]
    if 'Bandwidth' in title and sizes[0] == 0:
        sizes = sizes[1:]
    rows = ''.join(
        f'{size:<10}{value.format(1.5 + size / 4096):>19}{tail}\n'
        for size in sizes)
    return (f'# OSU {title} Test {version}\n{datatype}# Size      {column}\n'
            f'{rows}')

GOOD_OUTPUTS = (
    (table().encode(), {}),
    (base.data('osu/latency_7.4.txt'), {'max_size': '65536'}),
    (base.data('osu/allreduce_5.3.txt'), {'max_size': '65536'}),
    (base.data('osu/allreduce.txt'), {'max_size': '8'}),
    (base.data('osu/alltoall.txt'), {'max_size': '8', 'min_size': '4'}))


class TestOsu(base.ParserTestCase):
    parser = 'osu'
    refused = (
        ('another unit', 'latency_us is in ms, but in us in the definition',
         table(column='Avg Latency(ms)   Validation', tail='   Pass')),
        ('bits', 'bandwidth_mb_s is in Mb/s, but in MB/s in the definition',
         table('MPI Bandwidth', 'Bandwidth (Mb/s)')),
        ('a figure that lost digits', 'columns do not align',
         table().replace('129.50', '9.50')),
        ('the table must end where it was asked to',
         'max_size=1024 was requested', table(), {'max_size': '1024'}),
        ('a missing size', 'no row for 4 bytes',
         table(sizes=[1, 2, 8], version='v6.0'), {'max_size': '8'}),
        ('another test', 'another OSU test',
         table('MPI Multi-threaded Latency')),
        ('another test', 'test=bandwidth was requested', table(),
         {'test': 'bandwidth'}),
        ('headers only', 'no rows', table().partition('(us)\n')[0] + '(us)\n'),
        ('headers only', 'no line of column names',
         '# OSU MPI Latency Test v5.9\n'),
        ('one process is refused with the reason', 'exactly two processes',
         base.data('failures/osu_one/stderr')),
    )

    def test_latency_of_version_5_is_read(self):
        found = self.parse(table(**LATENCY), {'test': 'latency'})
        self.assertEqual(24, len(found.metrics))
        self.assertEqual(1.5, found.metrics['latency_us[0]'].value)
        self.assertEqual(1025.5, found.metrics['latency_us[4194304]'].value)
        self.assertEqual('down', found.metrics['latency_us[1]'].direction)

    def test_bandwidth_is_a_rate(self):
        found = self.parse(table(**BANDWIDTH))
        self.assertEqual(('MB/s', 'up'), (
            found.metrics['bandwidth_mb_s[1]'].unit,
            found.metrics['bandwidth_mb_s[1]'].direction))

    def test_bidirectional_bandwidth_of_old_and_new_versions_is_read(self):
        for column in ('Bandwidth (MB/s)', 'Bi-Bandwidth (MB/s)'):
            found = self.parse(table('MPI Bi-Directional Bandwidth', column))
            self.assertEqual('bi-bandwidth', found.parameters['test'])

    def test_version_7_has_a_datatype_and_other_columns(self):
        raw = table(column='Avg Latency(us)        Validation',
                    version='v7.5', datatype='# Datatype: MPI_CHAR.\n',
                    tail='              Pass')
        self.assertEqual(1.5, self.figures(raw)['latency_us[0]'])

    def test_collectives_have_the_mean_over_the_ranks_first(self):
        for name, size, figure in (('allreduce', 4, 50.75),
                                   ('alltoall', 8, 53.41)):
            figures = self.figures(
                base.data(f'osu/{name}.txt'),
                {'test': name, 'min_size': '4', 'max_size': '8'})
            self.assertEqual(figure, figures[f'latency_us[{size}]'])

    def test_collectives_begin_and_end_with_smaller_messages(self):
        sizes = [2 ** power for power in range(2, 21)]
        found = self.parse(table('MPI Allreduce Latency', sizes=sizes))
        self.assertEqual(19, len(found.metrics))
        self.assert_refused('ends at 524288 bytes', table(
            'MPI Allreduce Latency', sizes=sizes[:-1]))
        self.assert_refused('begins at 8 bytes', table(
            'MPI Broadcast Latency', sizes=sizes[1:]))

    def test_the_datatype_may_stand_below_the_columns(self):
        raw = table(version='v7.2').replace(
            'Latency (us)\n', 'Latency (us)\n# Datatype: MPI_CHAR.\n')
        self.assertEqual(24, len(self.figures(raw)))

    def test_a_failed_validation_is_refused(self):
        raw = table(column='Avg Latency(us)   Validation', tail='   Pass')
        self.assert_refused('validation failed', raw.replace(
            'Pass\n64 ', 'Fail\n64 '))

    def test_one_sided_tests_are_refused_by_their_titles(self):
        self.assert_refused('"OSU MPI_Put Bandwidth Test" is another',
                            base.data('osu/put_bw_5.3.txt'),
                            {'test': 'bandwidth'})
        window = ('# Window creation: MPI_Win_allocate\n'
                  '# Synchronization: MPI_Win_flush\n')
        for title in (
                'MPI_Put Bandwidth', 'MPI_Get Bandwidth', 'MPI_Put Latency',
                'MPI_Get latency', 'MPI_Accumulate latency',
                'MPI_Compare_and_swap latency', 'MPI_Fetch_and_op latency',
                'MPI_Get_accumulate latency',
                'MPI_Put Bi-directional Bandwidth', 'MPI_Put-CUDA Bandwidth',
                'MPI_Get-ROCM latency', 'One Sided MPI_Put latency'):
            column = ('Bandwidth (MB/s)' if 'Bandwidth' in title
                      else 'Latency (us)')
            self.assert_refused(f'"OSU {title} Test" is another OSU test',
                                table(title, column, datatype=window))

    def test_tests_of_other_libraries_are_refused(self):
        for title in ('UPC memput', 'OpenSHMEM Put', 'NCCL-CUDA Latency',
                      'MPI', 'MPI-CUDA'):
            self.assert_refused('is another OSU test', table(title))

    def test_buffers_in_memory_of_a_gpu_are_another_test(self):
        form = '# Send Buffer on {} and Receive Buffer on {}\n'
        for line, buffers in (
                (form.format('DEVICE (D)', 'DEVICE (D)'), 'D D'),
                (form.format('HOST (H)', 'DEVICE (D)'), 'H D'),
                (form.format('MANAGED (M)', 'HOST (H)'), 'M H'),
                # Version 7.5 prints no such line.
                ('# Datatype: MPI_CHAR.\n', 'CUDA')):
            raw = table('MPI-CUDA Latency', datatype=line)
            found = self.parse(raw)
            self.assertEqual(
                ('latency-device', buffers),
                (found.parameters['test'], found.parameters['buffers']))
            self.assert_refused(f'in the memory of a GPU ({buffers})', raw,
                                {'test': 'latency'})
        self.assert_refused(
            'in the memory of a GPU (ROCM)',
            table('MPI-ROCM Allreduce Latency'), {'test': 'allreduce'})

    def test_a_program_for_gpus_may_use_host_memory(self):
        raw = table('MPI-CUDA Latency', datatype='# Send Buffer on HOST (H) '
                    'and Receive Buffer on HOST (H)\n')
        found = self.parse(raw, {'test': 'latency'})
        self.assertTrue(found.valid, found.reason)
        self.assertNotIn('buffers', found.parameters)

    def test_the_table_must_reach_the_default_size(self):
        raw = table(sizes=[1, 2, 4, 8])
        self.assert_refused('ends at 8 bytes', raw)
        self.assertEqual(4, len(self.figures(raw, {'max_size': '8'})))

    def test_a_single_size_is_one_that_was_asked_for(self):
        found = self.parse(table(sizes=[1048576]))
        self.assertEqual(['latency_us[1048576]'], list(found.metrics))
        self.assertIn('only 1048576 bytes', found.remarks[0])
        # The program begins there by default: the table is cut off.
        self.assert_refused('ends at 0 bytes', table(sizes=[0]))

    def test_a_table_without_its_first_rows_is_refused(self):
        raw = table(sizes=[2 ** power for power in range(3, 23)])
        self.assert_refused('begins at 8 bytes', raw)
        self.assertEqual(20, len(self.figures(raw, {'min_size': '8'})))

    def test_a_row_cut_short_is_refused(self):
        raw = table().rstrip('\n')
        self.assert_refused('truncated', raw[:-1])

    def test_bad_figures_are_refused(self):
        for word in ('nan', '-1.00', '0.00', 'inf', '****'):
            raw = table().replace(f'{1.5 + 1 / 4096:.2f}', word, 1)
            self.assert_refused('latency_us', raw)

    def test_two_tables_are_refused(self):
        self.assert_refused('several runs', table() + table())
        rows = table().partition('(us)\n')[2]
        self.assert_refused('several tables', table() + rows)

    def test_banners_and_warnings_around_it_do_no_harm(self):
        rows = table().replace('\n64 ', '\n2 more processes have sent help '
                               'message\n64 ')
        self.assertEqual(24, len(self.figures(rows)))
        raw = ('WARNING: Open MPI will create a shared memory backing file\n'
               '--------------------------------------------------\n'
               + table() + '\nreal\t0m3,120s\nuser\t0m0,076s\n')
        self.assertEqual(24, len(self.figures(raw)))

# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

DGEMM = base.data('one_figure/mt_dgemm_gpus.txt').decode()
#: Of a version that does not check its result itself.
DGEMM_RUN = base.data('one_figure/mt_dgemm_cpu.txt').decode()
HPCG = base.data('one_figure/hpcg_3.1.txt').decode()
HPCG_RUN = base.data('one_figure/hpcg_3.1_np2.txt').decode()
#: As version 3.0 writes it.
HPCG_YAML = (
    'n104-8p-1t version: V3.0\nMachine Summary: \n'
    '  Distributed Processes: 8\n  Threads per processes: 1\n'
    'Local Domain Dimensions: \n  nx: 104\n  ny: 104\n'
    '__________ Final Summary __________: \n'
    '  HPCG result is VALID with a GFLOP/s rating of: 3.28908\n')
#: With -v, and without.
CHASE = base.data('one_figure/multichase_v.txt').decode()
PLAIN_CHASE = ' 66.501\n'

GOOD_OUTPUTS = (
    (DGEMM.encode(), {'program': 'mt-dgemm'}), (DGEMM_RUN.encode(), {}),
    (HPCG.encode(), {'program': 'HPCG'}), (HPCG_RUN.encode(), {}),
    (HPCG_YAML.encode(), {}),
    (CHASE.encode(), {'program': 'multichase'}))


class TestOneFigure(base.ParserTestCase):
    parser = 'one_figure'
    refused = (
        ('a failed check', 'Solution check FAILED',
         DGEMM.replace('PASSED successfully', 'FAILED')),
        ('no rate', 'no complete result', DGEMM[:DGEMM.index('GFLOP/s rate')]),
        ('a rate cut short', 'no complete result',
         DGEMM[:DGEMM.index(' GF/s')]),
        ('a wrong result', 'the sum of the result is 16400',
         DGEMM.replace('16384.010000', '16400.010000')),
        ('no sum', 'no complete line "Final Sum"',
         DGEMM.replace('Final Sum', 'Sum')),
        ('no number', "gflops is 'nan'",
         DGEMM.replace('498752.602665', 'nan')),
        ('an order of no matrix', "the matrix size is '99999999",
         DGEMM.replace('line: 16384', f'line: {"9" * 400}')),
        ('another order', 'size=1024 was requested', DGEMM, {'n': '1024'}),
        ('an invalid result', 'HPCG result is=INVALID', HPCG.replace(
            'HPCG result is VALID with a GFLOP/s rating of=1.60272',
            'HPCG result is=INVALID.')),
        ('a failed check of HPCG', 'Result=FAILED',
         HPCG.replace('Result=PASSED', 'Result=FAILED', 1)),
        ('a rating cut short', 'no complete result',
         HPCG[:HPCG.index('=1.60272') + 5]),
        ('a rating of nothing', 'gflops is 0',
         HPCG.replace('of=1.60272', 'of=0')),
        ('two reports', 'several runs', HPCG + HPCG),
        ('another grid', 'nx=16 was requested', HPCG, {'nx': '16'}),
        ('another program', 'program=HPCG was requested', DGEMM,
         {'program': 'HPCG'}),
        ('two programs', 'no complete result', DGEMM + HPCG),
        ('no result of a chase', 'no complete result',
         CHASE.rstrip().rpartition('\n')[0] + '\n'),
        ('a chase that stalled', "latency_ns is 'nan'", '   nan\n'),
        ('two chases', 'several runs', PLAIN_CHASE * 2),
        ('another size of a chase', 'memory=4096 was requested', CHASE,
         {'m': '4096'}),
    )

    def test_each_program_has_its_figure(self):
        for raw, figures in (
                (DGEMM, {'gflops': 498752.602665}),
                (DGEMM_RUN, {'gflops': 0.488736}),
                (HPCG, {'gflops': 1.60272}), (HPCG_YAML, {'gflops': 3.28908}),
                (PLAIN_CHASE, {'latency_ns': 66.501}),
                ('  120.4\n', {'latency_ns': 120.4})):
            self.assertEqual(figures, self.figures(raw))

    def test_what_was_measured_is_a_parameter(self):
        for raw, parameters in (
                (DGEMM, {'program': 'mt-dgemm', 'size': '16384'}),
                (HPCG, {'program': 'HPCG', 'ranks': '1', 'threads': '48',
                        'nx': '104'}),
                (HPCG_YAML, {'program': 'HPCG', 'ranks': '8', 'threads': '1',
                             'nx': '104'}),
                (PLAIN_CHASE, {'program': 'multichase'})):
            self.assertEqual(parameters, self.parse(raw).parameters)

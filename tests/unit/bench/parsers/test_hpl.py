# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

OUTPUT = base.data('hpl/intel.txt').decode()
END = OUTPUT[OUTPUT.index('\nFinished'):]
CHECK = '3.59653282e-03 ...... PASSED'
RUN = base.data('hpl/np2.txt')
#: Of NVIDIA's program, up to the residual check.
NVIDIA = base.data('hpl/nvidia_cut.txt').decode()

GOOD_OUTPUTS = ((OUTPUT.encode(), {}), (RUN, {'N': '2000'}),
                ((NVIDIA + END).encode(), {}))


class TestHpl(base.ParserTestCase):
    parser = 'hpl'
    refused = (
        ('another unit', 'gflops is in Tflop/s, but in Gflop/s',
         OUTPUT.replace('  Gflops\n', '  Tflops\n')),
        ('a failed check', 'the residual checks FAILED, not one result',
         OUTPUT.replace(CHECK, '1.2e+09 ...... FAILED')),
        ('a failed test', '1 tests completed and failed',
         OUTPUT.replace(' 0 tests completed and failed',
                        ' 1 tests completed and failed')),
        ('a skipped test', 'tests skipped because', OUTPUT.replace(
            ' 0 tests skipped', ' 1 tests skipped')),
        ('no result', '0 results', base.data('hpl/no_result.txt')),
        ('the end is missing', 'no "End of Tests."', NVIDIA),
        ('no number', "Gflops is 'nan'", OUTPUT.replace('6.68032e+02', 'nan')),
        ('nothing', 'which is not above 0',
         OUTPUT.replace('6.68032e+02', '0.00000e+00')),
        ('two results', '2 results', OUTPUT + OUTPUT),
        ('another size', 'N=1000 was requested', OUTPUT, {'N': '1000'}),
    )

    def test_an_indented_output_is_not_called_incomplete(self):
        raw = ''.join(f'    {line}\n' for line in RUN.decode().splitlines())
        self.assert_refused('each line is indented', raw)

    def test_the_rate_is_read(self):
        self.assertEqual({'gflops': 668.032}, self.figures(
            OUTPUT, {'N': '82081', 'NB': '256', 'P': '1', 'Q': '1'}))

    def test_the_rate_per_gpu_is_no_figure(self):
        self.assertEqual({'gflops': 16980.0},
                         self.figures(NVIDIA + END, {'N': '92160'}))

    def test_norms_that_follow_a_passed_check_are_no_checks(self):
        self.assertIn('||Ax-b||_oo  . . .', NVIDIA)

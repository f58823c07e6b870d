# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

OUTPUT = base.data('gpu_burn/a100.txt').decode()
LAST = OUTPUT.rindex('errors: 0')

GOOD_OUTPUTS = ((OUTPUT.encode(), {'gpus': '8'}),)

#: Outputs that users of gpu-burn reported, in shorter form.
NO_RATE = ('Burning for 10 seconds.\nKilling processes with SIGTERM (soft '
           'kill)\ndone\n\nTested 1 GPUs:\n\tGPU 0: OK\n')
NOTHING = ("100.0%  proc'd: 0 (0 Gflop/s)   errors: 0   temps: 41 C\n"
           'Killing processes.. done\n\nTested 1 GPUs:\n\tGPU 0: OK\n')
DIED = ("30.0%  proc'd: -1 (0 Gflop/s)   errors: -533715488  (DIED!)  temps: "
        '30 C\n\nNo clients are alive!  Aborting\n')


class TestGpuBurn(base.ParserTestCase):
    parser = 'gpu_burn'
    refused = (
        ('a GPU that is faulty', 'GPU 3: FAULTY',
         OUTPUT.replace('3: OK', '3: FAULTY').replace('7: OK', '7: FAULTY')),
        ('wrong results', 'errors at 100.0 %: 30511521  (WARNING!)',
         OUTPUT[:LAST] + OUTPUT[LAST:].replace(
             'errors: 0', 'errors: 30511521  (WARNING!)', 1)),
        ('a number of errors that overflowed', 'errors at 50.0 %: 0 - -524288',
         OUTPUT.replace('errors: 0 - 0', 'errors: 0 - -524288000 (WARNING!)',
                        1)),
        ('wrong results early on', 'errors at 50.0 %: 1',
         OUTPUT.replace('errors: 0', 'errors: 1', 1)),
        ('GPUs that died', 'No clients are alive', DIED),
        ('a GPU that did not start', "Couldn't init a GPU test",
         "Couldn't init a GPU test: Error: CUDA_ERROR_UNKNOWN\n" + NOTHING),
        ('a GPU that computed nothing', 'the rate of GPU 0 is 0', NOTHING),
        ('no rate', 'no line at 100.0%', NO_RATE),
        ('no verdicts', 'no "Tested ... GPUs"',
         OUTPUT[:OUTPUT.index('Tested')]),
        ('a verdict missing', '8 rates and 7 times OK for 8 GPUs',
         OUTPUT[:OUTPUT.rindex('\tGPU')]),
        ('not burned to the end', 'no line at 100.0%',
         OUTPUT.replace('100.0%', '95.0%')),
        ('two runs', 'several runs', OUTPUT + OUTPUT),
        ('fewer GPUs than asked for', 'gpus=4 was requested', OUTPUT,
         {'gpus': '4'}),
    )

    def test_the_rates_at_the_end_are_read(self):
        self.assertEqual({'gflops': 135694.0, 'slowest_gpu_gflops': 16890.0},
                         self.figures(OUTPUT))

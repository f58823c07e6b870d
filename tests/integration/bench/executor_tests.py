# SPDX-License-Identifier: Apache-2.0

"""What holds for this machine and for one behind ssh."""

import pathlib
import tempfile
from unittest import mock

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.bench.execute import executor


class ExecutorTests:
    """Tests of a place where programs run.

    :ivar place: the executor
    """

    def test_status_output_and_errors_come_back(self):
        done = self.place.run(['sh', '-c', 'cat; echo err >&2; exit 3'], b'in')
        self.assertEqual((3, b'in', b'err\n'),
                         (done.status, done.stdout, done.stderr))

    def test_a_program_that_does_not_end_times_out(self):
        self.assertRaisesRegex(exception.TimedOut, 'within 0.5 s',
                               self.place.run, ['sleep', '5'], b'', 0.5)

    def test_large_input_and_output_pass(self):
        data = bytes(range(256)) * 4096
        self.assertEqual(data, self.place.run(['cat'], data).stdout)

    def test_a_program_that_prints_without_end_is_ended(self):
        with tempfile.TemporaryDirectory() as scratch:
            for stream in ('1', '2'):
                with (mock.patch.object(executor, 'MAX_OUTPUT_BYTES', 2 ** 20),
                      self.assertRaisesRegex(
                          exception.Unreachable,
                          f'^{self.place.name}: sh printed more than 1 MiB')):
                    self.place.run([
                        'sh', '-c', f'echo $$ > "$1"; exec yes >&{stream}',
                        'sh', f'{scratch}/pid'])
                process = pathlib.Path('/proc', pathlib.Path(
                    scratch, 'pid').read_text().strip())
                self.assertFalse(waiting.poll(
                    process.exists, lambda found: not found, 10, 0.01))
